/* Closes standard error and opens a file, which gets its descriptor; the program writes to it. */
#include "victim.h"
#include <fcntl.h>

int main(int argc, char **argv)
{
    int descriptor;

    close(2);
    descriptor = open(argv[1], O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (descriptor != 2)
        return 3;
    MPI_Init(&argc, &argv);
    if (write(2, "own\n", 4) != 4)
        return 4;
    MPI_Finalize();
    return 0;
}
