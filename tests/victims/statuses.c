/* Prints, bit for bit, what MPI writes and returns: statuses with the bytes around them, request and index
   arrays, counts, flags, error codes, results; errno after calls that make no system call. The rank that the
   argument names prints; letters of a second argument omit calls in which the library itself crashes: `a` a
   reduction with MPI_DATATYPE_NULL, `e` erroneous calls. Values that MPI leaves undefined (statuses of sends) are
   not printed. */
#include "victim.h"

#define MOST 40
#define GUARD 64

static int speaks;
static int handled;

/* An array surrounded by bytes that must not change. */
static struct guarded {
    unsigned char before[GUARD];
    union {
        MPI_Status statuses[MOST];
        MPI_Request requests[MOST];
        int ints[4 * MOST];
        unsigned char bytes[MOST * 32];
    } in;
    unsigned char after[GUARD];
} s, q, n, flags;

static void clear(struct guarded *what) { memset(what, 0x5a, sizeof *what); }

static int touched(const struct guarded *what)
{
    for (int i = 0; i < GUARD; i++)
        if (what->before[i] != 0x5a || what->after[i] != 0x5a)
            return 1;
    return 0;
}

static void hex(const void *what, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        printf("%02x", ((const unsigned char *)what)[i]);
}

static void clear_all(void)
{
    clear(&s);
    clear(&n);
    clear(&flags);
}

/* Prints return code and class, flag, first ints, this number of statuses, and guards. */
static void say(const char *what, int code, int statuses)
{
    int class = -1, clean = sizeof(MPI_Status) * statuses;
    if (!speaks)
        return;
    MPI_Error_class(code, &class);
#if defined(MPICH_VERSION) || defined(MPI_ABI_VERSION)
    /* The upper bits are a counter with a different start in each run. */
    code &= 0x3ffff;
#endif
    printf("%s: code %d class %d flag %08x ints %08x %08x %08x statuses ", what, code, class,
           flags.in.ints[0], n.in.ints[0], n.in.ints[1], n.in.ints[2]);
    hex(s.in.statuses, clean);
    /* Nothing is written after these statuses. */
    for (; clean < (int)sizeof s.in && s.in.bytes[clean] == 0x5a; clean++)
        ;
    printf(" untouched behind %d touched %d%d%d%d\n", clean == (int)sizeof s.in, touched(&s), touched(&q),
           touched(&n), touched(&flags));
}

static void say_requests(int count)
{
    if (!speaks)
        return;
    printf("  requests");
    for (int i = 0; i < count; i++)
        printf(" %d", q.in.requests[i] == MPI_REQUEST_NULL);
    printf("\n");
}

static void say_errno(const char *what, int code)
{
    if (speaks)
        printf("%s: code %d errno %d\n", what, code, errno);
    errno = 4711;
}

static void handler(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    (void)code;
    handled++;
}

