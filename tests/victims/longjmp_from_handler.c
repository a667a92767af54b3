/* An error handler leaves MPI_Send by longjmp; the program continues. */
#include "longjmp.h"

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    call_comm_rank(5);
    if (setjmp(back) == 0)
        send_to_nobody();
    else
        puts("left");
    for (int i = 0, rank; i < 7; i++)
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
