/* Does what signals could disturb, one thing per argument; returns 0 if nothing did. Computes in between, so that a
 * sampled thread is interrupted. */
#define _GNU_SOURCE
#include "victim.h"

#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

static double cpu_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec + 1e-9 * now.tv_nsec;
}

static volatile double result;

static void compute(double seconds)
{
    for (double until = cpu_s() + seconds; cpu_s() < until;)
        for (int i = 0; i < 20000; i++)
            result = result * 0.999999 + 1e-6;
}

static void check(int holds, const char *what)
{
    if (!holds) {
        printf("%s does not hold (errno %d)\n", what, errno);
        exit(9);
    }
}

static volatile sig_atomic_t ticks;

static void tick(int signal)
{
    (void)signal;
    ticks++;
}

/* A profiler of its own. */
static void own_profiler(void)
{
    struct sigaction action = {.sa_handler = tick, .sa_flags = SA_RESTART}, before;
    struct itimerval every = {{0, 10000}, {0, 10000}}, never = {{0, 0}, {0, 0}};

    check(sigaction(SIGPROF, &action, &before) == 0 && before.sa_handler == SIG_DFL, "SIGPROF was free");
    setitimer(ITIMER_PROF, &every, NULL);
    compute(0.3);
    setitimer(ITIMER_PROF, &never, NULL);
    check(ticks > 0 && ticks < 60, "the profiler's timer alone calls its handler");
    check(sigaction(SIGPROF, NULL, &before) == 0 && before.sa_handler == tick, "its handler stays");
}

/* Handlers for all signals: whatever is sent to the program was sent by itself. */
static volatile sig_atomic_t foreign;

static void count_foreign(int signal)
{
    (void)signal;
    foreign++;
}

static void handle_all(void)
{
    for (int number = 1; number < 32; number++) {
        struct sigaction action = {.sa_handler = count_foreign, .sa_flags = SA_RESTART}, before;

        if (number == SIGKILL || number == SIGSTOP || number == SIGALRM || number == SIGCHLD)
            continue;
        if (sigaction(number, NULL, &before) || before.sa_handler != SIG_DFL)
            continue;
        check(sigaction(number, &action, NULL) == 0, "a handler can be installed");
    }
}

static void own_handlers(void)
{
    sigset_t all, before;

    /* Whatever interrupts the thread is held off, and comes no more once the program wants it. */
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    compute(0.1);
    handle_all();
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    compute(0.3);
    check(foreign == 0, "nobody else sends signals");
}

static void early_handlers(void)
{
    compute(0.3);
    check(foreign == 0, "nobody else sends signals");
}

/* Waits for all signals. */
static void waits_for_signals(void)
{
    sigset_t all;
    struct timespec soon = {0, 50000000};
    struct pollfd readable = {.events = POLLIN};

    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    compute(0.3);
    check(sigtimedwait(&all, NULL, &soon) == -1 && errno == EAGAIN, "no signal came");
    readable.fd = signalfd(-1, &all, 0);
    check(readable.fd >= 0 && poll(&readable, 1, 50) == 0, "no signal can be read");
    raise(SIGUSR2);
    check(sigwaitinfo(&all, NULL) == SIGUSR2, "the program's own signal comes");
}

/* Child processes. */
static void children(void)
{
    for (int i = 0; i < 20; i++) {
        int status = 0;
        pid_t child;

        compute(0.01);
        check(system("exit 3") == 3 << 8, "system");
        child = fork();
        if (child == 0) {
            compute(0.03);
            _exit(5);
        }
        check(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 5, "fork");
        child = vfork();
        if (child == 0) {
            execl("/bin/sh", "sh", "-c", "exit 7", (char *)NULL);
            _exit(1);
        }
        check(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 7, "vfork");
    }
}

/* Jumps out of computation, and out of a handler. */
static sigjmp_buf back;

static void jump(int signal)
{
    (void)signal;
    siglongjmp(back, 1);
}

static void jumps(void)
{
    struct sigaction action = {.sa_handler = jump};
    volatile int jumped = 0;

    sigaction(SIGUSR1, &action, NULL);
    while (jumped < 100) {
        if (sigsetjmp(back, 1) == 0) {
            compute(0.002);
            raise(SIGUSR1);
        }
        jumped++;
    }
}

/* Threads with small stacks, and handlers on small alternate stacks. */
static void *on_small_stacks(void *unused)
{
    stack_t stack = {.ss_sp = malloc(16384), .ss_size = 16384}, found;

    check(sigaltstack(&stack, NULL) == 0, "sigaltstack");
    compute(0.02);
    for (int i = 0; i < 20; i++) {
        pthread_kill(pthread_self(), SIGUSR1);
        compute(0.001);
    }
    check(sigaltstack(NULL, &found) == 0 && found.ss_sp == stack.ss_sp, "the alternate stack stays");
    return unused;
}

static void compute_in_handler(int signal)
{
    (void)signal;
    compute(0.001);
}

static void small_stacks(void)
{
    struct sigaction action = {.sa_handler = compute_in_handler, .sa_flags = SA_ONSTACK | SA_RESTART};
    pthread_t thread[32];
    pthread_attr_t small;

    sigaction(SIGUSR1, &action, NULL);
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 32768);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 32; i++)
            check(pthread_create(&thread[i], &small, on_small_stacks, NULL) == 0, "pthread_create");
        compute(0.05);
        for (int i = 0; i < 32; i++)
            pthread_join(thread[i], NULL);
        call_comm_rank(10);
    }
}

/* Blocking system calls: none is interrupted. */
static void blocking_calls(void)
{
    int interrupted = 0, ends[2];
    char byte;

    check(pipe(ends) == 0, "pipe");
    for (int i = 0; i < 200; i++) {
        struct timespec short_time = {0, 500000};
        struct pollfd readable = {.fd = ends[0], .events = POLLIN};

        compute(0.003);
        interrupted += nanosleep(&short_time, NULL) != 0;
        interrupted += poll(&readable, 1, 1) < 0;
        interrupted += usleep(300) != 0;
        interrupted += write(ends[1], "x", 1) != 1 || read(ends[0], &byte, 1) != 1;
    }
    check(interrupted == 0, "no system call is interrupted");
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    static const struct {
        const char *name;
        void (*does)(void);
    } all[] = {
        {"own_profiler", own_profiler}, {"own_handlers", own_handlers}, {"waits_for_signals", waits_for_signals},
        {"children", children},         {"jumps", jumps},               {"small_stacks", small_stacks},
        {"blocking_calls", blocking_calls}, {"early_handlers", early_handlers},
    };

    if (!strcmp(what, "early_handlers"))
        handle_all();
    MPI_Init(&argc, &argv);
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
        if (!strcmp(what, all[i].name)) {
            compute(0.05);
            call_comm_rank(10);
            all[i].does();
            call_comm_rank(10);
            printf("%s: unharmed\n", what);
        }
    MPI_Finalize();
    return 0;
}