#define SAY(statuses, call)      \
    do {                         \
        clear_all();             \
        int code_ = call;        \
        say(#call, code_, statuses); \
    } while (0)

static const char *without = "";

static int rank, other, in[64], out[64];
static MPI_Comm comm = MPI_COMM_WORLD;

static void post(int count, int first_tag)
{
    clear(&q);
    for (int i = 0; i < count; i++)
        MPI_Irecv(&in[i], 1, MPI_INT, rank, first_tag + i, comm, &q.in.requests[i]);
}

static void deliver(int elements, int tag) { MPI_Send(out, elements, MPI_INT, rank, tag, comm); }

/* Waits until messages to the rank itself have arrived, which some libraries deliver in pieces: otherwise the number
   that a call finds would be undefined. */
static void settle(int first, int last)
{
    for (int i = first; i <= last; i++)
        for (int done = 0; !done;)
            MPI_Request_get_status(q.in.requests[i], &done, MPI_STATUS_IGNORE);
}

static void between_ranks(void)
{
    MPI_Message message;
    clear(&q);
    MPI_Irecv(in, 8, MPI_INT, other, 1, comm, &q.in.requests[0]);
    MPI_Send(out, 3, MPI_INT, other, 1, comm);
    SAY(1, MPI_Wait(&q.in.requests[0], &s.in.statuses[0]));
    say_requests(1);
    SAY(1, MPI_Sendrecv(out, 2, MPI_INT, other, 2, in, 8, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm,
                        &s.in.statuses[0]));
    SAY(1, MPI_Sendrecv_replace(out, 2, MPI_INT, other, 3, other, 3, comm, &s.in.statuses[0]));
    MPI_Send(out, 5, MPI_INT, other, 4, comm);
    SAY(1, MPI_Probe(other, MPI_ANY_TAG, comm, &s.in.statuses[0]));
    SAY(1, MPI_Iprobe(MPI_ANY_SOURCE, 4, comm, &flags.in.ints[0], &s.in.statuses[0]));
    SAY(1, MPI_Recv(in, 8, MPI_INT, other, 4, comm, &s.in.statuses[0]));
    MPI_Send(out, 6, MPI_INT, other, 5, comm);
    SAY(1, MPI_Mprobe(other, 5, comm, &message, &s.in.statuses[0]));
    SAY(1, MPI_Mrecv(in, 8, MPI_INT, &message, &s.in.statuses[0]));
    SAY(1, MPI_Improbe(other, 5, comm, &flags.in.ints[0], &message, &s.in.statuses[0]));
    SAY(1, MPI_Iprobe(other, 5, comm, &flags.in.ints[0], &s.in.statuses[0]));
    SAY(0, MPI_Iprobe(other, 5, comm, &flags.in.ints[0], MPI_STATUS_IGNORE));
    SAY(1, MPI_Recv(in, 8, MPI_INT, MPI_PROC_NULL, 4, comm, &s.in.statuses[0]));
    SAY(1, MPI_Probe(MPI_PROC_NULL, 4, comm, &s.in.statuses[0]));
    /* Too long for the receive buffer. */
    MPI_Send(out, 4, MPI_INT, other, 6, comm);
    SAY(0, MPI_Recv(in, 1, MPI_INT, other, 6, comm, MPI_STATUS_IGNORE));
    MPI_Barrier(comm);
}

static void to_oneself(void)
{
    clear(&q);
    q.in.requests[0] = MPI_REQUEST_NULL;
    SAY(1, MPI_Wait(&q.in.requests[0], &s.in.statuses[0]));
    SAY(1, MPI_Test(&q.in.requests[0], &flags.in.ints[0], &s.in.statuses[0]));
    post(1, 10);
    SAY(1, MPI_Test(&q.in.requests[0], &flags.in.ints[0], &s.in.statuses[0]));
    SAY(1, MPI_Request_get_status(q.in.requests[0], &flags.in.ints[0], &s.in.statuses[0]));
    deliver(1, 10);
    settle(0, 0);
    SAY(1, MPI_Request_get_status(q.in.requests[0], &flags.in.ints[0], &s.in.statuses[0]));
    SAY(1, MPI_Test(&q.in.requests[0], &flags.in.ints[0], &s.in.statuses[0]));
    say_requests(1);
    for (int count = 3; count <= MOST; count += MOST - 3) {
        for (int ignored = 0; ignored < 2; ignored++) {
            MPI_Status *statuses = ignored ? MPI_STATUSES_IGNORE : s.in.statuses;
            int written = ignored ? 0 : count;
            post(count, 100);
            SAY(0, MPI_Testall(count, q.in.requests, &flags.in.ints[0], statuses));
            SAY(0, MPI_Testsome(count, q.in.requests, &n.in.ints[0], &n.in.ints[1], statuses));
            SAY(0, MPI_Testany(count, q.in.requests, &n.in.ints[0], &flags.in.ints[0],
                               ignored ? MPI_STATUS_IGNORE : statuses));
            for (int i = 2; i < count; i++)
                deliver(1, 100 + i);
            settle(2, count - 1);
            SAY(ignored ? 0 : count - 2,
                MPI_Waitsome(count, q.in.requests, &n.in.ints[0], &n.in.ints[1], statuses));
            say_requests(count);
            deliver(1, 101);
            settle(1, 1);
            SAY(!ignored, MPI_Waitany(count, q.in.requests, &n.in.ints[0],
                                      ignored ? MPI_STATUS_IGNORE : statuses));
            deliver(1, 100);
            settle(0, 0);
            SAY(!ignored, MPI_Testany(count, q.in.requests, &n.in.ints[0], &flags.in.ints[0],
                                      ignored ? MPI_STATUS_IGNORE : statuses));
            say_requests(count);
            SAY(0, MPI_Testsome(count, q.in.requests, &n.in.ints[0], &n.in.ints[1], statuses));
            SAY(!ignored, MPI_Testany(count, q.in.requests, &n.in.ints[0], &flags.in.ints[0],
                                      ignored ? MPI_STATUS_IGNORE : statuses));
            SAY(written, MPI_Waitall(count, q.in.requests, statuses));
            post(count, 200);
            for (int i = 0; i < count; i++)
                deliver(1, 200 + i);
            SAY(written, MPI_Waitall(count, q.in.requests, statuses));
            say_requests(count);
            post(count, 200);
            for (int i = 0; i < count; i++)
                deliver(1, 200 + i);
            settle(0, count - 1);
            SAY(written, MPI_Testall(count, q.in.requests, &flags.in.ints[0], statuses));
            /* One of several messages is too long, with each call that can report it. */
            post(count, 300);
            for (int i = 0; i < count; i++)
                deliver(i == 1 ? 2 : 1, 300 + i);
            SAY(0, MPI_Waitall(count, q.in.requests, MPI_STATUSES_IGNORE));
            say_requests(count);
            post(count, 300);
            for (int i = 0; i < count; i++)
                deliver(i == 1 ? 2 : 1, 300 + i);
            settle(0, count - 1);
            SAY(0, MPI_Waitsome(count, q.in.requests, &n.in.ints[0], &n.in.ints[1], MPI_STATUSES_IGNORE));
            say_requests(count);
            post(count, 300);
            for (int i = 0; i < count; i++)
                deliver(i == 1 || i == 2 ? 2 : 1, 300 + i);
            settle(0, count - 1);
            SAY(0, MPI_Testall(count, q.in.requests, &flags.in.ints[0], MPI_STATUSES_IGNORE));
            say_requests(count);
        }
    }
    /* Messages that are too long, among requests that are not plain receives. */
    MPI_Errhandler own;
    for (int swallowed = 0; swallowed < 2; swallowed++) {
        if (swallowed) {
            MPI_Comm_create_errhandler(handler, &own);
            MPI_Comm_set_errhandler(MPI_COMM_WORLD, own);
            MPI_Comm_set_errhandler(MPI_COMM_SELF, own);
        }
        for (int mixed = 0; mixed < 3; mixed++) {
            post(4, 600);
            for (int i = 0; i < 4; i++)
                deliver(i == 1 ? 2 : 1, 600 + i);
            if (mixed) {
                MPI_Wait(&q.in.requests[2], MPI_STATUS_IGNORE);
                if (mixed == 2)
                    MPI_Isend(out, 0, MPI_INT, MPI_PROC_NULL, 1, comm, &q.in.requests[2]);
            }
            handled = 0;
            SAY(0, MPI_Waitall(4, q.in.requests, MPI_STATUSES_IGNORE));
            say_requests(4);
            if (speaks)
                printf("handler called %d times\n", handled);
        }
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Errhandler_free(&own);
    post(2, 400);
    deliver(2, 400);
    deliver(2, 401);
    SAY(2, MPI_Waitall(2, q.in.requests, s.in.statuses));
    post(2, 400);
    deliver(2, 400);
    deliver(2, 401);
    settle(0, 1);
    SAY(0, MPI_Waitany(2, q.in.requests, &n.in.ints[0], MPI_STATUS_IGNORE));
    SAY(0, MPI_Wait(&q.in.requests[1], MPI_STATUS_IGNORE));
    SAY(0, MPI_Waitall(0, q.in.requests, s.in.statuses));

    /* Persistent, inactive and cancelled. */
    clear(&q);
    MPI_Recv_init(in, 8, MPI_INT, rank, 500, comm, &q.in.requests[0]);
    SAY(1, MPI_Wait(&q.in.requests[0], &s.in.statuses[0]));
    SAY(1, MPI_Test(&q.in.requests[0], &flags.in.ints[0], &s.in.statuses[0]));
    MPI_Start(&q.in.requests[0]);
    deliver(7, 500);
    SAY(1, MPI_Wait(&q.in.requests[0], &s.in.statuses[0]));
    say_requests(1);
    SAY(1, MPI_Waitall(1, q.in.requests, s.in.statuses));
    SAY(0, MPI_Request_free(&q.in.requests[0]));
    post(1, 501);
    SAY(0, MPI_Cancel(&q.in.requests[0]));
    clear_all();
    MPI_Wait(&q.in.requests[0], &s.in.statuses[0]);
    MPI_Test_cancelled(&s.in.statuses[0], &flags.in.ints[0]);
    memset(&s, 0x5a, sizeof s);
    say("cancelled", 0, 0);
}

static void errors(void)
{
    MPI_Errhandler own;
    MPI_Comm twin;
    int type_size = -1;
    MPI_Comm_create_errhandler(handler, &own);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, own);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, own);
    MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    clear(&q);
    q.in.requests[0] = MPI_REQUEST_NULL;
    SAY(0, MPI_Send(out, 1, MPI_DATATYPE_NULL, other, 1, comm));
    SAY(0, MPI_Send(out, 1, MPI_DATATYPE_NULL, other, 1, twin));
    SAY(0, MPI_Send(out, -1, MPI_INT, other, 1, comm));
    SAY(0, MPI_Send(out, 1, MPI_INT, 99, 1, comm));
    SAY(0, MPI_Send(out, 1, MPI_INT, other, -77, comm));
    SAY(0, MPI_Send(out, 1, MPI_INT, other, 1, MPI_COMM_NULL));
    SAY(0, MPI_Recv(in, 1, MPI_DATATYPE_NULL, other, 1, comm, MPI_STATUS_IGNORE));
    SAY(0, MPI_Irecv(in, 1, MPI_INT, 99, 1, comm, &q.in.requests[0]));
    SAY(0, MPI_Bcast(in, 1, MPI_INT, 99, comm));
    SAY(0, MPI_Bcast(in, 1, MPI_INT, 0, MPI_COMM_NULL));
    if (!strchr(without, 'a'))
        SAY(0, MPI_Allreduce(in, out, 1, MPI_DATATYPE_NULL, MPI_SUM, comm));
    SAY(0, MPI_Wait(NULL, MPI_STATUS_IGNORE));
    SAY(0, MPI_Test(NULL, &flags.in.ints[0], MPI_STATUS_IGNORE));
    SAY(0, MPI_Waitall(2, NULL, MPI_STATUSES_IGNORE));
    SAY(0, MPI_Waitall(-1, q.in.requests, MPI_STATUSES_IGNORE));
    SAY(0, MPI_Start(&q.in.requests[0]));
    SAY(0, MPI_Type_size(MPI_DATATYPE_NULL, &type_size));
    SAY(0, MPI_Comm_dup(MPI_COMM_NULL, &twin));
    if (speaks)
        printf("handler called %d times\n", handled);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
}

