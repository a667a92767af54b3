/* The program's own xerbla leaves a BLAS call by longjmp; the program makes further calls. */
#include "victim.h"
#include <setjmp.h>

void dgemm_(const char *, const char *, const int *, const int *, const int *, const double *, const double *,
            const int *, const double *, const int *, const double *, double *, const int *, size_t, size_t);

static jmp_buf back;

void xerbla_(const char *name, const int *argument, size_t length)
{
    (void)name, (void)argument, (void)length;
    longjmp(back, 1);
}

static void multiply(int n)
{
    static double a[64 * 64], b[64 * 64], c[64 * 64];
    double one = 1, zero = 0;
    int size = 64;
    dgemm_("N", "N", &n, &size, &size, &one, a, &size, b, &size, &zero, c, &size, 1, 1);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    multiply(64);
    if (setjmp(back) == 0)
        multiply(-1);
    else
        puts("left");
    for (int i = 0; i < 5; i++)
        multiply(64);
    call_comm_rank(2);
    MPI_Finalize();
    return 0;
}
