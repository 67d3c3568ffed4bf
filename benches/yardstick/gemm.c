/* Times cblas_sgemm or cblas_dgemm of whatever BLAS it is linked with: C = A*B', the layout we use.
 *
 * usage: gemm s|d N REPEATS
 * For each line on standard input it multiplies REPEATS times and prints the seconds of one product. */
#include <cblas.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

static void *matrix(size_t elements, size_t size, int is_double) {
    void *m = aligned_alloc(2 << 20, (elements * size + (2 << 20) - 1) / (2 << 20) * (2 << 20));
    if (!m) {
        perror("aligned_alloc");
        exit(1);
    }
    for (size_t i = 0; i < elements; i++) {
        double x = (double)(i * 7919 % 1000) / 1000 - 0.5;
        if (is_double)
            ((double *)m)[i] = x;
        else
            ((float *)m)[i] = (float)x;
    }
    return m;
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: gemm s|d N REPEATS\n");
        return 2;
    }
    int is_double = argv[1][0] == 'd', n = atoi(argv[2]), repeats = atoi(argv[3]);
    size_t size = is_double ? sizeof(double) : sizeof(float), elements = (size_t)n * n;
    void *a = matrix(elements, size, is_double), *b = matrix(elements, size, is_double);
    void *c = matrix(elements, size, is_double);
    char line[64];
    while (fgets(line, sizeof line, stdin)) {
        double start = now();
        for (int i = 0; i < repeats; i++) {
            if (is_double)
                cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, n, n, n, 1.0, a, n, b, n, 0.0, c, n);
            else
                cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, n, n, n, 1.0f, a, n, b, n, 0.0f, c, n);
        }
        printf("%.9f\n", (now() - start) / repeats);
        fflush(stdout);
    }
    return 0;
}
