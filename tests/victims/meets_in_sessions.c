/* Makes communicators of all processes from sessions, in ways in which a recorder that talks to the other ranks
 * meanwhile could hang, or change what the program sees. The first word says which:
 * `twice`     one after the other; no message may wait on a new communicator, and its error handler is the program's
 * `threads`   two threads make one each; on every other rank the second thread comes first
 * `many`      like `threads`, ten rounds without any order
 * `init`      MPI_Init after it, on rank 1 a second later; then another one
 * `cross`     rank 1 calls MPI_Init only after it has received from rank 0, which has called it before
 * `strict`    sessions whose finalize fails if anything made from them is left
 * `reversed`  of all processes in reverse order
 * `empty`     also of no process, which gives MPI_COMM_NULL
 * `turns`     sessions are opened again after the last one was finalized, by two threads at once
 * `closes`    rank 1 closes the recorder's sockets before */
#include "victim.h"

#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>

static int world_rank, world_size;
static const char *how;

static void expect(int holds, int line)
{
    if (!holds) {
        fprintf(stderr, "meets_in_sessions %s: rank %d: line %d\n", how, world_rank, line);
        _exit(3);
    }
}
#define EXPECT(holds) expect((holds) != 0, __LINE__)

static MPI_Session opened(const char *key, const char *value)
{
    MPI_Session session;
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, key, value);
    EXPECT(MPI_Session_init(info, MPI_ERRORS_RETURN, &session) == MPI_SUCCESS);
    MPI_Info_free(&info);
    return session;
}

static MPI_Comm of_all(MPI_Session session, const char *tag)
{
    MPI_Group all;
    MPI_Comm made;
    MPI_Group_from_session_pset(session, "mpi://WORLD", &all);
    MPI_Group_rank(all, &world_rank);
    MPI_Group_size(all, &world_size);
    if (strcmp(how, "reversed") == 0) {
        int range[1][3] = {{world_size - 1, 0, -1}};
        MPI_Group back;
        MPI_Group_range_incl(all, 1, range, &back);
        MPI_Group_free(&all);
        all = back;
    }
    EXPECT(MPI_Comm_create_from_group(all, tag, MPI_INFO_NULL, MPI_ERRORS_RETURN, &made) == MPI_SUCCESS);
    MPI_Group_free(&all);
    return made;
}

/* Uses a new communicator. Nothing of another's may be on it. */
static void use(MPI_Comm all)
{
    int rank, size, found = 0, sum = 0, got = -1;
    MPI_Errhandler handler;
    MPI_Comm_rank(all, &rank);
    MPI_Comm_size(all, &size);
    MPI_Comm_get_errhandler(all, &handler);
    EXPECT(handler == MPI_ERRORS_RETURN);
    MPI_Errhandler_free(&handler);
    for (int i = 0; i < 20; i++) {
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, all, &found, MPI_STATUS_IGNORE);
        EXPECT(!found);
    }
    MPI_Barrier(all);
    for (int i = 0; i < 20; i++) {
        MPI_Status status;
        int right = (rank + 1) % size, left = (rank + size - 1) % size, sent = rank + i;
        MPI_Sendrecv(&sent, 1, MPI_INT, right, i, &got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, all, &status);
        EXPECT(got == left + i && status.MPI_SOURCE == left && status.MPI_TAG == i);
        MPI_Allreduce(&sent, &sum, 1, MPI_INT, MPI_SUM, all);
        EXPECT(sum == size * (size - 1) / 2 + size * i);
    }
}

static void use_once(MPI_Session session, const char *tag)
{
    MPI_Comm all = of_all(session, tag);
    use(all);
    MPI_Comm_free(&all);
}

static MPI_Session shared;

