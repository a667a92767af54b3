/* calls_a_library LIBRARY [ONCE]: two ranks add numbers in a library twenty times at either of two lines. Rank 1 sleeps
 * before the first, rank 0 before the second. With a second argument the program makes the second call itself. */
#include "victim.h"
#include <dlfcn.h>

static double (*library_sum)(double);

int main(int argc, char **argv)
{
    double sum = 0;

    MPI_Init(&argc, &argv);
    int rank = call_comm_rank(1);
    void *library = dlopen(argv[1], RTLD_NOW);
    if (!library || !(library_sum = (double (*)(double))dlsym(library, "library_sum"))) {
        fprintf(stderr, "%s\n", dlerror());
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    for (int i = 0; i < 20; i++) {
        usleep(rank == 1 ? 20000 : 0);
        sum += library_sum(1); /* rank 1 is late */
        usleep(rank == 0 ? 16000 : 0);
        if (argc == 2)
            sum += library_sum(2); /* rank 0 is late */
        else
            MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return sum == (argc == 2 ? 120 : 40) ? 0 : 3;
}
