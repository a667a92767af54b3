/* reopens_runtime PLUGIN: opens a plug-in with parallel regions, runs them and closes it and with it their runtime, four
 * times; each time something else is mapped where the runtime was before. */
#define _GNU_SOURCE
#include "victim.h"
#include <ctype.h>
#include <dirent.h>
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

/* Whether all other threads sleep: those of a team would run on in code that is not there any more. */
static int others_sleep(void)
{
    DIR *tasks = opendir("/proc/self/task");
    int all = tasks != NULL;
    for (struct dirent *task; all && (task = readdir(tasks));) {
        char path[300], line[300] = "";
        if (!isdigit((unsigned char)*task->d_name) || atoi(task->d_name) == (int)gettid())
            continue;
        snprintf(path, sizeof path, "/proc/self/task/%s/stat", task->d_name);
        FILE *file = fopen(path, "r");
        const char *state = file && fgets(line, sizeof line, file) ? strrchr(line, ')') : NULL;
        all = state && state[2] == 'S';
        if (file)
            fclose(file);
    }
    if (tasks)
        closedir(tasks);
    return all;
}

int main(int count, char **words)
{
    MPI_Init(&count, &words);
    for (int i = 0; i < 4; i++) {
        void *plugin = dlopen(words[1], RTLD_NOW | RTLD_LOCAL);
        int (*sum)(void) = plugin ? (int (*)(void))dlsym(plugin, "sum_of_team") : NULL;
        void *runtime = dlopen("libgomp.so.1", RTLD_NOW | RTLD_NOLOAD);
        Dl_info where;
        if (!sum || !runtime || !dladdr(dlsym(runtime, "omp_get_thread_num"), &where))
            return 8;
        for (int k = 0; k < 5; k++)
            printf("%d\n", sum());
        for (int asleep = 0; asleep < 3; asleep = others_sleep() ? asleep + 1 : 0)
            usleep(2000);
        dlclose(runtime);
        dlclose(plugin);
        if (dlopen("libgomp.so.1", RTLD_NOW | RTLD_NOLOAD))
            return 9;
        int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
        size_t page = (size_t)sysconf(_SC_PAGESIZE);
        if (mmap(where.dli_fbase, page, PROT_NONE, flags, -1, 0) != where.dli_fbase)
            return 10;
    }
    return MPI_Finalize();
}
