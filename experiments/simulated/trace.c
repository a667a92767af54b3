// Writes what a simulated program does as a Paraver trace, in simulated time: calls, messages,
// collective operations. Link it with the program and set SIMULATED_TRACE to the file's name. Also prints the
// time from MPI_Init to MPI_Finalize (elapsed,SECONDS).
//
// With SIMULATED_PART the trace begins with the first MPI_Pcontrol(1) and ends with the last MPI_Pcontrol(0), as
// does the time in simulated.csv: ranks that come later are in MPI_Init until then.
//
// All ranks run in one process (smpirun -no-privatize), one at a time and in order of simulated time, so
// one buffer takes the events of all. Only the MPI functions that the programs use are wrapped.
#include <mpi.h>
#include <simgrid/engine.h>
#include <simgrid/host.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_RANKS = 256, MAX_COMMUNICATORS = 1024 };

// Extrae's event types and numbers of functions.
enum { POINT_TO_POINT = 50000001, COLLECTIVE = 50000002, OTHER = 50000003 };
enum { SENT = 50100001, RECEIVED = 50100002, IS_ROOT = 50100003, COMMUNICATOR = 50100004 };
enum {
    SEND = 1, RECV = 2, ISEND = 3, IRECV = 4, WAITALL = 6, BCAST = 7, BARRIER = 8, ALLREDUCE = 10,
    ALLTOALL = 11, GATHER = 13, ALLGATHER = 17, INIT = 31, FINALIZE = 32, SENDRECV = 41, CART_CREATE = 43,
    CART_SUB = 49
};

// Half of a message; nanoseconds.
struct send {
    long long at, bytes;
    int tag;
    struct send *next;
};
struct receive {
    long long at, end, sent, bytes;
    int rank, from, tag;
    MPI_Comm comm;
    MPI_Request request;
    struct receive *next;
};

static char *events;
static size_t events_size;
static FILE *out;
static int p, left, nodes, node_of[MAX_RANKS];
static long long begin;
static int is_part, on[MAX_RANKS];
// What the trace takes for 0 and for its end.
static long long origin = -1, end;
// The event with which each rank begins there, before all others.
static FILE *first;
static char *first_events;
static size_t first_events_size;
// Sends without a receive, by sender and receiver, in order.
static struct send *sends[MAX_RANKS][MAX_RANKS];
// Receives in the order in which they were posted.
static struct receive *receives, **last_receive = &receives;
static int communicators, sizes[MAX_COMMUNICATORS], members[MAX_COMMUNICATORS][MAX_RANKS];

static long long now(void) {
    return (long long)(simgrid_get_clock() * 1e9 + 0.5) - (origin > 0 ? origin : 0);
}

