/* GRETA's tuner for C: finds the fastest configuration of a problem and stores it in a database,
 * which runtimes of greta.h use. The rules of greta.h hold: statuses, options that begin with their
 * size, and its GRETA_ABI_VERSION.
 */
#ifndef GRETA_TUNE_H
#define GRETA_TUNE_H

#include <greta.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct greta_tuner greta_tuner;

/* Receives an event of a run: one JSON object, as a line of `greta-tune --json-lines`
 * (docs/json.md). Calls may come from several threads, one at a time. The only function of GRETA
 * that it may call is greta_tune_stop(). */
typedef void (*greta_tune_observer)(void* context, const char* event);

typedef int32_t greta_tune_role;
enum { GRETA_TUNE_INPUT = 0, GRETA_TUNE_OUTPUT = 1, GRETA_TUNE_INPUT_OUTPUT = 2 };

/* An operand of a described kernel on the host, row-major and packed. */
typedef struct greta_tune_operand {
  const char* name;
  greta_tune_role role;
  greta_dtype dtype; /* of `input` */
  const int64_t* shape;
  size_t rank;
  const void* input; /* elements that the kernel reads; NULL for outputs */
  double* expected;  /* receives the elements that it writes; NULL for inputs */
} greta_tune_operand;
/* Computes the reference of a described kernel: all elements of its outputs from its inputs. Calls
 * come from other threads; without workers, also from several at once. Returns 0, or another number
 * if it failed, which ends the run. */
typedef int32_t (*greta_tune_reference)(void* context, const char* problem,
                                        const greta_tune_operand* operands, size_t count);

typedef struct greta_tune_options {
  size_t size;          /* sizeof(greta_tune_options) */
  const char* device;   /* "auto", "vulkan:0", a part of a name; a list as "hip:0,vulkan:0" */
  const char* database; /* of trials and winners; created if missing; required */
  const char* cache_directory; /* of compiled kernels and locks; required */
  const char* budget;          /* time "60s", trials "500", or share of the space "5%" */
  const char* strategy;        /* with options as "genetic:population=30" */
  /* The command that starts a worker process, in which kernels run: the path of greta-tune, then
   * "worker"; and its number of words. 0: kernels run in this process, and a crash ends it. */
  const char* const* worker;
  size_t worker_count;
  greta_tune_observer observer; /* NULL: none */
  void* context;                /* of the observer */
  uint64_t flush_bytes;         /* flushes the caches before each sample; 0: by their size */
  uint64_t seed;                /* of inputs and search, if has_seed is 1; random otherwise */
  int32_t has_seed;
  int32_t warm;          /* 1: caches are not flushed */
  int32_t naive;         /* 1: also time a kernel with one thread per output */
  int32_t reject_spills; /* 1: candidates that spill registers fail before they run */
  int32_t no_resume;     /* 1: start afresh if the same request was interrupted */
  int32_t retry_failed;  /* 1: also try candidates that hung or crashed before */
  int32_t for_energy;    /* 1: also find the configuration of the least energy */
  int32_t pin;           /* 1: pin the answer */
  int32_t no_lock;       /* 1: don't wait for others that measure on the card */
  int32_t allow_unsafe;  /* 1: also use what failed its health check */
  int32_t no_shipped;    /* 1: don't try the winners of the databases that GRETA ships */
  int32_t allow_vendor;  /* 1: store what a vendor's library computes faster, too */
  /* A kernel's description (docs/your-kernel.md), whose operation is known beside GRETA's own;
   * NULL: none. */
  const char* kernel;
  /* What its results are checked with, in place of the description's reference; NULL: that. Workers
   * ask this process for it. */
  greta_tune_reference reference;
  void* reference_context;
  /* How far an element may be from this reference's: absolute + relative |reference|, and units in
   * the last place. All 0: as the description says. */
  double absolute, relative, ulp;
} greta_tune_options;

GRETA_API greta_tune_options greta_tune_defaults(void);
/* Returns GRETA_ABI_VERSION of the library. */
GRETA_API int32_t greta_tune_abi_version(void);
/* Returns the message of this thread's last failed call of this library, or "". Valid until the
 * thread's next call. */
GRETA_API const char* greta_tune_last_error(void);

/* Creates a tuner of a problem: the operation and its fields, as "gemm m=64 n=48 k=40 dtype=f16",
 * where fields that have a default may be missing. Checks both, and uses no device yet. */
GRETA_API greta_status greta_tune_open(const greta_tune_options* options, const char* problem,
                                       greta_tuner** tuner);
/* Returns the problem's key, with all fields. Valid as long as the handle. */
GRETA_API greta_status greta_tune_problem(const greta_tuner* tuner, const char** key);
/* Tunes the problem, and returns what `greta-tune OPERATION --json` prints: one JSON object. Valid
 * as long as the handle, or until the next run. A run that is stopped returns what it has, or
 * GRETA_INTERRUPTED if it has not begun to search. */
GRETA_API greta_status greta_tune_run(greta_tuner* tuner, const char** result);
/* Stops the current run, or the next one if there is none, soon. Trials are kept, and an equal run
 * goes on with them. May be called from any thread. */
GRETA_API greta_status greta_tune_stop(greta_tuner* tuner);
GRETA_API void greta_tune_close(greta_tuner* tuner); /* NULL is ignored */

#ifdef __cplusplus
}
#endif

#endif