static void local_calls(void)
{
    MPI_Datatype type;
    MPI_Group group;
    int size = 0, position = 0;
    char buffer[64];
    errno = 4711;
    say_errno("rank", MPI_Comm_rank(comm, &size));
    say_errno("type", MPI_Type_contiguous(3, MPI_INT, &type));
    say_errno("commit", MPI_Type_commit(&type));
    say_errno("size", MPI_Type_size(type, &size));
    say_errno("pack", MPI_Pack(out, 1, type, buffer, sizeof buffer, &position, comm));
    say_errno("self", MPI_Allreduce(MPI_IN_PLACE, out, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF));
    say_errno("free", MPI_Type_free(&type));
    say_errno("group", MPI_Comm_group(comm, &group));
    say_errno("free group", MPI_Group_free(&group));
    say_errno("name", MPI_Comm_set_name(comm, "named"));
    for (int i = 0; i < 40000; i++)
        MPI_Comm_rank(comm, &size);
    say_errno("40000 ranks", 0);
}

static void results(void)
{
    double values[16], sums[16];
    for (int i = 0; i < 16; i++)
        values[i] = 1.0 / (1 + i + 3 * rank);
    MPI_Allreduce(values, sums, 16, MPI_DOUBLE, MPI_SUM, comm);
    MPI_Scan(MPI_IN_PLACE, values, 16, MPI_DOUBLE, MPI_PROD, comm);
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, values, 8, MPI_DOUBLE, comm);
    MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, sums, 8, MPI_DOUBLE, comm);
    if (!speaks)
        return;
    printf("results ");
    hex(values, sizeof values);
    hex(sums, sizeof sums);
    printf("\n");
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(comm, &rank);
    other = 1 - rank;
    speaks = rank == atoi(argv[1]);
    if (argc > 2)
        without = argv[2];
    clear(&q);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    between_ranks();
    to_oneself();
    if (!strchr(without, 'e'))
        errors();
    local_calls();
    results();
    MPI_Finalize();
    return 0;
}
