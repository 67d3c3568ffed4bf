/* STREAM triad, a[i] = b[i] + s*c[i] on doubles, as McCalpin's benchmark states it, with non-temporal stores.
 *
 * usage: triad N REPEATS
 * For each line on standard input it runs the triad REPEATS times over three arrays of N doubles and prints the
 * seconds of one run. */
#include <immintrin.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

static double *array(size_t n, double value) {
    size_t bytes = (n * sizeof(double) + (2 << 20) - 1) / (2 << 20) * (2 << 20);
    double *x = aligned_alloc(2 << 20, bytes);
    if (!x) {
        perror("aligned_alloc");
        exit(1);
    }
    madvise(x, bytes, MADV_HUGEPAGE);
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < n; i++) x[i] = value;
    return x;
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: triad N REPEATS\n");
        return 2;
    }
    size_t n = strtoull(argv[1], NULL, 10) / 64 * 64;
    int repeats = atoi(argv[2]);
    double *a = array(n, 0), *b = array(n, 2), *c = array(n, 1);
    const double s = 3;
    char line[64];
    while (fgets(line, sizeof line, stdin)) {
        double start = now();
        for (int r = 0; r < repeats; r++) {
#if defined(__AVX512F__)
#pragma omp parallel for schedule(static)
            for (size_t i = 0; i < n; i += 8)
                _mm512_stream_pd(a + i, _mm512_add_pd(_mm512_load_pd(b + i),
                                                      _mm512_mul_pd(_mm512_set1_pd(s), _mm512_load_pd(c + i))));
#else
#pragma omp parallel for schedule(static)
            for (size_t i = 0; i < n; i += 4)
                _mm256_stream_pd(a + i, _mm256_add_pd(_mm256_load_pd(b + i),
                                                      _mm256_mul_pd(_mm256_set1_pd(s), _mm256_load_pd(c + i))));
#endif
            _mm_sfence();
        }
        printf("%.9f\n", (now() - start) / repeats);
        fflush(stdout);
    }
    return 0;
}
