/* An MPI linked into the program or, with -DLIBRARY, into a library: calls never leave it. */
int PMPI_Init(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    return 0;
}

int MPI_Init(int *argc, char ***argv) { return PMPI_Init(argc, argv); }

int runs_mpi(void) { return MPI_Init(0, 0); }

#ifndef LIBRARY
int main(void) { return runs_mpi(); }
#endif
