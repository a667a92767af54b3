/* opens_plugins_in_turn FIRST SECOND: opens the first plug-in 70 times, then the second one 30 times, each by a relative
 * path, calls it once and closes it. Prints whether the second one was loaded where the first one had been. */
#define _GNU_SOURCE
#include "victim.h"
#include <dlfcn.h>

/* Opens a file from its folder, and comes back. */
static void *opened(const char *path)
{
    char folder[4096], name[4096], back[4096];
    snprintf(folder, sizeof folder, "%s", path);
    char *last = strrchr(folder, '/');
    snprintf(name, sizeof name, "./%s", last + 1);
    *last = 0;
    if (!getcwd(back, sizeof back) || chdir(folder))
        exit(8);
    void *plugin = dlopen(name, RTLD_NOW);
    if (!plugin || chdir(back))
        exit(9);
    return plugin;
}

int main(int argc, char **argv)
{
    void *where[2] = {NULL, NULL};

    MPI_Init(&argc, &argv);
    for (int i = 0; i < 100; i++) {
        void *plugin = opened(argv[1 + (i >= 70)]);
        void (*call)(void) = (void (*)(void))dlsym(plugin, "plugin_call");
        call();
        where[i >= 70] = (void *)call;
        dlclose(plugin);
    }
    MPI_Finalize();
    puts(where[0] == where[1] ? "same place" : "other place");
    return 0;
}
