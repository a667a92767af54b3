/* forks_beside_loader [program | recorder]: forks while another thread is inside the loader: in a callback of
 * dl_iterate_phdr ("program"), or in MPI calls whose paths the recorder walks. Each child calls MPI procedures that its
 * parent has not called; while only the recorder uses the loader, it also asks the loader for a function. */
#define _GNU_SOURCE
#include "victim.h"
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <sys/wait.h>

static volatile int inside, stop;

static int hold(struct dl_phdr_info *info, size_t bytes, void *data)
{
    (void)info, (void)bytes, (void)data;
    inside = 1;
    while (!stop)
        usleep(1000);
    return 1;
}

static void *work(void *by_program)
{
    if (by_program)
        dl_iterate_phdr(hold, NULL);
    else
        for (inside = 1; !stop;)
            call_comm_rank(10);
    return NULL;
}

/* Ends with 7 if the calls return. */
static void child(int asks_loader)
{
    int flag = 0, size = 0, rank = -1;
    MPI_Datatype pair;

    alarm(20);
    MPI_Initialized(&flag);
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_size(pair, &size);
    MPI_Type_free(&pair);
    for (int i = 0; i < 10000; i++)
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (asks_loader && (!dlsym(RTLD_DEFAULT, "printf") || !dlopen(NULL, RTLD_NOW)))
        _exit(8);
    _exit(flag && size == 2 * (int)sizeof(int) && rank >= 0 ? 7 : 9);
}

int main(int argc, char **argv)
{
    int provided, by_program = argc > 1 && strcmp(argv[1], "program") == 0;
    pthread_t thread;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    pthread_create(&thread, NULL, work, by_program ? "" : NULL);
    while (!inside)
        usleep(1000);
    for (int i = 0; i < (by_program ? 2 : 30); i++) {
        int status = -1;
        pid_t pid = fork();
        if (pid == 0)
            child(!by_program);
        waitpid(pid, &status, 0);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 7) {
            printf("child %d ends with %#x\n", i, status);
            _exit(6);
        }
    }
    stop = 1;
    pthread_join(thread, NULL);
    MPI_Finalize();
    return 0;
}
