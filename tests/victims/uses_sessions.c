/* Uses MPI sessions and never calls MPI_Init. The first word says over what the ranks talk: `all`, `halves`, `self`,
 * or `turns`, which opens all sessions again after the last one was finalized. `overlapping` opens another session
 * before it finalizes the first one. `first` calls MPI_Init, too, after rank 1 alone opened a session before.
 * `dies` kills rank 1 in the middle, `dies_later` in sessions that are opened again. `totals` makes many calls. */
#include "victim.h"

static void talk(MPI_Comm over, int times)
{
    int rank, size, sum = 0, got = -1;
    MPI_Comm_rank(over, &rank);
    MPI_Comm_size(over, &size);
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    for (int i = 0; i < times; i++) {
        MPI_Sendrecv(&rank, 1, MPI_INT, right, i, &got, 1, MPI_INT, left, i, over, MPI_STATUS_IGNORE);
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, over);
        if (got != left || sum != size * (size - 1) / 2)
            exit(3);
    }
}

static MPI_Comm communicator(MPI_Session session, const char *over)
{
    MPI_Group all, part;
    MPI_Comm made;
    int rank, size;
    int is_self = strcmp(over, "self") == 0;
    MPI_Group_from_session_pset(session, is_self ? "mpi://SELF" : "mpi://WORLD", &all);
    MPI_Group_rank(all, &rank);
    MPI_Group_size(all, &size);
    if (strcmp(over, "halves") == 0) {
        int half[1][3] = {{rank % 2, size - 1, 2}};
        MPI_Group_range_incl(all, 1, half, &part);
        MPI_Group_free(&all);
        all = part;
    }
    MPI_Comm_create_from_group(all, "of the victim", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &made);
    MPI_Group_free(&all);
    return made;
}

static MPI_Session session(void)
{
    MPI_Session opened;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &opened);
    return opened;
}

static void use(const char *over, int times)
{
    MPI_Session first = session(), second = MPI_SESSION_NULL;
    MPI_Comm all = communicator(first, over);
    talk(all, times);
    if (strcmp(over, "dies") == 0) {
        int rank;
        MPI_Comm_rank(all, &rank);
        MPI_Barrier(all);
        if (rank == 1)
            raise(SIGKILL);
        MPI_Barrier(all);
    }
    if (strcmp(over, "overlapping") == 0)
        second = session();
    MPI_Comm_free(&all);
    MPI_Session_finalize(&first);
    if (second != MPI_SESSION_NULL) {
        all = communicator(second, over);
        talk(all, times);
        MPI_Comm_free(&all);
        MPI_Session_finalize(&second);
    }
}

static void use_with_init(void)
{
    const char *rank = getenv("PMI_RANK");
    if (!rank)
        rank = getenv("OMPI_COMM_WORLD_RANK");
    MPI_Session opened = MPI_SESSION_NULL;
    if (rank && atoi(rank) == 1)
        opened = session();
    MPI_Init(NULL, NULL);
    talk(MPI_COMM_WORLD, 10);
    if (opened != MPI_SESSION_NULL)
        MPI_Session_finalize(&opened);
    MPI_Finalize();
}

int main(int count, char **words)
{
    const char *over = count > 1 ? words[1] : "all";
    if (strcmp(over, "first") == 0) {
        use_with_init();
        return 0;
    }
    int times = strcmp(over, "totals") == 0 ? 2000 : 10;
    use(over, times);
    if (strcmp(over, "turns") == 0)
        use(over, times);
    if (strcmp(over, "dies_later") == 0)
        use("dies", times);
    return 0;
}
