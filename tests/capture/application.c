// A program that multiplies: what it does is the words of its command line, in order. LINKED: it is linked with
// cuBLAS; else it loads what it calls. Prints what it computed, so that runs can be compared.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef int (*GemmEx)(void*, int, int, int, int, int, const void*, const void*, int, int, const void*, int, int,
                      const void*, void*, int, int, int, int);
typedef int (*Matmul)(void*, void*, const void*, const void*, void*, const void*, void*, const void*, const void*, void*,
                      void*, void*, const void*, void*, size_t, void*);

int cublasGemmEx(void*, int, int, int, int, int, const void*, const void*, int, int, const void*, int, int, const void*,
                 void*, int, int, int, int) __attribute__((weak));
int cublasLtMatmul(void*, void*, const void*, const void*, void*, const void*, void*, const void*, const void*, void*,
                   void*, void*, const void*, void*, size_t, void*) __attribute__((weak));

static float alpha = 1, beta = 0;
static GemmEx gemm_ex;
typedef int (*Sgemm)(void*, int, int, int, int, int, const void*, const void*, int, const void*, int, const void*, void*, int);
static Sgemm sgemm;

static int multiply(int m) {
  return gemm_ex(0, 1, 0, m, 4, 8, &alpha, (void*)16, 14, 8, (void*)32, 14, 8, &beta, (void*)64, 14, m, 68, -1);
}

static void* multiply_often(void* count) {
  for (long i = 0; i < (long)count; ++i) multiply(64 + (int)(i % 4));
  return NULL;
}

static void in_threads(int threads, long count) {
  pthread_t list[64];
  for (int i = 0; i < threads; ++i) pthread_create(&list[i], NULL, multiply_often, (void*)count);
  for (int i = 0; i < threads; ++i) pthread_join(list[i], NULL);
}

static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

// Tables of attributes as cuBLASLt numbers them: a product of 4096 x 16 x 1024 with a bias.
static long product[40], a_layout[40], b_layout[40], d_layout[40];
static void describe(void) {
  product[0] = 68, product[3] = 1, product[7] = 36, product[26] = 14;
  long* const layouts[] = {a_layout, b_layout, d_layout};
  const long sides[][2] = {{1024, 4096}, {1024, 16}, {4096, 16}};
  for (int i = 0; i < 3; ++i) {
    layouts[i][0] = 14, layouts[i][2] = sides[i][0], layouts[i][3] = sides[i][1], layouts[i][4] = sides[i][0];
    layouts[i][5] = 1;
  }
}
static int matmul(Matmul function) {
  return function((void*)1, product, &alpha, (void*)16, a_layout, (void*)32, b_layout, &beta, (void*)64, d_layout,
                  (void*)64, d_layout, NULL, NULL, 0, NULL);
}

static void measure(const char* what, long calls) {
  for (int round = 0; round < 5; ++round) {
    const double begin = now_ns();
    for (long i = 0; i < calls; ++i) {
      if (strcmp(what, "cublasLtMatmul") == 0) matmul(cublasLtMatmul);
      else multiply(64 + (int)(i % 64));
    }
    printf("%.1f\n", (now_ns() - begin) / (double)calls);
  }
}

int main(int count, char** words) {
#ifdef LINKED
  gemm_ex = cublasGemmEx;
#endif
  describe();
  for (int i = 1; i < count; ++i) {
    char* const word = words[i];
    const long number = i + 1 < count ? atol(words[i + 1]) : 0;
    if (strcmp(word, "gemm") == 0) printf("%d\n", multiply((int)number));
    if (strcmp(word, "matmul") == 0) printf("%d\n", matmul(cublasLtMatmul));
    if (strcmp(word, "often") == 0) for (long n = 0; n < number; ++n) multiply(64);
    if (strcmp(word, "sgemm") == 0) {  // of the library that "find" loaded
      for (long n = 0; n < number; ++n) sgemm((void*)16, 111, 111, 64, 4, 8, &alpha, (void*)16, 64, (void*)32, 8, &beta, (void*)64, 64);
    }
    if (strcmp(word, "load") == 0) {  // as a Python package does
      void* const file = dlopen(words[i + 1], RTLD_NOW | RTLD_LOCAL);
      if (file == NULL) return puts(dlerror()), 3;
      int (*all)(void) = (int (*)(void))dlsym(file, "call_all");
      if (all != NULL) printf("%d\n", all());
    }
    if (strcmp(word, "find") == 0) {
      void* const file = dlopen(words[i + 1], RTLD_NOW | RTLD_LOCAL);
      if (file == NULL) return puts(dlerror()), 3;
      gemm_ex = (GemmEx)dlsym(file, "cublasGemmEx");
      sgemm = (Sgemm)dlsym(file, "rocblas_sgemm");
    }
    if (strcmp(word, "probe") == 0) {
      dlerror();
      void* const found = dlsym(RTLD_DEFAULT, "rocblas_sgemm");
      printf("%s %s\n", found != NULL ? "found" : "none", dlerror() != NULL ? "error" : "no error");
      printf("%d\n", dlsym(RTLD_NEXT, "printf") == dlsym(RTLD_DEFAULT, "printf"));
    }
    if (strcmp(word, "threads") == 0) in_threads(8, number);
    if (strcmp(word, "fork") == 0) {
      fflush(stdout);
      if (fork() == 0) {
        multiply(1000 + (int)number);
        if (number == 2) _exit(0);
        exit(0);
      }
      wait(NULL);
    }
    if (strcmp(word, "spawn") == 0) {
      char* child[] = {words[0], "gemm", "2000", NULL};
      pid_t pid;
      posix_spawn(&pid, words[0], NULL, NULL, child, environ);
      wait(NULL);
    }
    if (strcmp(word, "exec") == 0) {
      char* next[] = {words[0], "gemm", "3000", NULL};
      execv(words[0], next);
    }
    if (strcmp(word, "execl") == 0) execl(words[0], words[0], "gemm", "3000", (char*)NULL);
    if (strcmp(word, "execlp") == 0) execlp(words[0], words[0], "gemm", "3000", (char*)NULL);
    if (strcmp(word, "execle") == 0) execle(words[0], words[0], "gemm", "3000", (char*)NULL, environ);
    if (strcmp(word, "sleep") == 0) usleep((unsigned)number * 1000);
    if (strcmp(word, "await") == 0) while (access(words[i + 1], F_OK) != 0) usleep(1000);
    if (strcmp(word, "kill") == 0) kill(getpid(), SIGKILL);
    if (strcmp(word, "abort") == 0) abort();
    if (strcmp(word, "_exit") == 0) fflush(stdout), _exit(5);
    if (strcmp(word, "quick_exit") == 0) fflush(stdout), quick_exit(6);
    if (strcmp(word, "chdir") == 0) printf("%d\n", chdir("/"));
    if (strcmp(word, "measure") == 0) measure(words[i + 1], atol(words[i + 2]));
  }
  return 0;
}
