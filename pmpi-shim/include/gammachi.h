/* gammachi.h: names stretches of a program's time for gammachi's reports, and declares work.
 *
 *     #include "gammachi.h"
 *     gammachi_region_begin("solve");
 *     ...
 *     gammachi_work(2.0 * n * n, 8.0 * n * n);
 *     gammachi_region_end("solve");
 *
 * Regions may nest; the same name may come again. gammachi_work says how many floating-point
 * operations were done since the last time, and how many bytes they moved to and from memory
 * (0 where that is not known); it counts where it stands. Declare only what the recorder cannot see:
 * calls of BLAS, LAPACK and FFTW are counted by themselves with `gammachi run --flops`.
 *
 * For Fortran there is gammachi.f90, for Python gammachi_regions.py. Header only: nothing is linked, and without the
 * recorder (libgammachi.so preloaded) each call is one test of a pointer. The recorder's functions
 * are weak references that the dynamic loader fills in when the library is there.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef GAMMACHI_H
#define GAMMACHI_H

#if defined(__GNUC__) && defined(__ELF__) && (defined(__x86_64__) || defined(__aarch64__))

#ifdef __cplusplus
extern "C" {
#endif
typedef void gammachi_mark_function(const char *name);
typedef void gammachi_work_function(double flops, double bytes);
#ifdef __cplusplus
}
#endif

/* The address is read from the global offset table by hand: in a program that is not
 * position-independent a compiler would else let the linker settle a weak reference to 0 for ever. */
#if defined(__x86_64__)
#define GAMMACHI_ADDRESS(symbol, address) \
    __asm__(".weak " #symbol "\n\tmovq " #symbol "@GOTPCREL(%%rip), %0" : "=r"(address))
#else
#define GAMMACHI_ADDRESS(symbol, address)                                 \
    __asm__(".weak " #symbol "\n\tadrp %0, :got:" #symbol                 \
            "\n\tldr %0, [%0, :got_lo12:" #symbol "]" : "=r"(address))
#endif

static inline void gammachi_region_begin(const char *name) {
    gammachi_mark_function *mark;
    GAMMACHI_ADDRESS(gammachi_recorder_region_begin, mark);
    if (mark) mark(name);
}

static inline void gammachi_region_end(const char *name) {
    gammachi_mark_function *mark;
    GAMMACHI_ADDRESS(gammachi_recorder_region_end, mark);
    if (mark) mark(name);
}

static inline void gammachi_work(double flops, double bytes) {
    gammachi_work_function *work;
    GAMMACHI_ADDRESS(gammachi_recorder_work, work);
    if (work) work(flops, bytes);
}

#else /* an unknown compiler or machine: the calls are there and do nothing */

static inline void gammachi_region_begin(const char *name) { (void)name; }
static inline void gammachi_region_end(const char *name) { (void)name; }
static inline void gammachi_work(double flops, double bytes) { (void)flops; (void)bytes; }

#endif
#endif
