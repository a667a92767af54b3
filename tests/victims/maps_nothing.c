/* To be preloaded: a file system that maps no memory to be shared. */
#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static void *map(void *at, size_t bytes, int protection, int flags, int descriptor, off_t offset)
{
    /* MPI's own shared memory is larger than any window, or made by other names. */
    if ((flags & MAP_SHARED) && descriptor >= 0 && (bytes == 256 << 10 || bytes == 64 << 10)) {
        errno = ENODEV;
        return MAP_FAILED;
    }
    return (void *)syscall(SYS_mmap, at, bytes, protection, flags, descriptor, offset);
}

void *mmap(void *at, size_t bytes, int protection, int flags, int descriptor, off_t offset)
{
    return map(at, bytes, protection, flags, descriptor, offset);
}

void *mmap64(void *at, size_t bytes, int protection, int flags, int descriptor, off64_t offset)
{
    return map(at, bytes, protection, flags, descriptor, offset);
}
