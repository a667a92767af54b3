/* Removes the directory that GAMMACHI_OUT names, and makes 200,000 calls. */
#include "victim.h"

int main(int argc, char **argv)
{
    char command[5000];
    const char *out = getenv("GAMMACHI_OUT");

    MPI_Init(&argc, &argv);
    if (out) {
        snprintf(command, sizeof command, "rm -r '%s'", out);
        if (system(command) != 0)
            return 9;
    }
    call_comm_rank(200000);
    MPI_Finalize();
    return 3;
}