static int self(void) {
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

static int size_of(MPI_Comm comm) {
    int size;
    PMPI_Comm_size(comm, &size);
    return size;
}

static long long bytes_of(int count, MPI_Datatype type) {
    int size;
    PMPI_Type_size(type, &size);
    return (long long)count * size;
}

static void world_ranks(MPI_Comm comm, int count, const int *ranks, int *in_world) {
    MPI_Group group, world;
    PMPI_Comm_group(comm, &group);
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    PMPI_Group_translate_ranks(group, count, ranks, world, in_world);
    PMPI_Group_free(&group);
    PMPI_Group_free(&world);
}

// The number of a communicator, from 1 on; those with the same members have the same number.
static int number_of(MPI_Comm comm) {
    int count = size_of(comm), ranks[MAX_RANKS], in_world[MAX_RANKS];
    for (int rank = 0; rank < count; rank++)
        ranks[rank] = rank;
    world_ranks(comm, count, ranks, in_world);
    for (int number = 0; number < communicators; number++)
        if (sizes[number] == count && !memcmp(members[number], in_world, sizeof(int) * (size_t)count))
            return number + 1;
    if (communicators == MAX_COMMUNICATORS)
        abort();
    memcpy(members[communicators], in_world, sizeof(int) * (size_t)count);
    sizes[communicators] = count;
    return ++communicators;
}

static void event(int type, int value) {
    int task = self() + 1;
    fprintf(out, "2:%d:1:%d:1:%lld:%d:%d", task, task, now(), type, value);
}

static void enter(int type, int function) {
    if (!on[self()])
        return;
    event(type, function);
    fputc('\n', out);
}

static int leave(int type, int result) {
    if (!on[self()])
        return result;
    event(type, 0);
    fputc('\n', out);
    return result;
}

// `root` is -1 for operations without one.
static void enter_collective(int function, MPI_Comm comm, int root, long long sent, long long received) {
    if (!on[self()])
        return;
    event(COLLECTIVE, function);
    fprintf(out, ":%d:%lld:%d:%lld:%d:%d", SENT, sent, RECEIVED, received, COMMUNICATOR, number_of(comm));
    int rank;
    PMPI_Comm_rank(comm, &rank);
    if (rank == root)
        fprintf(out, ":%d:1", IS_ROOT);
    fputc('\n', out);
}

static void sends_to(int peer, int tag, long long bytes, MPI_Comm comm) {
    if (peer == MPI_PROC_NULL)
        return;
    int to;
    world_ranks(comm, 1, &peer, &to);
    struct send **end = &sends[self()][to], *send = malloc(sizeof *send);
    *send = (struct send){.at = now(), .bytes = bytes, .tag = tag};
    while (*end)
        end = &(*end)->next;
    *end = send;
}

static struct receive *posts(int peer, int tag, MPI_Comm comm) {
    if (peer == MPI_PROC_NULL)
        return NULL;
    struct receive *receive = calloc(1, sizeof *receive);
    receive->at = now(), receive->rank = self(), receive->comm = comm;
    receive->from = peer, receive->tag = tag;
    *last_receive = receive;
    last_receive = &receive->next;
    return receive;
}

// Completes a receive: messages of a pair with the same tag do not overtake each other.
static void completes(struct receive *receive, const MPI_Status *status) {
    if (!receive)
        return;
    // SMPI 3.32 gives the wrong source for messages of a rank to itself.
    int from = receive->from == MPI_ANY_SOURCE ? status->MPI_SOURCE : receive->from;
    int tag = receive->tag == MPI_ANY_TAG ? status->MPI_TAG : receive->tag;
    world_ranks(receive->comm, 1, &from, &receive->from);
    struct send **at = &sends[receive->from][receive->rank];
    while ((*at)->tag != tag)
        at = &(*at)->next;
    struct send *send = *at;
    *at = send->next;
    receive->end = now(), receive->tag = tag, receive->sent = send->at, receive->bytes = send->bytes;
    receive->request = MPI_REQUEST_NULL;
    free(send);
}

int MPI_Init(int *argc, char ***argv) {
    int result = PMPI_Init(argc, argv);
    PMPI_Comm_size(MPI_COMM_WORLD, &p);
    if (p > MAX_RANKS)
        abort();
    if (!out) {
        out = open_memstream(&events, &events_size);
        begin = now();
        is_part = getenv("SIMULATED_PART") != NULL;
    }
    on[self()] = !is_part;
    // Hosts are named host-0, host-1, …
    int node = atoi(strchr(sg_host_self_get_name(), '-') + 1);
    node_of[self()] = node;
    nodes = node >= nodes ? node + 1 : nodes;
    enter(OTHER, INIT);
    return leave(OTHER, result);
}

int MPI_Pcontrol(const int level, ...) {
    if (!is_part)
        return MPI_SUCCESS;
    if (level) {
        if (origin < 0) {
            origin = now();
            first = open_memstream(&first_events, &first_events_size);
        }
        on[self()] = 1;
        int task = self() + 1;
        fprintf(first, "2:%d:1:%d:1:0:%d:%d\n", task, task, OTHER, INIT);
        return leave(OTHER, MPI_SUCCESS);
    }
    enter(OTHER, FINALIZE);
    leave(OTHER, 0);
    on[self()] = 0;
    end = now();
    return MPI_SUCCESS;
}

static void write_trace(FILE *file) {
    fprintf(file, "#Paraver (01/01/26 at 00:00):%lld_ns:%d(%d", is_part ? end : now(), nodes, p);
    for (int node = 1; node < nodes; node++)
        fprintf(file, ",%d", p);
    fprintf(file, "):1:%d(", p);
    for (int rank = 0; rank < p; rank++)
        fprintf(file, "%s1:%d", rank ? "," : "", node_of[rank] + 1);
    fprintf(file, "),%d\n", communicators);
    for (int number = 0; number < communicators; number++) {
        fprintf(file, "c:1:%d:%d", number + 1, sizes[number]);
        for (int rank = 0; rank < sizes[number]; rank++)
            fprintf(file, ":%d", members[number][rank] + 1);
        fputc('\n', file);
    }
    for (const struct receive *m = receives; m; m = m->next)
        fprintf(file, "3:%d:1:%d:1:%lld:%lld:%d:1:%d:1:%lld:%lld:%lld:%d\n", m->from + 1, m->from + 1, m->sent,
                m->sent, m->rank + 1, m->rank + 1, m->at, m->end, m->bytes, m->tag);
    if (first) {
        fclose(first);
        fwrite(first_events, 1, first_events_size, file);
    }
    fwrite(events, 1, events_size, file);
}

int MPI_Finalize(void) {
    enter(OTHER, FINALIZE);
    leave(OTHER, 0);
    const char *name = getenv("SIMULATED_TRACE");
    if (++left == p) {
        fclose(out);
        printf("elapsed,%.9f\n", (double)(now() - begin) / 1e9);
        fflush(stdout);
    }
    if (left == p && name) {
        FILE *file = fopen(name, "w");
        if (!file) {
            perror(name);
            exit(1);
        }
        write_trace(file);
        fclose(file);
    }
    return PMPI_Finalize();
}

int MPI_Send(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
    enter(POINT_TO_POINT, SEND);
    sends_to(to, tag, bytes_of(count, type), comm);
    return leave(POINT_TO_POINT, PMPI_Send(data, count, type, to, tag, comm));
}

int MPI_Isend(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request) {
    enter(POINT_TO_POINT, ISEND);
    sends_to(to, tag, bytes_of(count, type), comm);
    return leave(POINT_TO_POINT, PMPI_Isend(data, count, type, to, tag, comm, request));
}

int MPI_Recv(void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *wanted) {
    enter(POINT_TO_POINT, RECV);
    struct receive *receive = posts(from, tag, comm);
    MPI_Status status;
    int result = PMPI_Recv(data, count, type, from, tag, comm, &status);
    completes(receive, &status);
    if (wanted != MPI_STATUS_IGNORE)
        *wanted = status;
    return leave(POINT_TO_POINT, result);
}

int MPI_Irecv(void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request) {
    enter(POINT_TO_POINT, IRECV);
    struct receive *receive = posts(from, tag, comm);
    int result = PMPI_Irecv(data, count, type, from, tag, comm, request);
    if (receive)
        receive->request = *request;
    return leave(POINT_TO_POINT, result);
}

int MPI_Waitall(int count, MPI_Request *requests, MPI_Status *wanted) {
    enter(POINT_TO_POINT, WAITALL);
    struct receive *waiting[count];
    for (int i = 0; i < count; i++) {
        waiting[i] = receives;
        while (waiting[i] && (waiting[i]->request != requests[i] || waiting[i]->end))
            waiting[i] = waiting[i]->next;
    }
    MPI_Status statuses[count];
    int result = PMPI_Waitall(count, requests, statuses);
    for (int i = 0; i < count; i++) {
        completes(waiting[i], &statuses[i]);
        if (wanted != MPI_STATUSES_IGNORE)
            wanted[i] = statuses[i];
    }
    return leave(POINT_TO_POINT, result);
}

int MPI_Sendrecv(const void *data, int count, MPI_Datatype type, int to, int tag, void *into, int into_count,
                 MPI_Datatype into_type, int from, int from_tag, MPI_Comm comm, MPI_Status *wanted) {
    enter(POINT_TO_POINT, SENDRECV);
    sends_to(to, tag, bytes_of(count, type), comm);
    struct receive *receive = posts(from, from_tag, comm);
    MPI_Status status;
    int result = PMPI_Sendrecv(data, count, type, to, tag, into, into_count, into_type, from, from_tag, comm, &status);
    completes(receive, &status);
    if (wanted != MPI_STATUS_IGNORE)
        *wanted = status;
    return leave(POINT_TO_POINT, result);
}

int MPI_Barrier(MPI_Comm comm) {
    enter_collective(BARRIER, comm, -1, 0, 0);
    return leave(COLLECTIVE, PMPI_Barrier(comm));
}

int MPI_Bcast(void *data, int count, MPI_Datatype type, int root, MPI_Comm comm) {
    int rank;
    PMPI_Comm_rank(comm, &rank);
    long long bytes = bytes_of(count, type);
    enter_collective(BCAST, comm, root, rank == root ? bytes : 0, rank == root ? 0 : bytes);
    return leave(COLLECTIVE, PMPI_Bcast(data, count, type, root, comm));
}

int MPI_Allreduce(const void *data, void *into, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    enter_collective(ALLREDUCE, comm, -1, bytes_of(count, type), bytes_of(count, type));
    return leave(COLLECTIVE, PMPI_Allreduce(data, into, count, type, op, comm));
}

int MPI_Alltoall(const void *data, int count, MPI_Datatype type, void *into, int into_count, MPI_Datatype into_type,
                 MPI_Comm comm) {
    long long all = size_of(comm);
    enter_collective(ALLTOALL, comm, -1, all * bytes_of(count, type), all * bytes_of(into_count, into_type));
    return leave(COLLECTIVE, PMPI_Alltoall(data, count, type, into, into_count, into_type, comm));
}

int MPI_Gather(const void *data, int count, MPI_Datatype type, void *into, int into_count, MPI_Datatype into_type,
               int root, MPI_Comm comm) {
    int rank;
    PMPI_Comm_rank(comm, &rank);
    long long received = rank == root ? size_of(comm) * bytes_of(into_count, into_type) : 0;
    enter_collective(GATHER, comm, root, bytes_of(count, type), received);
    return leave(COLLECTIVE, PMPI_Gather(data, count, type, into, into_count, into_type, root, comm));
}

int MPI_Allgather(const void *data, int count, MPI_Datatype type, void *into, int into_count, MPI_Datatype into_type,
                  MPI_Comm comm) {
    long long received = size_of(comm) * bytes_of(into_count, into_type);
    enter_collective(ALLGATHER, comm, -1, bytes_of(count, type), received);
    return leave(COLLECTIVE, PMPI_Allgather(data, count, type, into, into_count, into_type, comm));
}

// Communicators that a rank has made: when the program is repeated, it gets them again. What their creation
// costs is not what is compared.
struct made {
    MPI_Comm from, comm;
    int function, dimensions, arguments[3];
    struct made *next;
};
static struct made *made[MAX_RANKS];

static MPI_Comm *made_before(MPI_Comm from, int function, int dimensions, const int *arguments) {
    struct made *one = made[self()];
    size_t bytes = sizeof(int) * (size_t)dimensions;
    while (one && !(one->from == from && one->function == function && one->dimensions == dimensions &&
                    !memcmp(one->arguments, arguments, bytes)))
        one = one->next;
    if (!one) {
        one = calloc(1, sizeof *one);
        *one = (struct made){from, MPI_COMM_NULL, function, dimensions, {0}, made[self()]};
        memcpy(one->arguments, arguments, bytes);
        made[self()] = one;
    }
    return &one->comm;
}

int MPI_Cart_create(MPI_Comm comm, int dimensions, const int *extents, const int *periodic, int reorder, MPI_Comm *grid) {
    MPI_Comm *before = made_before(comm, CART_CREATE, dimensions, extents);
    if (*before == MPI_COMM_NULL) {
        enter(OTHER, CART_CREATE);
        leave(OTHER, PMPI_Cart_create(comm, dimensions, extents, periodic, reorder, before));
    }
    *grid = *before;
    return MPI_SUCCESS;
}

int MPI_Cart_sub(MPI_Comm comm, const int *remain, MPI_Comm *part) {
    int dimensions;
    PMPI_Cartdim_get(comm, &dimensions);
    MPI_Comm *before = made_before(comm, CART_SUB, dimensions, remain);
    if (*before == MPI_COMM_NULL) {
        enter(OTHER, CART_SUB);
        leave(OTHER, PMPI_Cart_sub(comm, remain, before));
    }
    *part = *before;
    return MPI_SUCCESS;
}
