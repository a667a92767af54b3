// A tool for OpenMP runtimes: counts parallel regions, and says how many when the runtime ends.
#include <stdio.h>
#include <stdint.h>

typedef void (*set_callback)(int, void (*)(void));
typedef void (*(*lookup_function)(const char *))(void);
struct result {
    int (*initialise)(lookup_function, int, uint64_t *);
    void (*finalise)(uint64_t *);
    uint64_t data;
};
static int regions;

static void parallel_end(void) { regions++; }

static int initialise(lookup_function lookup, int device, uint64_t *data) {
    (void)device, (void)data;
    ((set_callback)lookup("ompt_set_callback"))(4, parallel_end);
    return 1;
}

static void finalise(uint64_t *data) {
    (void)data;
    printf("regions: %d\n", regions);
    fflush(stdout);
}

struct result *ompt_start_tool(unsigned version, const char *name) {
    static struct result result = {initialise, finalise, 0};
    (void)version, (void)name;
    return &result;
}
