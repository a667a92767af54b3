/* An MPI library that the recorder does not know: handles are small numbers, statuses have an unknown layout. One
   process, which sends messages to itself. */
#include <string.h>

static int level, sent, finished;

int PMPI_Init(int *argc, char ***argv) { (void)argc, (void)argv; level = 1; return 0; }
int PMPI_Finalize(void) { finished = 1; return 0; }
int PMPI_Comm_rank(char comm, int *rank) { *rank = comm == 'w' ? 0 : -1; return comm != 'w'; }
int PMPI_Send(const void *buffer, int count, char type, int to, int tag, char comm)
{
    (void)count, (void)type, (void)to, (void)tag;
    sent += *(const int *)buffer;
    return comm != 'w';
}
int PMPI_Recv(void *buffer, int count, char type, int from, int tag, char comm, char *status)
{
    (void)count, (void)type, (void)from, (void)tag;
    *(int *)buffer = sent;
    strcpy(status, "ok");
    return comm != 'w';
}
int PMPI_Query_thread(int *provided) { *provided = level; return 0; }
int PMPI_Get_version(int *major, int *minor) { *major = 3; *minor = 0; return 0; }
int PMPI_Get_library_version(char *text, int *length)
{
    strcpy(text, "Nobody's MPI 0.1");
    *length = (int)strlen(text);
    return 0;
}

int MPI_Init(int *, char ***) __attribute__((weak, alias("PMPI_Init")));
int MPI_Finalize(void) __attribute__((weak, alias("PMPI_Finalize")));
int MPI_Comm_rank(char, int *) __attribute__((weak, alias("PMPI_Comm_rank")));
int MPI_Send(const void *, int, char, int, int, char) __attribute__((weak, alias("PMPI_Send")));
int MPI_Recv(void *, int, char, int, int, char, char *) __attribute__((weak, alias("PMPI_Recv")));
