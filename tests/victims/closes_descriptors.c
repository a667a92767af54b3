/* Closes the recorder's descriptor, opens its own file with the same number, and makes 150,000 calls:
 * more than two windows. Its own file must not change. */
#define _GNU_SOURCE
#include "victim.h"
#include <fcntl.h>
#include <sys/stat.h>

/* The descriptor of the recorder's rank file, -1 without one. */
static int recorders_descriptor(void)
{
    char link[64], path[4096];

    for (int i = 3; i < 1024; i++) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", i);
        ssize_t length = readlink(link, path, sizeof path);
        if (length > 4 && memcmp(path + length - 4, ".gmc", 4) == 0)
            return i;
    }
    return -1;
}

int main(int argc, char **argv)
{
    struct stat status;

    MPI_Init(&argc, &argv);
    call_comm_rank(10);
    int theirs = recorders_descriptor();
    if (theirs < 0)
        return 6;
    int own = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (own < 0 || write(own, "mine", 4) != 4)
        return 9;
    if (dup2(own, theirs) != theirs)
        return 8;
    call_comm_rank(149990);
    if (fstat(theirs, &status) != 0 || status.st_size != 4)
        return 7;
    puts("my file is as it was");
    MPI_Finalize();
    return 0;
}