static void *make_one(void *number)
{
    int mine = (int)(long)number;
    char tag[8] = {'a' + mine, 0};
    if (strcmp(how, "threads") == 0 && mine != world_rank % 2)
        usleep(300000);
    for (int i = 0; i < (strcmp(how, "many") == 0 ? 10 : 1); i++) {
        if (strcmp(how, "many") == 0)
            usleep(random() % 2000 * (world_rank + 1));
        use_once(shared, tag);
    }
    return NULL;
}

static void *open_one(void *number)
{
    MPI_Session session = opened("thread_level", "MPI_THREAD_MULTIPLE");
    char tag[8] = {'a' + (int)(long)number, 0};
    use_once(session, tag);
    MPI_Session_finalize(&session);
    return NULL;
}

static void in_threads(void *(*work)(void *))
{
    pthread_t threads[2];
    for (long k = 0; k < 2; k++)
        pthread_create(&threads[k], NULL, work, (void *)k);
    for (int k = 0; k < 2; k++)
        pthread_join(threads[k], NULL);
}

static void with_init(void)
{
    shared = opened("thread_level", "MPI_THREAD_SINGLE");
    MPI_Comm all = of_all(shared, "x");
    int word = 5;
    use(all);
    if (strcmp(how, "cross") == 0) {
        if (world_rank == 0) {
            MPI_Init(NULL, NULL);
            MPI_Send(&word, 1, MPI_INT, 1, 3, all);
        } else {
            if (world_rank == 1)
                MPI_Recv(&word, 1, MPI_INT, 0, 3, all, MPI_STATUS_IGNORE);
            MPI_Init(NULL, NULL);
        }
    } else {
        if (world_rank == 1)
            sleep(1);
        MPI_Init(NULL, NULL);
        use_once(shared, "y");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Comm_free(&all);
    MPI_Session_finalize(&shared);
    MPI_Finalize();
}

/* Like a program that closes descriptors that it did not open. MPI keeps its own. */
static void close_marks(void)
{
    for (int fd = 3; fd < 4096; fd++) {
        struct sockaddr_un name = {0};
        socklen_t bytes = sizeof name;
        if (getsockname(fd, (struct sockaddr *)&name, &bytes) == 0 && name.sun_family == AF_UNIX &&
            strncmp(name.sun_path + 1, "gammachi-", 9) == 0)
            close(fd);
    }
}

int main(int count, char **words)
{
    how = count > 1 ? words[1] : "twice";
    srandom(getpid());
    if (strcmp(how, "init") == 0 || strcmp(how, "cross") == 0) {
        with_init();
        return 0;
    }
    int is_strict = strcmp(how, "strict") == 0;
    shared = is_strict ? opened("strict_finalize", "true") : opened("thread_level", "MPI_THREAD_MULTIPLE");
    const char *rank = getenv("PMI_RANK") ? getenv("PMI_RANK") : getenv("OMPI_COMM_WORLD_RANK");
    if (strcmp(how, "closes") == 0 && rank && atoi(rank) == 1)
        close_marks();
    if (strcmp(how, "empty") == 0) {
        MPI_Comm none = MPI_COMM_WORLD;
        int error = MPI_Comm_create_from_group(MPI_GROUP_EMPTY, "none", MPI_INFO_NULL, MPI_ERRORS_RETURN, &none);
        EXPECT(error != MPI_SUCCESS || none == MPI_COMM_NULL);
    }
    if (strcmp(how, "threads") == 0 || strcmp(how, "many") == 0) {
        MPI_Group all;
        MPI_Group_from_session_pset(shared, "mpi://WORLD", &all);
        MPI_Group_rank(all, &world_rank);
        MPI_Group_free(&all);
        in_threads(make_one);
    } else {
        use_once(shared, "x");
        use_once(shared, "y");
    }
    EXPECT(MPI_Session_finalize(&shared) == MPI_SUCCESS);
    if (strcmp(how, "turns") == 0) {
        in_threads(open_one);
        shared = opened("thread_level", "MPI_THREAD_SINGLE");
        use_once(shared, "z");
        MPI_Session_finalize(&shared);
    }
    return 0;
}
