/* Embeds Python: computes in a function of its. The first argument is Python's library, which is opened for this
   program alone; no code of it is in the global scope. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

static const char program[] =
    "import time\n"
    "def embedded(seconds):\n"
    "    end = time.process_time() + seconds\n"
    "    while time.process_time() < end: sum(range(50))\n"
    "embedded(1)\n";

int main(int count, char **words)
{
    MPI_Init(&count, &words);
    void *python = dlopen(words[1], RTLD_NOW | RTLD_LOCAL);
    if (!python) {
        printf("%s\n", dlerror());
        return 1;
    }
    void (*initialize)(int) = (void (*)(int))dlsym(python, "Py_InitializeEx");
    int (*run)(const char *, void *) = (int (*)(const char *, void *))dlsym(python, "PyRun_SimpleStringFlags");
    initialize(0);
    MPI_Barrier(MPI_COMM_WORLD);
    int failed = run(program, 0);
    MPI_Finalize();
    return failed != 0;
}
