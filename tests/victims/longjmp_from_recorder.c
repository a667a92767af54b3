/* Signal handlers leave MPI calls by siglongjmp while the recorder writes to its file. The recorder's pwrite is bound to
 * the one below, in which the signal arrives; without the recorder none does. */
#define _GNU_SOURCE
#include "victim.h"
#include <setjmp.h>
#include <sys/syscall.h>

static sigjmp_buf back;
static volatile sig_atomic_t armed;
static volatile int jumps, returned;

static void leave(int number)
{
    (void)number;
    if (!armed)
        return;
    armed = 0;
    jumps++;
    siglongjmp(back, 1);
}

ssize_t pwrite(int file, const void *bytes, size_t count, off_t at)
{
    if (armed)
        syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGUSR1);
    return syscall(SYS_pwrite64, file, bytes, count, at);
}

/* Makes calls until one is left, at most two windows full. */
static void in_windows(void)
{
    int rank;
    if (sigsetjmp(back, 1) == 0) {
        armed = 1;
        for (int i = 0; i < 10000; i++) {
            MPI_Comm_rank(MPI_COMM_WORLD, &rank);
            returned++;
        }
    }
    armed = 0;
}

/* Leaves a call that makes a communicator. */
static void in_definitions(void)
{
    MPI_Comm made;
    if (sigsetjmp(back, 1) == 0) {
        armed = 1;
        MPI_Comm_dup(MPI_COMM_SELF, &made);
    }
    armed = 0;
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_handler = leave};

    MPI_Init(&argc, &argv);
    sigaction(SIGUSR1, &action, NULL);
    alarm(60);
    for (int i = 0; i < 10; i++)
        in_windows();
    for (int i = 0; i < 5; i++)
        in_definitions();
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    printf("%d %d\n", jumps, returned);
    return 0;
}
