// Writes and reads files in a folder in every way, and prints how much of each it expects to be counted, a line per
// file: its name, calls that read, bytes read, calls that write, bytes written. With `kill` it is killed behind its
// writes.
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "victim.h"

static char folder[4096], buffer[1 << 16];
static int rank, log_file;
static volatile sig_atomic_t handled;

static void must(int holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "%s: %s\n", what, strerror(errno));
        exit(2);
    }
}

static const char *path(const char *name)
{
    static char text[5000];
    snprintf(text, sizeof text, "%s/%s.%d", folder, name, rank);
    return text;
}

static void expect(const char *name, int reads, long read, int writes, long written)
{
    printf("%s.%d %d %ld %d %ld\n", name, rank, reads, read, writes, written);
}

static void writes_and_reads(void)
{
    int file = open(path("plain"), O_CREAT | O_TRUNC | O_RDWR, 0644);
    must(file >= 0, "open");
    for (int i = 0; i < 1000; i++)
        must(write(file, buffer, 512) == 512, "write");
    struct iovec parts[2] = {{buffer, 100}, {buffer, 200}};
    must(writev(file, parts, 2) == 300, "writev");
    must(pwrite(file, buffer, 100, 0) == 100, "pwrite");
    must(pwritev(file, parts, 2, 1000) == 300, "pwritev");
    must(ftruncate(file, 512300) == 0 && fsync(file) == 0 && fdatasync(file) == 0, "fsync");
    must(lseek(file, 0, SEEK_SET) == 0, "lseek");
    long all = 0, some;
    while ((some = read(file, buffer, sizeof buffer)) > 0)
        all += some;
    must(all == 512300, "read");
    must(pread(file, buffer, 77, 5) == 77 && readv(file, parts, 2) == 0, "pread");
    must(preadv(file, parts, 2, 0) == 300, "preadv");
    must(write(file, buffer, 0) == 0, "write");
    must(close(file) == 0, "close");
    must(write(file, buffer, 1) == -1 && errno == EBADF, "a closed descriptor");
    expect("plain", 9 + 3, 512300 + 77 + 300, 1004, 512000 + 300 + 100 + 300);
}

/* Descriptors that get another number, or another file. */
static void duplicates(void)
{
    int file = open(path("first"), O_CREAT | O_TRUNC | O_WRONLY, 0644);
    int same = dup(file), far = fcntl(file, F_DUPFD_CLOEXEC, 200);
    must(close(file) == 0, "close");
    must(write(same, buffer, 10) == 10 && write(far, buffer, 20) == 20, "write");
    int other = openat(AT_FDCWD, path("second"), O_CREAT | O_TRUNC | O_WRONLY, 0644);
    must(other == file, "the number is used again");
    must(write(other, buffer, 1000) == 1000, "write");
    must(dup2(other, same) == same && write(same, buffer, 2000) == 2000, "dup2");
    int pipes[2];
    must(pipe(pipes) == 0 && dup2(pipes[1], other) == other, "pipe");
    must(write(other, buffer, 4000) == 4000, "write to a pipe");
    must(write(far, buffer, 40) == 40, "write");
    close(far), close(same), close(other), close(pipes[0]), close(pipes[1]);
    /* A stream gets the number, then a file again. */
    FILE *stream = fopen(path("third"), "w");
    must(fwrite(buffer, 1, 3000, stream) == 3000 && fclose(stream) == 0, "fwrite");
    file = creat(path("fourth"), 0644);
    must(write(file, buffer, 7) == 7 && close(file) == 0, "creat");
    expect("first", 0, 0, 3, 70);
    expect("second", 0, 0, 2, 3000);
    expect("third", 0, 0, 1, 3000);
    expect("fourth", 0, 0, 1, 7);
}

/* The C library writes 4096 bytes at a time, and what is left when the stream is closed. */
static void streams(void)
{
    FILE *stream = fopen(path("stream"), "w+");
    setvbuf(stream, NULL, _IOFBF, 4096);
    for (int i = 0; i < 1000; i++)
        must(fwrite(buffer, 8, 2, stream) == 2, "fwrite");
    fprintf(stream, "%-384d", rank);
    must(fflush(stream) == 0 && fseek(stream, 0, SEEK_SET) == 0, "fflush");
    long all = 0, some;
    while ((some = fread(buffer, 1, 100, stream)) > 0)
        all += some;
    must(all == 16384 && fclose(stream) == 0, "fread");
    /* The read that finds the end is one, too. */
    expect("stream", 5, 16384, 4, 16384);
}

