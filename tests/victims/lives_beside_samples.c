/* Does what signals could disturb, one thing per argument; returns 0 if nothing did. Computes in between, so that a
 * sampled thread is interrupted. */
#define _GNU_SOURCE
#include "victim.h"

#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>

static char **arguments;

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

/* Handlers for all real-time signals, one of which is that of a timer of the CPU time. */
static void real_time_handlers(void)
{
    struct sigaction action = {.sa_handler = tick, .sa_flags = SA_RESTART};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN + 1};
    struct itimerspec every = {{0, 10000000}, {0, 10000000}};
    timer_t timer;

    for (int number = SIGRTMIN; number <= SIGRTMAX; number++)
        check(sigaction(number, &action, NULL) == 0, "a handler can be installed");
    check(timer_create(CLOCK_PROCESS_CPUTIME_ID, &event, &timer) == 0, "timer_create");
    timer_settime(timer, 0, &every, NULL);
    compute(0.3);
    timer_delete(timer);
    check(ticks > 0 && ticks < 60, "the timer alone calls its handler");
    ticks = 0;
    for (int number = SIGRTMIN; number <= SIGRTMAX; number++)
        raise(number);
    check(ticks == SIGRTMAX - SIGRTMIN + 1, "each signal calls its handler");
}

/* Waits for all signals. */
static void waits_for_signals(void)
{
    sigset_t all;
    int signal = 0;
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
    compute(0.01);
    raise(SIGUSR1);
    check(sigwait(&all, &signal) == 0 && signal == SIGUSR1, "and the next one");
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
            for (int number = 1; number < 32; number++)
                signal(number, SIG_DFL);
            execl("/bin/sh", "sh", "-c", "exit 7", (char *)NULL);
            _exit(1);
        }
        check(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 7, "vfork");
    }
}

/* Becomes another program that finds no signal waiting: the one called `becomes_another again`. */
static void becomes_another(void)
{
    sigset_t all;

    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    compute(0.1);
    call_comm_rank(10);
    MPI_Finalize();
    execl(arguments[0], arguments[0], "becomes_another", "again", (char *)NULL);
    check(0, "exec");
}

static int finds_no_signal(void)
{
    sigset_t all;

    sigfillset(&all);
    pthread_sigmask(SIG_UNBLOCK, &all, NULL);
    puts("unharmed");
    return 0;
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

/* Computes on a stack of its own, which is left in the middle and is gone before the thread goes on. */
static ucontext_t here, there;

static void compute_on_fibre(void)
{
    for (int i = 0; i < 10; i++) {
        compute(0.002);
        swapcontext(&there, &here);
    }
}

static void fibres(void)
{
    for (int round = 0; round < 10; round++) {
        char *stack = malloc(65536);

        getcontext(&there);
        there.uc_stack.ss_sp = stack;
        there.uc_stack.ss_size = 65536;
        there.uc_link = &here;
        makecontext(&there, compute_on_fibre, 0);
        for (int i = 0; i < 11; i++) {
            swapcontext(&here, &there);
            compute(0.001);
        }
        free(stack);
    }
}

/* Code that a program makes: counts its argument down. */
static const unsigned char counts_down[] = {
#ifdef __x86_64__
    0x48, 0xff, 0xcf, 0x75, 0xfb, 0xc3,
#else
    0x00, 0x04, 0x00, 0xf1, 0xe1, 0xff, 0xff, 0x54, 0xc0, 0x03, 0x5f, 0xd6,
#endif
};

/* Computes in a library and closes it, while another thread computes, and then in code that it puts where the library's
 * data was: its tables are no longer there. */
static void *opens_and_closes(void *unused)
{
    for (int i = 0; i < 40; i++) {
        void *library = dlopen(arguments[2], RTLD_NOW);
        void (*call)(void (*)(double), double);
        char *at;

        check(library != NULL, "dlopen");
        call = (void (*)(void (*)(double), double))dlsym(library, "call_back");
        call(compute, 0.006);
        check(dlclose(library) == 0, "dlclose");
        at = mmap((char *)((size_t)call & ~(size_t)0xffff) + (1 << 19), 0x10000, PROT_READ | PROT_WRITE | PROT_EXEC,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        check(at != MAP_FAILED, "mmap");
        memcpy(at, counts_down, sizeof counts_down);
        __builtin___clear_cache(at, at + sizeof counts_down);
        ((void (*)(long))at)(20000000);
        munmap(at, 0x10000);
    }
    return unused;
}

static void closes_library(void)
{
    pthread_t thread;

    check(pthread_create(&thread, NULL, opens_and_closes, NULL) == 0, "pthread_create");
    for (int i = 0; i < 60; i++) {
        compute(0.005);
        call_comm_rank(1);
    }
    pthread_join(thread, NULL);
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
        {"fibres", fibres},             {"early_handlers", early_handlers}, {"closes_library", closes_library},
        {"becomes_another", becomes_another}, {"real_time_handlers", real_time_handlers},
    };

    arguments = argv;
    if (argc > 2 && !strcmp(argv[2], "again"))
        return finds_no_signal();
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
