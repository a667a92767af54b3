/* Calls every interposed function of BLAS, LAPACK and FFTW (except FFTW's MPI functions) with random
 * sizes, and prints for each the number of operations as counted here: loops of the plain algorithm
 * for BLAS and triangular solves, leading terms from textbooks for LAPACK. The libraries are opened
 * with global symbols and called by name, as by a program that is linked to them. */
#define _GNU_SOURCE
#include "victim.h"

#include <dlfcn.h>
#include <math.h>
#include <stdint.h>

/* Multiplications and additions of the current count. */
static double mul, add;
/* Sizes and options of the call, by letter. */
static int m, n, k, l, u, r, left, vectors;

static void pair(double a, double b) { mul += a, add += b; }
static int order(void) { return left ? m : n; }
static int other(void) { return left ? n : m; }

static void c_each(void) { for (int i = 0; i < n; i++) pair(1, 1); }
static void c_scal(void) { for (int i = 0; i < n; i++) pair(1, 0); }
static void c_asum(void) { for (int i = 0; i < n; i++) pair(0, 1); }
static void c_rot(void) { for (int i = 0; i < n; i++) pair(4, 2); }
/* In real operations: squares and sums of two parts, sums of two magnitudes. */
static void c_nrm2_complex(void) { for (int i = 0; i < n; i++) pair(2, 2); }
static void c_asum_complex(void) { for (int i = 0; i < n; i++) pair(0, 2); }

static void c_mn(void) { for (int i = 0; i < m; i++) for (int j = 0; j < n; j++) pair(1, 1); }
static void c_nn(void) { for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) pair(1, 1); }
static void c_band(void) {
    for (int i = 0; i < m; i++) for (int j = 0; j < n; j++) if (i - j <= l && j - i <= u) pair(1, 1);
}
static void c_symmetric_band(void) {
    for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) if (abs(i - j) <= k) pair(1, 1);
}
static void triangle(int order, int times) {
    for (int t = 0; t < times; t++)
        for (int i = 0; i < order; i++) {
            for (int j = 0; j < i; j++) pair(1, 1);
            pair(1, 0);
        }
}
static void c_triangle(void) { triangle(n, 1); }
static void c_triangle_band(void) {
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < i; j++) if (i - j <= k) pair(1, 1);
        pair(1, 0);
    }
}
static void c_half(void) { for (int i = 0; i < n; i++) for (int j = 0; j <= i; j++) pair(1, 1); }
static void c_half_twice(void) { c_half(), c_half(); }
static void c_gemm(void) { for (int i = 0; i < k; i++) c_mn(); }
static void c_symm(void) { for (int i = 0; i < order(); i++) c_mn(); }
static void c_rank_k(void) { for (int i = 0; i < k; i++) c_half(); }
static void c_rank_2k(void) { for (int i = 0; i < k; i++) c_half_twice(); }
static void c_triangle_side(void) { triangle(order(), other()); }