static void handler(int signal)
{
    (void)signal;
    int before = errno;
    if (write(log_file, "handled\n", 8) == 8)
        handled++;
    errno = before;
}

/* A handler writes while the program writes. */
static void signals(void)
{
    log_file = open(path("log"), O_CREAT | O_TRUNC | O_WRONLY, 0644);
    int file = open(path("interrupted"), O_CREAT | O_TRUNC | O_WRONLY, 0644);
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    must(sigaction(SIGPROF, &action, NULL) == 0, "sigaction");
    struct itimerval often = {{0, 300}, {0, 300}}, never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_PROF, &often, NULL);
    int writes = 0;
    while (handled < 50 || writes < 20000) {
        must(write(file, buffer, 16) == 16, "write");
        writes++;
        if (writes % 100 == 0)
            raise(SIGPROF);
        if (writes % 1000 == 0)
            call_comm_rank(1);
    }
    setitimer(ITIMER_PROF, &never, NULL);
    signal(SIGPROF, SIG_IGN);
    close(file), close(log_file);
    expect("interrupted", 0, 0, writes, 16L * writes);
    expect("log", 0, 0, handled, 8L * handled);
}

static void *in_thread(void *unused)
{
    (void)unused;
    int file = open(path("thread"), O_CREAT | O_TRUNC | O_WRONLY, 0644);
    for (int i = 0; i < 500; i++)
        must(write(file, buffer, 300) == 300, "write");
    close(file);
    return NULL;
}

/* A thread that never calls MPI; a child. */
static void others(void)
{
    pthread_t thread;
    must(pthread_create(&thread, NULL, in_thread, NULL) == 0, "pthread_create");
    pthread_join(thread, NULL);
    expect("thread", 0, 0, 500, 150000);
    int file = open(path("child"), O_CREAT | O_TRUNC | O_WRONLY, 0644);
    must(write(file, buffer, 5) == 5, "write");
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < 100; i++)
            if (write(file, buffer, 100) != 100)
                _exit(3);
        close_range(3, 100, 0);
        _exit(0);
    }
    int status;
    must(waitpid(child, &status, 0) == child && status == 0, "child");
    must(write(file, buffer, 6) == 6, "write");
    void *map = mmap(NULL, 4096, PROT_READ, MAP_SHARED, file, 0);
    must(map == MAP_FAILED && errno == EACCES, "mmap of a file that is only written");
    must(close(file) == 0, "close");
    file = open(path("child"), O_RDONLY);
    map = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, file, 0);
    must(map != MAP_FAILED && munmap(map, 4096) == 0 && close(file) == 0, "mmap");
    expect("child", 0, 0, 2, 11);
    /* Not files, or the kernel's. */
    file = open("/proc/self/stat", O_RDONLY);
    must(read(file, buffer, 100) == 100 && close(file) == 0, "/proc");
}

/* Every rank writes its blocks of one file through MPI. */
static void shared(void)
{
    char name[5000];
    MPI_File file;
    snprintf(name, sizeof name, "%s/shared", folder);
    int mode = MPI_MODE_CREATE | MPI_MODE_RDWR;
    must(MPI_File_open(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, &file) == 0, "MPI_File_open");
    for (int i = 0; i < 10; i++)
        MPI_File_write_at(file, (2 * i + rank) * 1000L, buffer, 1000, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
}

int main(int argc, char **argv)
{
    memset(buffer, 'x', sizeof buffer);
    snprintf(folder, sizeof folder, "%s", argv[1]);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    writes_and_reads();
    call_comm_rank(1);
    duplicates();
    streams();
    if (argc > 2 && strcmp(argv[2], "kill") == 0) {
        fflush(stdout);
        MPI_Barrier(MPI_COMM_WORLD);
        kill(getpid(), SIGKILL);
    }
    signals();
    others();
    shared();
    MPI_Finalize();
    int file = open(path("late"), O_CREAT | O_TRUNC | O_WRONLY, 0644);
    must(write(file, buffer, 9) == 9 && close(file) == 0, "write");
    return 0;
}
