/* Closes every descriptor from 500 on that it did not open, puts a file of its own there, and makes
 * 150,000 calls: more than four windows. Its own file must stay as it is. */
#include "victim.h"
#include <fcntl.h>
#include <sys/stat.h>

int main(int argc, char **argv)
{
    struct stat status;

    MPI_Init(&argc, &argv);
    call_comm_rank(10);
    for (int i = 500; i < 1024; i++)
        close(i);
    int own = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (own < 0 || write(own, "mine", 4) != 4)
        return 9;
    for (int i = 500; i < 510; i++)
        if (dup2(own, i) != i)
            return 8;
    call_comm_rank(149990);
    for (int i = 500; i < 510; i++)
        if (fstat(i, &status) != 0 || status.st_size != 4)
            return 7;
    puts("my file is as it was");
    MPI_Finalize();
    return 0;
}