/* LAPACK: leading terms, half of them multiplications. */
static void flops(double all) { pair(all / 2, all / 2); }
static double cube(double x) { return x * x * x; }
static void lu(int m, int n) {
    for (int i = 0; i < m && i < n; i++) {
        pair(m - i - 1, 0);
        for (int j = i + 1; j < m; j++) pair(n - i - 1, n - i - 1);
    }
}
static void c_getrf(void) { lu(m, n); }
static void c_getrs(void) { triangle(n, r); for (int i = 0; i < r; i++) for (int j = 0; j < n; j++) pair(j, j); }
static void c_getri(void) { flops(4 * cube(n) / 3); }
static void c_gesv(void) { lu(n, n), c_getrs(); }
static void c_potrf(void) {
    for (int j = 0; j < n; j++) for (int i = j; i < n; i++) pair(j + 1, j);
}
static void c_potrs(void) { triangle(n, 2 * r); }
static void c_potri(void) { flops(2 * cube(n) / 3); }
static void c_posv(void) { c_potrf(), c_potrs(); }
static void c_trtri(void) { flops(cube(n) / 3); }
static void c_trtrs(void) { triangle(n, r); }
static double qr(double a, double b) { return a >= b ? 2 * a * b * b - 2 * cube(b) / 3 : qr(b, a); }
static void c_geqrf(void) { flops(qr(m, n)); }
static void c_orgqr(void) { flops(4.0 * m * n * k - 2.0 * (m + n) * k * k + 4 * cube(k) / 3); }
static void c_ormqr(void) {
    flops(4.0 * m * n * k - 2.0 * k * k * other());
}
static void c_gels(void) {
    int a = m > n ? m : n, b = m > n ? n : m;
    flops(qr(a, b) + r * (4.0 * a * b - 2.0 * b * b) + 1.0 * r * b * b);
}
static void c_indefinite(void) { flops(cube(n) / 3); }
static void c_syev(void) { flops((vectors ? 9 : 4.0 / 3) * cube(n)); }
static void c_syevd(void) { flops((vectors ? 14.0 / 3 : 4.0 / 3) * cube(n)); }
static void c_syevr(void) { flops((vectors ? 10.0 / 3 : 4.0 / 3) * cube(n)); }
static void c_geev(void) { flops((vectors ? 25 : 10) * cube(n)); }
static void c_svd(void) {
    double a = m > n ? m : n, b = m > n ? n : m;
    double direct = 14 * a * b * b + 8 * cube(b), by_qr = 6 * a * b * b + 20 * cube(b);
    flops(vectors ? (direct < by_qr ? direct : by_qr) : 4 * a * b * b - 4 * cube(b) / 3);
}

/* Parameters: = layout; 't option N, 'u UPLO, 'd DIAG, 's SIDE, 'j job, 'q job of the same letter as
 * the one before, 'a range All; #x size; $ scalar of the type; % real scalar; A matrix; L its leading
 * dimension; X vector; I increment; W work; w its length; P integers; p their length; 0 zero. */
typedef struct {
    const char *stem, *types, *as, *parameters;
    void (*count)(void);
    int kind; /* 0: exact; 1: to leading terms; 2: counted as real */
} Row;

