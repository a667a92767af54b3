/* reopens_plugin PLUGIN SCOPE: opens a plug-in, calls it and closes it, four times; each time something else is
 * mapped where it was before. No MPI. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef double dot(int, const double *, int, const double *, int);

int main(int count, char **words)
{
    int scope = count > 2 && !strcmp(words[2], "global") ? RTLD_GLOBAL : RTLD_LOCAL;
    for (int i = 0; i < 4; i++) {
        void *plugin = dlopen(words[1], RTLD_NOW | scope);
        double (*product)(void) = plugin ? (double (*)(void))dlsym(plugin, "product") : NULL;
        Dl_info where;
        if (!product || !dladdr((void *)product, &where))
            return 8;
        char *base = where.dli_fbase;
        double x[2] = {3, 4};
        dot *own = (dot *)dlsym(plugin, "cblas_ddot"), *any = (dot *)dlsym(RTLD_DEFAULT, "cblas_ddot");
        printf("%g %g\n", product(), (any ? any : own)(2, x, 1, x, 1));
        dlclose(plugin);
        if (dlopen(words[1], RTLD_NOW | RTLD_NOLOAD))
            return 9;
        int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
        if (mmap(base, (size_t)sysconf(_SC_PAGESIZE), PROT_NONE, flags, -1, 0) != base)
            return 10;
    }
    return 0;
}
