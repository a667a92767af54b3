/* A program for unknown_mpi_library.c. It looks for procedures that the library lacks: they must seem absent. */
#include <stdio.h>

int MPI_Init(int *, char ***);
int MPI_Finalize(void);
int MPI_Comm_rank(char, int *);
int MPI_Send(const void *, int, char, int, int, char);
int MPI_Recv(void *, int, char, int, int, char, char *);
extern int MPI_Session_init(void) __attribute__((weak));
extern int MPI_Isend(void) __attribute__((weak));
extern int MPI_Comm_rank_of_nobody(void) __attribute__((weak));
static int (*volatile table[])(void) = {MPI_Session_init, MPI_Isend, MPI_Comm_rank_of_nobody};

int main(void)
{
    int rank = -1, value = 21, got = 0;
    char status[4] = "";
    printf("before %d %d\n", MPI_Session_init != 0, MPI_Isend != 0);
    MPI_Init(0, 0);
    MPI_Comm_rank('w', &rank);
    for (int i = 0; i < 3; i++)
        MPI_Send(&value, 1, 'i', 0, 1, 'w');
    MPI_Recv(&got, 1, 'i', 0, 1, 'w', status);
    printf("rank %d got %d %s, code %d\n", rank, got, status, MPI_Send(&value, 1, 'i', 0, 1, 'x'));
    printf("after %d %d, in a table %d %d %d\n", MPI_Session_init != 0, MPI_Isend != 0, table[0] != 0,
           table[1] != 0, table[2] != 0);
    MPI_Finalize();
    return 0;
}