static const Row rows[] = {
    {"dot", "s d", "cf", "#n X I X I", c_each, 0},
    {"dotu_sub", "c z", "c", "#n X I X I X", c_each, 0},
    {"dotc_sub", "c z", "c", "#n X I X I X", c_each, 0},
    {"axpy", "s d c z", "cf", "#n $ X I X I", c_each, 0},
    {"scal", "s d c z", "cf", "#n $ X I", c_scal, 0},
    {"nrm2", "s d", "cf", "#n X I", c_each, 0},
    {"nrm2", "sc dz", "cf", "#n X I", c_nrm2_complex, 2},
    {"asum", "s d", "cf", "#n X I", c_asum, 0},
    {"asum", "sc dz", "cf", "#n X I", c_asum_complex, 2},
    {"rot", "s d", "cf", "#n X I X I $ $", c_rot, 0},
    {"gemv", "s d c z", "cf", "= 't #m #n $ A L X I $ X I", c_mn, 0},
    {"gbmv", "s d c z", "cf", "= 't #m #n #l #u $ A L X I $ X I", c_band, 0},
    {"symv", "s d", "cf", "= 'u #n $ A L X I $ X I", c_nn, 0},
    {"hemv", "c z", "cf", "= 'u #n $ A L X I $ X I", c_nn, 0},
    {"sbmv", "s d", "cf", "= 'u #n #k $ A L X I $ X I", c_symmetric_band, 0},
    {"hbmv", "c z", "cf", "= 'u #n #k $ A L X I $ X I", c_symmetric_band, 0},
    {"spmv", "s d", "cf", "= 'u #n $ A X I $ X I", c_nn, 0},
    {"hpmv", "c z", "cf", "= 'u #n $ A X I $ X I", c_nn, 0},
    {"trmv", "s d c z", "cf", "= 'u 't 'd #n A L X I", c_triangle, 0},
    {"tbmv", "s d c z", "cf", "= 'u 't 'd #n #k A L X I", c_triangle_band, 0},
    {"tpmv", "s d c z", "cf", "= 'u 't 'd #n A X I", c_triangle, 0},
    {"trsv", "s d c z", "cf", "= 'u 't 'd #n A L X I", c_triangle, 0},
    {"tbsv", "s d c z", "cf", "= 'u 't 'd #n #k A L X I", c_triangle_band, 0},
    {"tpsv", "s d c z", "cf", "= 'u 't 'd #n A X I", c_triangle, 0},
    {"ger", "s d", "cf", "= #m #n $ X I X I A L", c_mn, 0},
    {"geru", "c z", "cf", "= #m #n $ X I X I A L", c_mn, 0},
    {"gerc", "c z", "cf", "= #m #n $ X I X I A L", c_mn, 0},
    {"syr", "s d", "cf", "= 'u #n $ X I A L", c_half, 0},
    {"her", "c z", "cf", "= 'u #n % X I A L", c_half, 0},
    {"spr", "s d", "cf", "= 'u #n $ X I A", c_half, 0},
    {"hpr", "c z", "cf", "= 'u #n % X I A", c_half, 0},
    {"syr2", "s d", "cf", "= 'u #n $ X I X I A L", c_half_twice, 0},
    {"her2", "c z", "cf", "= 'u #n $ X I X I A L", c_half_twice, 0},
    {"spr2", "s d", "cf", "= 'u #n $ X I X I A", c_half_twice, 0},
    {"hpr2", "c z", "cf", "= 'u #n $ X I X I A", c_half_twice, 0},
    {"gemm", "s d c z", "cf", "= 't 't #m #n #k $ A L A L $ A L", c_gemm, 0},
    {"symm", "s d c z", "cf", "= 's 'u #m #n $ A L A L $ A L", c_symm, 0},
    {"hemm", "c z", "cf", "= 's 'u #m #n $ A L A L $ A L", c_symm, 0},
    {"syrk", "s d c z", "cf", "= 'u 't #n #k $ A L $ A L", c_rank_k, 0},
    {"herk", "c z", "cf", "= 'u 't #n #k % A L % A L", c_rank_k, 0},
    {"syr2k", "s d c z", "cf", "= 'u 't #n #k $ A L A L $ A L", c_rank_2k, 0},
    {"her2k", "c z", "cf", "= 'u 't #n #k $ A L A L % A L", c_rank_2k, 0},
    {"trmm", "s d c z", "cf", "= 's 'u 't 'd #m #n $ A L A L", c_triangle_side, 0},
    {"trsm", "s d c z", "cf", "= 's 'u 't 'd #m #n $ A L A L", c_triangle_side, 0},
    {"getrf", "s d c z", "f", "#m #n A L P 0", c_getrf, 1},
    {"getrs", "s d c z", "f", "'t #n #r A L P A L 0", c_getrs, 0},
    {"getri", "s d c z", "f", "#n A L P W w 0", c_getri, 1},
    {"gesv", "s d c z", "f", "#n #r A L P A L 0", c_gesv, 1},
    {"potrf", "s d c z", "f", "'u #n A L 0", c_potrf, 1},
    {"potrs", "s d c z", "f", "'u #n #r A L A L 0", c_potrs, 0},
    {"potri", "s d c z", "f", "'u #n A L 0", c_potri, 1},
    {"posv", "s d c z", "f", "'u #n #r A L A L 0", c_posv, 1},
    {"trtri", "s d c z", "f", "'u 'd #n A L 0", c_trtri, 1},
    {"trtrs", "s d c z", "f", "'u 't 'd #n #r A L A L 0", c_trtrs, 0},
    {"geqrf", "s d c z", "f", "#m #n A L X W w 0", c_geqrf, 1},
    {"orgqr", "s d", "f", "#M #n #k A L X W w 0", c_orgqr, 1},
    {"ungqr", "c z", "f", "#M #n #k A L X W w 0", c_orgqr, 1},
    {"ormqr", "s d", "f", "'s 't #m #n #k A L X A L W w 0", c_ormqr, 1},
    {"unmqr", "c z", "f", "'s 't #m #n #k A L X A L W w 0", c_ormqr, 1},
    {"gels", "s d c z", "f", "'t #m #n #r A L A L W w 0", c_gels, 1},
    {"sytrf", "s d c z", "f", "'u #n A L P W w 0", c_indefinite, 1},
    {"hetrf", "c z", "f", "'u #n A L P W w 0", c_indefinite, 1},
    {"syev", "s d", "f", "'j 'u #n A L X W w 0", c_syev, 1},
    {"heev", "c z", "f", "'j 'u #n A L X W w X 0", c_syev, 1},
    {"syevd", "s d", "f", "'j 'u #n A L X W w P p 0", c_syevd, 1},
    {"heevd", "c z", "f", "'j 'u #n A L X W w Y w P p 0", c_syevd, 1},
    {"syevr", "s d", "f", "'j 'a 'u #n A L 0 0 0 0 0 P X A L P W w P p 0", c_syevr, 1},
    {"heevr", "c z", "f", "'j 'a 'u #n A L 0 0 0 0 0 P X A L P W w Y w P p 0", c_syevr, 1},
    {"geev", "s d", "f", "'j 'q #n A L X X A L A L W w 0", c_geev, 1},
    {"geev", "c z", "f", "'j 'q #n A L X A L A L W w X 0", c_geev, 1},
    {"gesvd", "s d", "f", "'j 'q #m #n A L X A L A L W w 0", c_svd, 1},
    {"gesvd", "c z", "f", "'j 'q #m #n A L X A L A L W w X 0", c_svd, 1},
    {"gesdd", "s d", "f", "'j #m #n A L X A L A L W w P 0", c_svd, 1},
    {"gesdd", "c z", "f", "'j #m #n A L X A L A L W w Y P 0", c_svd, 1},
};

