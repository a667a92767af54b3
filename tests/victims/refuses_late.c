/* A library that makes every file system behave like a file server that accepts writes and reports an error when
   they are written back. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <sys/vfs.h>

int fstatfs(int descriptor, struct statfs *system)
{
    int (*real)(int, struct statfs *) = (int (*)(int, struct statfs *))dlsym(RTLD_NEXT, "fstatfs");
    int result = real(descriptor, system);
    system->f_type = 0x6969;
    return result;
}

int fsync(int descriptor)
{
    (void)descriptor;
    errno = EDQUOT;
    return -1;
}
