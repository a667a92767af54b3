/* Twelve products of N x N matrices, divided among the ranks, in the region "solve"; one more before.
 * Arguments: N; optionally a rank count at which it fails; optionally a file: while it exists, the
 * program waits inside the region. */
#include "gammachi.h"
#include "victim.h"

enum { ROW_MAJOR = 101, NOT_TRANSPOSED = 111, PRODUCTS = 12 };

void cblas_dgemm(int layout, int transpose_a, int transpose_b, int m, int n, int k, double alpha,
                 const double *a, int lda, const double *b, int ldb, double beta, double *c, int ldc);

static void multiply(int n, const double *a, double *c)
{
    cblas_dgemm(ROW_MAJOR, NOT_TRANSPOSED, NOT_TRANSPOSED, n, n, n, 1.0, a, n, a, n, 0.0, c, n);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, ranks, n = atoi(argv[1]);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    double *a = calloc((size_t)n * n, sizeof *a), *c = calloc((size_t)n * n, sizeof *c);
    multiply(n, a, c);
    MPI_Barrier(MPI_COMM_WORLD);
    gammachi_region_begin("solve");
    for (int i = rank; i < PRODUCTS; i += ranks)
        multiply(n, a, c);
    while (argc > 3 && access(argv[3], F_OK) == 0)
        usleep(1000);
    MPI_Barrier(MPI_COMM_WORLD);
    gammachi_region_end("solve");
    MPI_Finalize();
    free(a);
    free(c);
    if (argc > 2 && atoi(argv[2]) == ranks) {
        fprintf(stderr, "%d ranks are no good\n", ranks);
        return 3;
    }
    return 0;
}