enum { LD = 96, MATRIX = LD * LD * 16, WORK = 1 << 21, MATRICES = 6 };
static char *matrices[MATRICES], *work, *more_work;

static int size_between(int low, int high) { return low + rand() % (high - low + 1); }

/* A well-conditioned matrix: some elements 1, and the diagonal larger than the sum of its row. */
static void fill(char *matrix, const char *type) {
    int complex = strpbrk(type, "cz") != NULL, single = strpbrk(type, "sc") != NULL;
    int parts = complex ? 2 : 1;
    memset(matrix, 0, MATRIX);
    for (int i = 0; i < LD * LD; i++) {
        double value = i % (LD + 1) == 0 ? 100 + i % 7 : (i % 5 == 0) * 0.25;
        if (single) ((float *)matrix)[i * parts] = (float)value;
        else ((double *)matrix)[i * parts] = value;
    }
}

typedef double (*Doubles)(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t,
                          uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t,
                          uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t,
                          uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, double, double);
typedef float (*Singles)(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t,
                         uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t,
                         uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t,
                         uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, float, float);

static void *blas; /* OpenBLAS, where dlsym finds its own functions. */

static void *function(const char *name) {
    void *found = dlsym(RTLD_DEFAULT, name);
    if (!found) printf("missing %s\n", name), exit(3);
    return found;
}

/* Integers of an argument list, each at a different address. */
static int integers[32];
static double scalars[8][2];

