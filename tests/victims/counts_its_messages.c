/* Many messages of all kinds between all ranks, counted by the program's own wrappers: each rank writes its
   messages and bytes to each other world rank into the file counts-RANK. */
#include "victim.h"

#define ROUNDS 60
#define MOST_RANKS 8
#define LARGE 40000

static int rank, size;
static long messages[MOST_RANKS], bytes[MOST_RANKS];
/* The request of the only persistent send. */
static MPI_Request persistent;
static int persistent_to;
static long persistent_bytes;

static int world_rank(int peer, MPI_Comm comm)
{
    MPI_Group group, world;
    int translated = -1;
    PMPI_Comm_group(comm, &group);
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    PMPI_Group_translate_ranks(group, 1, &peer, world, &translated);
    PMPI_Group_free(&group);
    PMPI_Group_free(&world);
    return translated;
}

static void count_message(int count, MPI_Datatype type, int peer, MPI_Comm comm)
{
    int of_one = 0, to;
    if (peer == MPI_PROC_NULL)
        return;
    to = world_rank(peer, comm);
    PMPI_Type_size(type, &of_one);
    messages[to]++;
    bytes[to] += (long)count * of_one;
}

#define BLOCKING(name)                                                                              \
    int MPI_##name(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)  \
    {                                                                                               \
        count_message(count, type, to, comm);                                                       \
        return PMPI_##name(data, count, type, to, tag, comm);                                       \
    }
#define NON_BLOCKING(name)                                                                          \
    int MPI_##name(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,  \
                   MPI_Request *request)                                                            \
    {                                                                                               \
        count_message(count, type, to, comm);                                                       \
        return PMPI_##name(data, count, type, to, tag, comm, request);                              \
    }
BLOCKING(Send)
BLOCKING(Ssend)
BLOCKING(Bsend)
BLOCKING(Rsend)
NON_BLOCKING(Isend)
NON_BLOCKING(Issend)
NON_BLOCKING(Ibsend)
NON_BLOCKING(Irsend)

int MPI_Sendrecv(const void *out, int count, MPI_Datatype type, int to, int tag, void *in, int room,
                 MPI_Datatype in_type, int from, int in_tag, MPI_Comm comm, MPI_Status *status)
{
    count_message(count, type, to, comm);
    return PMPI_Sendrecv(out, count, type, to, tag, in, room, in_type, from, in_tag, comm, status);
}

int MPI_Send_init(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                  MPI_Request *request)
{
    int of_one = 0, code = PMPI_Send_init(data, count, type, to, tag, comm, request);
    PMPI_Type_size(type, &of_one);
    persistent = *request;
    persistent_to = world_rank(to, comm);
    persistent_bytes = (long)count * of_one;
    return code;
}

int MPI_Start(MPI_Request *request)
{
    if (*request == persistent) {
        messages[persistent_to]++;
        bytes[persistent_to] += persistent_bytes;
    }
    return PMPI_Start(request);
}

/* A number that all ranks know. */
static unsigned chosen(unsigned from, unsigned to, unsigned round, unsigned what)
{
    unsigned mixed = from * 2654435761u ^ to * 2246822519u ^ round * 3266489917u ^ what * 668265263u;
    mixed ^= mixed >> 15;
    mixed *= 2246822519u;
    return mixed ^ mixed >> 13;
}

static int elements(int from, int to, int round)
{
    unsigned number = chosen(from, to, round, 1);
    return number % 16 == 0 ? LARGE : number % 50;
}

int main(int argc, char **argv)
{
    static double in[MOST_RANKS][LARGE], out[LARGE];
    char *buffer = malloc(1 << 24), name[32];
    MPI_Comm reversed, twin;
    MPI_Datatype kinds[3] = {MPI_INT, MPI_CHAR};
    int detached;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
    MPI_Type_vector(2, 1, 1, MPI_FLOAT, &kinds[2]);
    MPI_Type_commit(&kinds[2]);
    MPI_Buffer_attach(buffer, 1 << 24);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Comm comm = round % 3 == 0 ? MPI_COMM_WORLD : round % 3 == 1 ? twin : reversed;
        int me = comm == reversed ? size - 1 - rank : rank, posted = 0, started = 0, index;
        MPI_Request receives[MOST_RANKS], sends[MOST_RANKS];
        for (int from = 0; from < size; from++)
            if (from != me)
                MPI_Irecv(in[from], sizeof in[from], MPI_BYTE, round % 2 ? from : MPI_ANY_SOURCE,
                          round % 4 < 2 ? round : MPI_ANY_TAG, comm, &receives[posted++]);
        /* Every receive is posted: a ready send may be used. */
        MPI_Barrier(comm);
        for (int to = 0; to < size; to++) {
            MPI_Datatype type = kinds[chosen(me, to, round, 2) % 3];
            int count = elements(me, to, round);
            if (to == me)
                continue;
            switch (chosen(me, to, round, 3) % 9) {
            case 0: MPI_Send(out, count, type, to, round, comm); break;
            case 1: MPI_Ssend(out, count, type, to, round, comm); break;
            case 2: MPI_Bsend(out, count, type, to, round, comm); break;
            case 3: MPI_Rsend(out, count, type, to, round, comm); break;
            case 4: MPI_Isend(out, count, type, to, round, comm, &sends[started++]); break;
            case 5: MPI_Issend(out, count, type, to, round, comm, &sends[started++]); break;
            case 6: MPI_Ibsend(out, count, type, to, round, comm, &sends[started++]); break;
            case 7: MPI_Irsend(out, count, type, to, round, comm, &sends[started++]); break;
            default:
                MPI_Sendrecv(out, count, type, to, round, in[me], 0, MPI_INT, MPI_PROC_NULL, 0, comm,
                             MPI_STATUS_IGNORE);
            }
        }
        if (round % 2)
            MPI_Waitall(posted, receives, MPI_STATUSES_IGNORE);
        else
            for (int i = 0; i < posted; i++)
                MPI_Waitany(posted, receives, &index, MPI_STATUS_IGNORE);
        MPI_Waitall(started, sends, MPI_STATUSES_IGNORE);
    }
    /* A ring of started messages. */
    MPI_Request ring[2];
    MPI_Recv_init(in[0], 100, MPI_INT, (rank + size - 1) % size, 7, twin, &ring[0]);
    MPI_Send_init(out, 10 + rank, MPI_INT, (rank + 1) % size, 7, twin, &ring[1]);
    for (int i = 0; i < 5; i++) {
        MPI_Start(&ring[0]);
        MPI_Start(&ring[1]);
        MPI_Waitall(2, ring, MPI_STATUSES_IGNORE);
    }
    MPI_Request_free(&ring[0]);
    MPI_Request_free(&ring[1]);
    MPI_Buffer_detach(&buffer, &detached);
    snprintf(name, sizeof name, "counts-%d", rank);
    FILE *file = fopen(name, "w");
    for (int to = 0; file && to < size; to++)
        fprintf(file, "%ld %ld\n", messages[to], bytes[to]);
    if (!file || fclose(file) != 0)
        return 70;
    MPI_Finalize();
    return 0;
}
