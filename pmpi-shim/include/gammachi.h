/* gammachi.h: names regions of a program's time for gammachi's reports, and declares work.
 *
 *     #include "gammachi.h"
 *     gammachi_region_begin("solve");
 *     ...
 *     gammachi_work(2.0 * n * n, 8.0 * n * n);
 *     gammachi_region_end("solve");
 *
 * Regions may nest, and a name may be used again. gammachi_work declares the floating-point
 * operations done since the last call, and the bytes they moved to and from memory (0 if unknown).
 * The work belongs to the region in which the call is made. Declare only what the recorder cannot
 * see: `gammachi run --flops` counts the calls of BLAS, LAPACK and FFTW.
 *
 * For Fortran there is gammachi.f90, for Python gammachi_regions.py. Header only: nothing is linked,
 * and without the recorder (a preloaded libgammachi.so) each call is one test of a pointer. The
 * recorder's functions are weak references, which the dynamic loader resolves if the library is
 * present.
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

/* The address is read from the global offset table explicitly. Otherwise, in a program that is not
 * position-independent, the compiler would let the linker resolve the weak reference to 0 for good. */
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

#else /* unknown compiler or machine: the calls exist and do nothing */

static inline void gammachi_region_begin(const char *name) { (void)name; }
static inline void gammachi_region_end(const char *name) { (void)name; }
static inline void gammachi_work(double flops, double bytes) { (void)flops; (void)bytes; }

#endif
#endif