static void call(const Row *row, const char *type, int fortran) {
    char name[40], parameters[120];
    snprintf(name, sizeof name, fortran ? "%s%s_" : "cblas_%s%s", type, row->stem);
    snprintf(parameters, sizeof parameters, "%s", row->parameters);
    int complex = strpbrk(type, "cz") && row->kind != 2, single = strpbrk(type, "sc") != NULL;
    int big = row->kind == 1, words = 0, numbers = 0, matrix = 0, scalar = 0, lengths = 0;
    uintptr_t a[26] = {0};
    double values[2] = {0, 0};
    m = n = k = l = u = r = left = vectors = 0;
    char job = 'N';
    for (int i = 0; i < MATRICES; i++) fill(matrices[i], type);
    for (char *word = strtok(parameters, " "); word; word = strtok(NULL, " ")) {
        int value = 0, is_integer = 0, option = 0;
        char letter = 0;
        switch (word[0]) {
        case '=': if (!fortran) a[words++] = 102; continue;
        case '#': {
            int *place = word[1] == 'n' ? &n : word[1] == 'k' ? &k : word[1] == 'l' ? &l
                : word[1] == 'u' ? &u : word[1] == 'r' ? &r : &m;
            value = big ? size_between(70, 90) : size_between(1, 40);
            /* An m × n matrix with k columns of reflectors: k ≤ n ≤ m. */
            if (word[1] == 'M') value = size_between(84, 90);
            if (word[1] == 'n' && strstr(row->stem, "gqr")) value = size_between(70, 84);
            if (word[1] == 'k' && big) value = size_between(60, 69);
            if (strchr("lu", word[1]) && value > m / 2) value = m / 2;
            if (word[1] == 'k' && strstr(row->stem, "b")) value = value % n;
            if (word[1] == 'r') value = size_between(1, 9);
            *place = value, is_integer = 1;
            break;
        }
        case 'L': value = LD, is_integer = 1; break;
        case 'I': value = 1, is_integer = 1; break;
        case 'w': value = WORK / 16, is_integer = 1; break;
        case 'p': value = WORK / 16, is_integer = 1; break;
        case '\'':
            switch (word[1]) {
            case 't': letter = 'N', option = 111; break;
            case 'u': letter = rand() % 2 ? 'U' : 'L', option = letter == 'U' ? 121 : 122; break;
            case 'd': letter = 'N', option = 131; break;
            case 's': left = rand() % 2, letter = left ? 'L' : 'R', option = left ? 141 : 142; break;
            case 'j': vectors = rand() % 2, letter = vectors ? 'V' : 'N', job = letter;
                      if (strstr(row->stem, "sv") || strstr(row->stem, "sdd"))
                          letter = job = vectors ? 'S' : 'N';
                      break;
            case 'q': letter = job; break;
            default: letter = 'A';
            }
            if (fortran) {
                static char letters[32];
                letters[words] = letter;
                a[words] = (uintptr_t)&letters[words], words++, lengths++;
            } else a[words++] = option;
            continue;
        case '$': case '%':
            if (!fortran && (word[0] == '%' || !complex)) { values[numbers++] = 1; continue; }
            memset(scalars[scalar], 0, sizeof scalars[scalar]);
            if (single) *(float *)scalars[scalar] = 1; else scalars[scalar][0] = 1;
            a[words++] = (uintptr_t)scalars[scalar++];
            continue;
        case 'A': case 'X': a[words++] = (uintptr_t)matrices[matrix++ % MATRICES]; continue;
        case 'W': a[words++] = (uintptr_t)work; continue;
        case 'Y': a[words++] = (uintptr_t)more_work; continue;
        case 'P': {
            static int ints[4][WORK / 16];
            static int next;
            int *place = ints[next++ % 4];
            for (int i = 0; i < LD; i++) place[i] = i + 1;
            a[words++] = (uintptr_t)place;
            continue;
        }
        default: a[words++] = (uintptr_t)calloc(1, 16); continue;
        }
        if (is_integer) {
            integers[words] = value;
            a[words] = fortran ? (uintptr_t)&integers[words] : (uintptr_t)value;
            words++;
        }
    }
    for (int i = 0; i < lengths; i++) a[words++] = 1;
    mul = add = 0;
    row->count();
    double expected = complex ? 6 * mul + 2 * add : mul + add;
    printf("%s %.17g %d\n", name, expected, row->kind == 1);
    void *found = function(name);
    double result;
#define WORDS a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12], a[13], \
    a[14], a[15], a[16], a[17], a[18], a[19], a[20], a[21], a[22], a[23], a[24], a[25]
    if (single) result = ((Singles)found)(WORDS, (float)values[0], (float)values[1]);
    else result = ((Doubles)found)(WORDS, values[0], values[1]);
    /* A work-space query is a call without operations. */
    if (strstr(row->parameters, " w ") && fortran) {
        static int query = -1;
        for (int i = 0; i < words; i++)
            if (a[i] == (uintptr_t)&integers[i] && integers[i] == WORK / 16) a[i] = (uintptr_t)&query;
        printf("%s 0 0\n", name);
        if (single) ((Singles)found)(WORDS, 0, 0);
        else ((Doubles)found)(WORDS, 0, 0);
    }
    /* Results are passed through: the library's own function, found without the recorder's, returns the same. (The
     * true sum would not do: OpenBLAS 0.3.21 takes casum wrong on CPUs with AVX-512 BF16.) */
    if (strcmp(row->stem, "asum") == 0) {
        void *own = dlsym(blas, name);
        double expected;
        if (single) expected = ((Singles)own)(WORDS, (float)values[0], (float)values[1]);
        else expected = ((Doubles)own)(WORDS, values[0], values[1]);
        if (!(result > 0) || result != expected) printf("wrong %s %g %g\n", name, result, expected), exit(4);
    }
}

