/* Touches known numbers of new pages in regions; each causes a page fault, which the kernel counts.
 *   counts_faults         regions outer (1,800), solve (2,000 in three occurrences, one in another),
 *                         threads (800 by two new threads), earlier (250 by one from before MPI_Init)
 *   counts_faults dies    1,000 in solve, 5,000 more, then SIGKILL
 *   counts_faults closes  the same, with its own file on the recorder's descriptors
 *   counts_faults time    nanoseconds of a region marker */
#define _GNU_SOURCE
#include "victim.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <time.h>

#include "gammachi.h"

static void touch(int pages)
{
    long size = sysconf(_SC_PAGESIZE);
    char *at = mmap(NULL, pages * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (at == MAP_FAILED)
        exit(9);
    madvise(at, pages * size, MADV_NOHUGEPAGE);
    for (long page = 0; page < pages; page++)
        at[page * size] = 1;
    munmap(at, pages * size);
}

static void *touches_400(void *unused)
{
    touch(400);
    return unused;
}

static atomic_int turn;

static void *touch_250_in_turn(void *unused)
{
    while (turn == 0)
        usleep(1000);
    touch(250);
    turn = 2;
    return unused;
}

static void all(pthread_t earlier)
{
    pthread_t threads[2];

    gammachi_region_begin("outer");
    touch(500);
    gammachi_region_begin("solve");
    touch(1000);
    gammachi_region_begin("solve");
    touch(300);
    gammachi_region_end("solve");
    gammachi_region_end("solve");
    gammachi_region_end("outer");
    touch(600);
    MPI_Barrier(MPI_COMM_WORLD);
    gammachi_region_begin("solve");
    touch(700);
    gammachi_region_end("solve");
    gammachi_region_begin("threads");
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, touches_400, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    gammachi_region_end("threads");
    gammachi_region_begin("earlier");
    turn = 1;
    while (turn != 2)
        usleep(1000);
    gammachi_region_end("earlier");
    pthread_join(earlier, NULL);
}

/* Opens its own file on every event's descriptor; returns the file, or -1 without an event. */
static int closes_events(void)
{
    char link[64], path[4096];
    int own = memfd_create("own", 0), found = 0;

    if (own < 0 || write(own, "0123456789abcdef0123456789abcdef", 32) != 32 || lseek(own, 0, SEEK_SET))
        exit(9);
    for (int i = 3; i < 4096; i++) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", i);
        ssize_t length = readlink(link, path, sizeof path - 1);
        if (length > 0 && i != own && (path[length] = 0, strstr(path, "[perf_event]"))) {
            if (dup2(own, i) != i)
                exit(8);
            found++;
        }
    }
    return found ? own : -1;
}

static void time_markers(void)
{
    int rounds = 2000, blocks = 100;
    double best = 1, sum = 0;

    for (int block = 0; block < blocks; block++) {
        struct timespec from, to;
        clock_gettime(CLOCK_MONOTONIC, &from);
        for (int i = 0; i < rounds; i++) {
            gammachi_region_begin("timed");
            gammachi_region_end("timed");
        }
        clock_gettime(CLOCK_MONOTONIC, &to);
        double each = (to.tv_sec - from.tv_sec + 1e-9 * (to.tv_nsec - from.tv_nsec)) / (2 * rounds);
        sum += each;
        if (each < best)
            best = each;
    }
    printf("%.1f ns per marker, %.1f ns at best\n", sum / blocks * 1e9, best * 1e9);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    pthread_t earlier;
    int thread = !*what;

    if (thread)
        pthread_create(&earlier, NULL, touch_250_in_turn, NULL);
    MPI_Init(&argc, &argv);
    if (thread) {
        all(earlier);
    } else if (!strcmp(what, "time")) {
        time_markers();
    } else {
        int own = strcmp(what, "closes") ? -1 : closes_events();
        gammachi_region_begin("solve");
        touch(1000);
        gammachi_region_end("solve");
        if (!strcmp(what, "dies")) {
            touch(5000);
            kill(getpid(), SIGKILL);
        }
        if (own >= 0 && lseek(own, 0, SEEK_CUR) != 0)
            return 7;
    }
    if (strcmp(what, "time"))
        printf("ran\n");
    MPI_Finalize();
    return 0;
}
