/* Makes blocking system calls of all kinds, computes in between, and prints how many of each were interrupted. */
#define _GNU_SOURCE
#include "victim.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

static const struct timespec soon = {0, 300000};
static int ends[2], sockets[2], messages, semaphores, multiplexer, never = 0;
static sem_t given;
static sem_t not_given;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile double result;

static struct timespec from_now(void)
{
    struct timespec then;

    clock_gettime(CLOCK_REALTIME, &then);
    then.tv_nsec += soon.tv_nsec;
    then.tv_sec += then.tv_nsec / 1000000000;
    then.tv_nsec %= 1000000000;
    return then;
}

/* Each returns -1 with errno if the call fails. */
static int a_nanosleep(void) { return nanosleep(&soon, NULL); }
static int a_usleep(void) { return usleep(300); }
static int a_poll(void) { return poll(&(struct pollfd){.fd = sockets[0], .events = POLLIN}, 1, 1); }
static int a_ppoll(void) { return ppoll(&(struct pollfd){.fd = sockets[0], .events = POLLIN}, 1, &soon, NULL); }
static int an_epoll(void) { return epoll_wait(multiplexer, &(struct epoll_event){0}, 1, 1); }
static int a_semaphore(void) { return sem_wait(&given); }
static int a_futex(void) { return (int)syscall(SYS_futex, &never, FUTEX_WAIT, 0, &soon); }
static int a_signal(void)
{
    sigset_t none;

    sigemptyset(&none);
    sigaddset(&none, SIGUSR2);
    return sigtimedwait(&none, NULL, &soon);
}
static int a_timed_semop(void)
{
    return semtimedop(semaphores, &(struct sembuf){.sem_op = -1}, 1, &soon);
}

static int a_clock_nanosleep(void)
{
    errno = clock_nanosleep(CLOCK_MONOTONIC, 0, &soon, NULL);
    return errno ? -1 : 0;
}

static int a_select(void)
{
    fd_set set;
    struct timeval time = {0, 300};

    FD_ZERO(&set);
    FD_SET(sockets[0], &set);
    return select(sockets[0] + 1, &set, NULL, NULL, &time);
}

static int a_receive(void)
{
    char byte;

    return (int)recv(sockets[0], &byte, 1, 0);
}

static int a_read(void)
{
    char byte;

    return (int)read(ends[0], &byte, 1);
}

static int a_timed_semaphore(void)
{
    struct timespec then = from_now();

    return sem_timedwait(&not_given, &then);
}

static int a_condition(void)
{
    struct timespec then = from_now();

    pthread_mutex_lock(&mutex);
    errno = pthread_cond_timedwait(&condition, &mutex, &then);
    pthread_mutex_unlock(&mutex);
    return errno ? -1 : 0;
}

static int a_message(void)
{
    struct {
        long kind;
        char text;
    } message;

    return (int)msgrcv(messages, &message, 1, 0, 0);
}

static int a_wait(void)
{
    pid_t child = vfork();

    if (child == 0)
        _exit(0);
    return waitpid(child, NULL, 0);
}

/* Gives now and then what the calls without a time-out wait for. */
static void *give(void *unused)
{
    struct {
        long kind;
        char text;
    } message = {1, 'x'};

    for (;;) {
        int value;

        usleep(400);
        if (write(ends[1], "x", 1) < 0 && errno != EAGAIN)
            return unused;
        if (sem_getvalue(&given, &value) == 0 && value == 0)
            sem_post(&given);
        msgsnd(messages, &message, 1, IPC_NOWAIT);
    }
}

static void compute(void)
{
    for (int i = 0; i < 200000; i++)
        result = result * 0.999999 + 1e-6;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*call)(void);
    } all[] = {
        {"nanosleep", a_nanosleep}, {"clock_nanosleep", a_clock_nanosleep}, {"usleep", a_usleep}, {"poll", a_poll},
        {"ppoll", a_ppoll}, {"select", a_select}, {"epoll_wait", an_epoll}, {"recv", a_receive}, {"read", a_read},
        {"sem_wait", a_semaphore}, {"sem_timedwait", a_timed_semaphore}, {"futex", a_futex},
        {"pthread_cond_timedwait", a_condition}, {"sigtimedwait", a_signal}, {"msgrcv", a_message},
        {"semtimedop", a_timed_semop}, {"waitpid", a_wait},
    };
    struct timeval time = {0, 300};
    pthread_t giver;

    if (pipe(ends) || fcntl(ends[1], F_SETFL, O_NONBLOCK) || socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) ||
        setsockopt(sockets[0], SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time))
        return 7;
    messages = msgget(IPC_PRIVATE, 0600);
    semaphores = semget(IPC_PRIVATE, 1, 0600);
    multiplexer = epoll_create(1);
    if (messages < 0 || semaphores < 0 || multiplexer < 0 || sem_init(&given, 0, 0) || sem_init(&not_given, 0, 0) ||
        epoll_ctl(multiplexer, EPOLL_CTL_ADD, sockets[0], &(struct epoll_event){.events = EPOLLIN}))
        return 8;
    MPI_Init(&argc, &argv);
    call_comm_rank(10);
    if (pthread_create(&giver, NULL, give, NULL))
        return 9;
    for (unsigned kind = 0; kind < sizeof all / sizeof *all; kind++) {
        int interrupted = 0;

        for (int i = 0; i < 150; i++) {
            compute();
            interrupted += all[kind].call() < 0 && errno == EINTR;
        }
        printf("%s: %d interrupted\n", all[kind].name, interrupted);
    }
    msgctl(messages, IPC_RMID, NULL);
    semctl(semaphores, 0, IPC_RMID);
    call_comm_rank(10);
    MPI_Finalize();
    return 0;
}