/* Transforms: 5·N·log2 N, half of it if one side is real; N is the product of all lengths. (FFTW's own
 * count, fftw_flops, counts instructions on several numbers each.) */
static void transform(const char *prefix, const char *library) {
    char name[64];
    if (!dlopen(library, RTLD_NOW | RTLD_GLOBAL)) printf("missing %s\n", library), exit(3);
#define NAMED(stem) (snprintf(name, sizeof name, "%s_%s", prefix, stem), function(name))
    void *x = matrices[0], *y = matrices[1];
    memset(x, 0, MATRIX);
    int most = strcmp(prefix, "fftwl") ? 30 : 20; /* Its numbers are twice as long. */
    int a = size_between(2, most), b = size_between(2, most), c = size_between(2, 8), all[] = {a, b};
    struct { void *plan; double points, factor; const char *execute; } plans[12];
    int number = 0;
#define PLAN(made, n, f, how) plans[number].plan = made, plans[number].points = n, \
    plans[number].factor = f, plans[number++].execute = how
    PLAN(((void *(*)(int, void *, void *, int, unsigned))NAMED("plan_dft_1d"))(a, x, y, -1, 64), a, 5, "execute");
    PLAN(((void *(*)(int, int, void *, void *, int, unsigned))NAMED("plan_dft_2d"))(a, b, x, y, -1, 64), a * b, 5, "execute_dft");
    PLAN(((void *(*)(int, int, int, void *, void *, int, unsigned))NAMED("plan_dft_3d"))(a, b, c, x, y, -1, 64), a * b * c, 5, "execute_dft");
    PLAN(((void *(*)(int, int *, void *, void *, int, unsigned))NAMED("plan_dft"))(2, all, x, y, -1, 64), a * b, 5, "execute");
    PLAN(((void *(*)(int, void *, void *, unsigned))NAMED("plan_dft_r2c_1d"))(a, x, y, 64), a, 2.5, "execute_dft_r2c");
    PLAN(((void *(*)(int, int, void *, void *, unsigned))NAMED("plan_dft_c2r_2d"))(a, b, x, y, 64), a * b, 2.5, "execute_dft_c2r");
    PLAN(((void *(*)(int, void *, void *, int, unsigned))NAMED("plan_r2r_1d"))(a, x, y, 5, 64), a, 2.5, "execute_r2r");
    PLAN(((void *(*)(int, int *, int, void *, int *, int, int, void *, int *, int, int, int, unsigned))
          NAMED("plan_many_dft"))(2, all, 3, x, NULL, 1, a * b, y, NULL, 1, a * b, -1, 64), a * b, 15, "execute");
    struct { int n, is, os; } dim = {a, 1, 1}, many = {c, a, a};
    PLAN(((void *(*)(int, void *, int, void *, void *, void *, int, unsigned))NAMED("plan_guru_dft"))(1, &dim, 1, &many, x, y, -1, 64),
         a, 5.0 * c, "execute_dft");
    for (int i = 0; i < number; i++) {
        void (*execute)(void *, void *, void *) = NAMED(plans[i].execute);
        printf("%s %.17g 0\n", name, plans[i].factor * plans[i].points * log2(plans[i].points));
        execute(plans[i].plan, x, y);
        ((void (*)(void *))NAMED("destroy_plan"))(plans[i].plan);
    }
}

/* The same with the legacy interface for Fortran: everything by reference, a plan in 64 bits, names with one
 * or two underscores at the end. */
static void fortran_transform(const char *prefix) {
    char name[64];
    void *x = matrices[0], *y = matrices[1];
    memset(x, 0, MATRIX);
    int most = *prefix == 'l' ? 30 : 20, forward = -1, flags = 64, r2hc = 0, one = 1, two = 2, three = 3;
    int a = size_between(2, most), b = size_between(2, most), c = size_between(2, 8), all[] = {a, b}, points = a * b;
    struct { long long plan; double points, factor; const char *execute; } plans[12];
    int number = 0;
    typedef void maker(void *, ...);
#define LEGACY(stem) (snprintf(name, sizeof name, "%s_%s", prefix, stem), (maker *)function(name))
#define MADE(stem, n, f, how, ...) LEGACY(stem)(&plans[number].plan, __VA_ARGS__), \
    plans[number].points = n, plans[number].factor = f, plans[number++].execute = how
    MADE("plan_dft_1d_", a, 5, "execute_", &a, x, y, &forward, &flags);
    MADE("plan_dft_2d__", a * b, 5, "execute_dft__", &a, &b, x, y, &forward, &flags);
    MADE("plan_dft_3d_", a * b * c, 5, "execute_dft_", &a, &b, &c, x, y, &forward, &flags);
    MADE("plan_dft_", a * b, 5, "execute__", &two, all, x, y, &forward, &flags);
    MADE("plan_dft_r2c_1d_", a, 2.5, "execute_dft_r2c_", &a, x, y, &flags);
    MADE("plan_dft_c2r_2d_", a * b, 2.5, "execute_dft_c2r_", &a, &b, x, y, &flags);
    MADE("plan_r2r_1d_", a, 2.5, "execute_r2r_", &a, x, y, &r2hc, &flags);
    MADE("plan_many_dft_", a * b, 15, "execute_", &two, all, &three, x, all, &one, &points, y, all, &one, &points,
         &forward, &flags);
    MADE("plan_guru_dft_", a, 5.0 * c, "execute_dft_", &one, &a, &one, &one, &one, &c, &a, &a, x, y, &forward, &flags);
#undef MADE
    for (int i = 0; i < number; i++) {
        maker *execute = LEGACY(plans[i].execute);
        size_t length = strlen(name); /* In a trace both spellings have the same name. */
        if (name[length - 2] == '_') name[length - 1] = 0;
        printf("%s %.17g 0\n", name, plans[i].factor * plans[i].points * log2(plans[i].points));
        execute(&plans[i].plan, x, y);
        LEGACY("destroy_plan_")(&plans[i].plan);
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    srand(argc > 1 ? (unsigned)atoi(argv[1]) : 1);
    blas = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_GLOBAL);
    if (!blas) return printf("missing OpenBLAS\n"), 3;
    for (int i = 0; i < MATRICES; i++) matrices[i] = malloc(MATRIX);
    work = malloc(WORK), more_work = malloc(WORK);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char types[20];
        snprintf(types, sizeof types, "%s", rows[i].types);
        char *list[4];
        int number = 0;
        for (char *type = strtok(types, " "); type; type = strtok(NULL, " ")) list[number++] = type;
        for (int t = 0; t < number; t++)
            for (const char *as = rows[i].as; *as; as++) call(&rows[i], list[t], *as == 'f');
    }
    transform("fftw", "libfftw3.so.3");
    transform("fftwf", "libfftw3f.so.3");
    transform("fftwl", "libfftw3l.so.3");
    fortran_transform("dfftw");
    fortran_transform("sfftw");
    fortran_transform("lfftw");
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
