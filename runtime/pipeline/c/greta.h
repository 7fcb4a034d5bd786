/* GRETA's runtime for C: tuned operations on tensors in device memory, and pipelines of them.
 *
 * Functions return a status. If it is not GRETA_OK, greta_last_error() returns a one-line message,
 * nothing was changed, and output parameters were not written. A null handle or string where one is
 * required and an invalid enumeration value are errors, not undefined behaviour. Released handles
 * must not be used again.
 *
 * Handles keep the objects that they need alive: a runtime may be closed while its tensors and
 * queues exist. A runtime and all objects that belong to it may be used by one thread at a time.
 * Tensors can only be used with operations of the same runtime.
 *
 * The interface is backward compatible. Options begin with their size. A program that was built
 * with an older header works with a newer library: fields that it lacks have their defaults. A
 * newer program works with an older library if the fields that the library lacks are zero. Start
 * from greta_…_defaults().
 */
#ifndef GRETA_H
#define GRETA_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define GRETA_API __attribute__((visibility("default")))
#else
#define GRETA_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Versions and failures ---- */

/* Enumerations are 32-bit integers with every compiler. */

#define GRETA_ABI_VERSION 1

typedef int32_t greta_status;
enum {
  GRETA_OK = 0,
  GRETA_CONSTRAINTS = 1,      /* there is no valid configuration */
  GRETA_COMPILE = 2,          /* the kernel compiler failed */
  GRETA_LAUNCH = 3,           /* the device rejected a launch */
  GRETA_TIMEOUT = 4,          /* not finished in time; the runtime must be opened again */
  GRETA_CRASH = 5,            /* a compiler process crashed */
  GRETA_OUT_OF_MEMORY = 6,    /* of the device or the host */
  GRETA_UNAVAILABLE = 7,      /* a device or feature is missing */
  GRETA_INVALID_ARGUMENT = 8, /* the call is invalid */
  GRETA_DEVICE_LOST = 9,      /* the runtime must be opened again */
  GRETA_IO = 10,              /* a file could not be read or written */
  GRETA_INTERNAL = 11,        /* a defect of GRETA */
  GRETA_INTERRUPTED = 12      /* stopped on request (greta_tune.h) */
};

/* Returns GRETA_ABI_VERSION of the library. */
GRETA_API int32_t greta_abi_version(void);
/* Returns the version, e.g. "0.1.0". */
GRETA_API const char* greta_version(void);
/* Returns the message of this thread's last failed call, or "" if none failed. Valid until the
 * thread's next call. */
GRETA_API const char* greta_last_error(void);

/* ---- Runtime ---- */

typedef struct greta_runtime greta_runtime;

typedef struct greta_runtime_options {
  size_t size;                 /* sizeof(greta_runtime_options) */
  const char* device;          /* "auto", "vulkan:0", or a part of a device's name */
  const char* database;        /* the user's; NULL: none */
  const char* shipped;         /* an application's; NULL: none */
  const char* cache_directory; /* of compiled kernels; NULL: none */
  const char* compile_helper;  /* greta-compile-helper; NULL: searched next to the program */
  /* Further databases of the application, in order after `shipped`, and their number. The databases
   * that GRETA ships come after these, unless no_shipped is 1. */
  const char* const* application;
  size_t application_count;
  int32_t no_shipped;
  int32_t allow_vendor; /* 1: also run what a vendor's library computes faster (docs/vendor.md) */
  /* 1: no launch begins before the one ahead of it ends (docs/runtime.md). Of 64 bits, so that no
   * padding follows. */
  int64_t no_overlap;
} greta_runtime_options;

GRETA_API greta_runtime_options greta_runtime_defaults(void);
GRETA_API greta_status greta_runtime_open(const greta_runtime_options* options,
                                          greta_runtime** runtime);
GRETA_API void greta_runtime_close(greta_runtime* runtime); /* NULL is ignored */
/* Returns the id, e.g. "vulkan:0", and the driver's name of the device. Valid as long as the
 * handle. */
GRETA_API greta_status greta_runtime_device(const greta_runtime* runtime, const char** id,
                                            const char** name);
/* Returns the device and the library as one JSON object: "id", "name", "fingerprint" (of captures,
 * docs/runtime.md) and "greta", the version. Valid until this function's next call with the handle.
 */
GRETA_API greta_status greta_runtime_describe(greta_runtime* runtime, const char** json);
/* Returns the key of a problem, given by the operation and its fields, as "gemm m=64 n=48 k=40
 * dtype=f16", where fields that have a default may be missing. Valid until this function's next
 * call with the handle. */
GRETA_API greta_status greta_runtime_problem(greta_runtime* runtime, const char* problem,
                                             const char** key);
/* Returns what runs for a problem, given likewise, as one JSON object: "problem", the key;
 * "bucket", the key of the problem that stands for others of about its extents; "config"; "origin"
 * ("exact", "nearest shape", "same architecture", "static prior", "default", "forced");
 * "expected_regret" and "speedup", each null if unknown; "rule", the text of the rule that forced
 * it, or null. Compiles the kernels. Of the key of a chain (docs/fusion.md), "config" is the
 * alternative that pipelines record for it. Valid until this function's next call with the handle.
 */
GRETA_API greta_status greta_runtime_lookup(greta_runtime* runtime, const char* problem,
                                            const char** json);
/* Returns whether the weights of products should be rows or panels (greta_packing), by what would run with
 * both: `count` products of quantized_gemm in rows, given likewise, as of several m. weights: the share of each
 * one's time, in any unit; NULL: all are equal. predict 0: panels only if winners of both packings of all
 * products were measured on this device, and panels are at least 3 % faster; else products without winners are
 * predicted. One JSON object: "packing" ("rows" or "panels"); "measured"; "ratio", the mean time of panels
 * over that of rows, or null; "reason", one line; "products", a list of "problem", "rows" and "panels" (each
 * "config" and "origin"), "ratio", "low", "high", each null if unknown, and "measured". Compiles nothing. Valid
 * until this function's next call with the handle. */
GRETA_API greta_status greta_runtime_packing(greta_runtime* runtime, const char* const* products,
                                             const double* weights, size_t count, int32_t predict,
                                             const char** json);
/* Adds a rule that decides which configuration runs for the problems that it matches, in place of
 * the databases: "gemm m<=64 dtype=f16: tiled BM=64 BN=64". Before the colon stands the operation,
 * or * for each one that has the variant, and conditions on dimensions, attributes, dtype and out
 * with =, !=, <, <=, > or >=. After it stands the variant, and values of its parameters; the others
 * have those of the best known configuration of the variant with these values. "@FILE" adds the
 * rules of a file, one in each line; lines that begin with # are comments. Of several rules that
 * match, the first one decides; the origin of its answers is "forced". A configuration that the
 * problem or the device does not allow makes the first use of the problem fail
 * (GRETA_CONSTRAINTS). This function fails for what does not exist, and for a rule that matches a
 * problem that has run or was prepared. */
GRETA_API greta_status greta_runtime_use(greta_runtime* runtime, const char* rule);
/* Returns all rules as a JSON array of objects: "rule", the text; "matched", whether it matched a
 * problem so far; "decided", whether it decided about one, which an earlier rule prevents. Valid
 * until this function's next call with the handle. */
GRETA_API greta_status greta_runtime_rules(greta_runtime* runtime, const char** json);
/* Loads a kernel that a file describes (docs/your-kernel.md) as an operation of this runtime:
 * `description` is a path, with a '.' or a '/', or the name of a kernel that one of the databases
 * carries (greta-db export --ship --with-kernels). Then greta_run() takes its problems, with the
 * operands of the description in order, and look-ups use what the databases have of it. Returns the
 * kernel's names as one JSON object: "name", "summary", "language", "dtype" and "out" (of problem
 * keys), "dimensions" with "name", "help", "default" (null: required), "least" and "most",
 * "parameters" with "name" and "values", and "operands" with "name", "role", "dtype" and "shape"
 * (formulas). Valid as long as the handle; `json` may be NULL. */
GRETA_API greta_status greta_operation_load(greta_runtime* runtime, const char* description,
                                            const char** json);
/* Compiles the kernels of problems, given as greta_runtime_problem() takes them, with `jobs` threads
 * (0: one per core). Tries all problems, and fails with the first error. */
GRETA_API greta_status greta_runtime_precompile(greta_runtime* runtime, const char* const* problems,
                                                size_t count, uint32_t jobs);

/* A problem that is ready to run on addresses (greta_queue_run). */
typedef struct greta_prepared greta_prepared;
/* Looks up a problem, given as greta_runtime_problem() takes it, and compiles its kernels. The
 * result is valid as long as the runtime's handle, and the same for equal problems. */
GRETA_API greta_status greta_runtime_prepare(greta_runtime* runtime, const char* problem,
                                             const greta_prepared** prepared);

/* ---- Tensors ---- */

typedef struct greta_tensor greta_tensor;

typedef int32_t greta_dtype;
enum {
  GRETA_F32 = 0,
  GRETA_F16 = 1,
  GRETA_BF16 = 2,
  GRETA_I32 = 3,
  /* operands of described kernels (greta_operation_load) */
  GRETA_F64 = 4,
  GRETA_I64 = 5,
  GRETA_U32 = 6,
  GRETA_I8 = 7,
  GRETA_U8 = 8
};
typedef int32_t greta_memory;
enum {
  GRETA_DEVICE = 0, /* fastest for kernels */
  GRETA_STAGING = 1 /* host-visible */
};

/* Allocates a packed, uninitialised tensor of up to 4 dimensions, the last one innermost. */
GRETA_API greta_status greta_tensor_allocate(greta_runtime* runtime, greta_dtype dtype,
                                             const int64_t* shape, size_t rank, greta_memory memory,
                                             greta_tensor** tensor);
/* Create views of the same memory: indices [first, first + count) of a dimension, or other extents.
 * Row operations (argmax, softmax, norms) accept column slices of a matrix; rope, kv_update,
 * rope_append and attention accept slices of each token's heads. */
GRETA_API greta_status greta_tensor_slice(const greta_tensor* tensor, size_t dim, int64_t first,
                                          int64_t count, greta_tensor** view);
GRETA_API greta_status greta_tensor_reshape(const greta_tensor* tensor, const int64_t* shape,
                                            size_t rank, greta_tensor** view);
GRETA_API void greta_tensor_release(greta_tensor* tensor); /* NULL is ignored */
/* Releases memory of another library; `context` is what was given with it. It is called once, by
 * the call of GRETA that ends the last use, and must not call GRETA. */
typedef void (*greta_release)(void* context);
/* Creates a tensor in memory that another library allocated on the runtime's device: that of HIP or
 * CUDA for hip, of the host for hip-host. It is used in place. `strides` are in elements, as those
 * of a part of a row-major tensor; NULL: packed. GRETA_UNAVAILABLE for devices of other APIs. If
 * this function fails, `release` is not called; it may be NULL. */
GRETA_API greta_status greta_tensor_wrap(greta_runtime* runtime, greta_dtype dtype,
                                         const int64_t* shape, const int64_t* strides, size_t rank,
                                         void* memory, greta_release release, void* context,
                                         greta_tensor** tensor);
/* Returns the device address of the first element. */
GRETA_API greta_status greta_tensor_address(const greta_tensor* tensor, uint64_t* address);
/* Returns a tensor's properties. `shape` must have room for 4 extents. Outputs may be NULL. */
GRETA_API greta_status greta_tensor_describe(const greta_tensor* tensor, greta_dtype* dtype,
                                             int64_t* shape, size_t* rank, size_t* bytes);
/* Returns the host pointer to the first element. Fails for memory that is not host-visible. */
GRETA_API greta_status greta_tensor_host(const greta_tensor* tensor, void** host);
/* Blocking copies of a whole contiguous tensor; `bytes` must be its size. Queues that use it must
 * be synchronised first. */
GRETA_API greta_status greta_tensor_upload(const greta_tensor* tensor, const void* from,
                                           size_t bytes);
GRETA_API greta_status greta_tensor_download(const greta_tensor* tensor, void* to, size_t bytes);

/* ---- Queues, pipelines and graphs ---- */

typedef struct greta_queue greta_queue;
typedef struct greta_pipeline greta_pipeline;
typedef struct greta_graph greta_graph;
/* Receives operations: a queue runs them immediately, a pipeline records them. */
typedef struct greta_operations greta_operations;

GRETA_API greta_status greta_queue_open(greta_runtime* runtime, greta_queue** queue);
/* Opens a queue on a stream of another library: hipStream_t or CUstream, NULL for the default
 * stream. The queue's work runs in the stream's order once it is submitted, also while the stream
 * records a graph (all kernels that it needs must have run before). Wrapped memory must exist until
 * the stream has passed the work; a queue keeps other tensors until it is synchronised. */
GRETA_API greta_status greta_queue_open_on(greta_runtime* runtime, void* stream,
                                           greta_queue** queue);
/* Returns the queue's hipStream_t or CUstream. GRETA_UNAVAILABLE for devices of other APIs. */
GRETA_API greta_status greta_queue_stream(const greta_queue* queue, void** stream);
GRETA_API void greta_queue_close(greta_queue* queue); /* waits for its work; NULL is ignored */
/* Returns the queue's operations, or NULL for NULL. Like a pipeline's, they are valid as long as
 * their owner and must not be released. */
GRETA_API greta_operations* greta_queue_operations(greta_queue* queue);
GRETA_API greta_status greta_queue_submit(greta_queue* queue);
/* Runs a prepared problem of the queue's runtime on the operands at these device addresses, in the
 * order of greta_run(), and submits it. The least cost of a call: there are no tensors, and the
 * memory must exist until the work is done. Operands are packed, or have the strides of the
 * problem; one that is written must not overlap another. */
GRETA_API greta_status greta_queue_run(greta_queue* queue, const greta_prepared* prepared,
                                       const uint64_t* addresses, size_t count);
/* Waits until all work has finished, or `seconds` have passed: above 0, at most a day. */
GRETA_API greta_status greta_queue_synchronize(greta_queue* queue, double seconds);
/* Runs a graph. Several replays may be in flight only on the same queue, which orders them. */
GRETA_API greta_status greta_queue_replay(greta_queue* queue, const greta_graph* graph);

GRETA_API greta_status greta_pipeline_begin(greta_runtime* runtime, greta_pipeline** pipeline);
GRETA_API void greta_pipeline_release(greta_pipeline* pipeline); /* NULL is ignored */
GRETA_API greta_operations* greta_pipeline_operations(greta_pipeline* pipeline);
/* Creates a tensor that shares memory with temporaries that are live at other times of a replay. */
GRETA_API greta_status greta_pipeline_temporary(greta_pipeline* pipeline, greta_dtype dtype,
                                                const int64_t* shape, size_t rank,
                                                greta_tensor** tensor);
/* Keeps the contents of a temporary of this pipeline until the end of each replay. */
GRETA_API greta_status greta_pipeline_keep(greta_pipeline* pipeline, const greta_tensor* tensor);
/* Sets the label of the operations that follow. */
GRETA_API greta_status greta_pipeline_label(greta_pipeline* pipeline, const char* label);
/* Compiles missing kernels and creates a graph of the recorded operations. The pipeline is empty
 * afterwards. `as_graph` 0: replays launch operations one by one. */
GRETA_API greta_status greta_pipeline_finish(greta_pipeline* pipeline, int32_t as_graph,
                                             greta_graph** graph);
GRETA_API void greta_graph_release(greta_graph* graph); /* NULL is ignored */
/* Returns one line per operation: label, problem, configuration, its origin, and its speedup over
 * the default. Valid as long as the graph's handle. */
GRETA_API greta_status greta_graph_explain(greta_graph* graph, const char** text);
/* Returns the bytes of device memory of a graph's temporaries and of its kernels' workspace.
 * Outputs may be NULL. */
GRETA_API greta_status greta_graph_memory(const greta_graph* graph, size_t* temporaries,
                                          size_t* workspace);

/* ---- Operations, defined in docs/kernels.md ---- */

typedef int32_t greta_layout;
enum { GRETA_NN = 0, GRETA_NT = 1, GRETA_TN = 2, GRETA_TT = 3 };
typedef int32_t greta_activation;
/* GRETA_SWIGLU and GRETA_GEGLU are gated: the first half of B's columns are gates, the second half
 * what silu or gelu of the gates is multiplied by; C has half of B's columns; more than 8 rows need
 * layout nt or tt. */
enum { GRETA_NO_ACTIVATION = 0, GRETA_SILU = 1, GRETA_GELU = 2, GRETA_SWIGLU = 3, GRETA_GEGLU = 4 };
typedef int32_t greta_gelu_form;
enum { GRETA_GELU_TANH = 0, GRETA_GELU_ERF = 1 };
typedef int32_t greta_weights; /* formats of quantised weights */
enum {
  GRETA_INT4 = 0,
  GRETA_INT8 = 1,
  GRETA_Q4_0 = 2,
  GRETA_Q8_0 = 3,
  GRETA_Q4_K = 4,
  GRETA_Q6_K = 5,
  GRETA_MXFP4 = 6,
  GRETA_SAME_WEIGHTS = 255 /* of down_weights alone: the format of weights */
};
/* who packed weights: AutoAWQ, AutoGPTQ, or GPTQModel (gptq_v2); or panels of 16 rows, units of 16 bytes
 * of each row one after the other, as greta_repack_to_panels() makes them */
typedef int32_t greta_packing;
enum { GRETA_NOT_PACKED = 0, GRETA_AWQ = 1, GRETA_GPTQ = 2, GRETA_GPTQ_V2 = 3, GRETA_PANELS = 4 };
typedef int32_t greta_numbers; /* OCP's fp8, AMD's fp8 of gfx942, int8, OCP's FP4: two in a byte */
enum {
  GRETA_E4M3 = 0,
  GRETA_E5M2 = 1,
  GRETA_E4M3_FNUZ = 2,
  GRETA_E5M2_FNUZ = 3,
  GRETA_NUMBERS_INT8 = 4,
  GRETA_E2M1 = 5
};
/* what shares a scale: an operand, a row of it, a block along k; MX: 32 along k, microscaling formats */
typedef int32_t greta_scales;
enum {
  GRETA_SCALES_OF_TENSORS = 0,
  GRETA_SCALES_OF_ROWS = 1,
  GRETA_SCALES_OF_BLOCKS = 2,
  GRETA_SCALES_MX = 3
};
typedef int32_t greta_rope_pairs;
enum { GRETA_INTERLEAVED = 0, GRETA_HALF = 1 };

typedef struct greta_gemm_options {
  size_t size; /* sizeof(greta_gemm_options) */
  greta_layout layout;
  greta_activation activation;
  float alpha, beta;
  const greta_tensor* bias;     /* [columns of B], of C's type; NULL: none */
  const greta_tensor* residual; /* shape and type of C; NULL: none */
  /* [k], of A's type: A, of at most 8 rows, is replaced by its rmsnorm with this weight; NULL: A as
   * it is */
  const greta_tensor* norm_weight;
  float norm_epsilon;
  /* nonzero: products of f32 may be computed as three of TF32, within f32's bound. In headers before
   * 2026-11-25 padding is here, which must be zero as greta_gemm_defaults() leaves it. */
  int32_t tf32x3;
  /* GRETA_NOT_PACKED, or GRETA_PANELS: B, of f16 or bf16 with GRETA_NT, has panels of rows, its shape
   * is that of rows; of 64 bits, so that no padding follows */
  int64_t packing;
} greta_gemm_options;

typedef struct greta_quantized_gemm_options {
  size_t size; /* sizeof(greta_quantized_gemm_options) */
  greta_weights weights;
  greta_activation activation;  /* GRETA_NO_ACTIVATION, or GRETA_SWIGLU: B has rows of gates, then ups */
  const greta_tensor* scales;   /* as of greta_quantized_gemm(); NULL with blocks */
  const greta_tensor* zeros;    /* the same; NULL: none */
  const greta_tensor* bias;     /* [n], of C's type, which is added; NULL: none */
  const greta_tensor* residual; /* shape and type of C, which is added; NULL: none */
  /* [k], of A's type: A, of at most 8 rows, is replaced by its rmsnorm with this weight; NULL: A as
   * it is */
  const greta_tensor* norm_weight;
  float norm_epsilon;
  int32_t reserved; /* ignored: padding in earlier headers, whose struct ends here */
  /* nonzero: weights may be rounded to A's type, of 16 bits, before they are multiplied; of 64 bits,
   * so that no padding follows */
  int64_t rounded_weights;
  /* a greta_packing. GRETA_PANELS: B has panels of rows, of GRETA_INT4, GRETA_INT8 or GRETA_MXFP4. Others
   * but GRETA_NOT_PACKED: B, scales and zeros are qweight, scales and qzeros of such a checkpoint, as of
   * greta_repack_weights(), and qweight begins at a multiple of 16 bytes; few variants read them. Of 64 bits,
   * so that no padding follows */
  int64_t packing;
} greta_quantized_gemm_options;

typedef struct greta_quantized_grouped_gemm_options {
  size_t size; /* sizeof(greta_quantized_grouped_gemm_options) */
  greta_weights weights;
  greta_activation activation; /* GRETA_NO_ACTIVATION, GRETA_SWIGLU or GRETA_GEGLU */
  /* as of greta_quantized_gemm(), for each group: [groups, rows of B, ..]; NULL with blocks */
  const greta_tensor* scales;
  const greta_tensor* zeros; /* the same; NULL: none */
  /* GRETA_NOT_PACKED, or GRETA_PANELS: B has panels of rows, of GRETA_INT4, GRETA_INT8 or GRETA_MXFP4 */
  int64_t packing;
} greta_quantized_grouped_gemm_options;

typedef struct greta_quantized_experts_options {
  size_t size; /* sizeof(greta_quantized_experts_options) */
  greta_weights weights;
  greta_weights down_weights; /* GRETA_SAME_WEIGHTS; or other blocks, if weights are blocks */
  /* with GRETA_INT4 and GRETA_INT8: [experts, 2 hidden, groups] and [experts, dim, groups], bf16 if x is,
   * else f16; with GRETA_MXFP4 u8, one for 32 weights; NULL with blocks */
  const greta_tensor* gate_up_scales;
  const greta_tensor* down_scales;
  const greta_tensor* gate_up_zeros; /* u8, as the scales; NULL: none */
  const greta_tensor* down_zeros;
  int64_t packing; /* of both matrices, as in greta_quantized_grouped_gemm_options */
} greta_quantized_experts_options;

typedef struct greta_rope_append_options {
  size_t size; /* sizeof(greta_rope_append_options) */
  greta_rope_pairs pairs;
  float epsilon;                   /* of the norms */
  const greta_tensor* q_norm;      /* [dim], of q's type: weights of the RMS norms of q's heads */
  const greta_tensor* k_norm;      /* the same of k's heads; both NULL: no norms */
  const greta_tensor* block_table; /* i32 [batch, pages of a sequence]; NULL: no pages */
} greta_rope_append_options;

typedef struct greta_softmax_options {
  size_t size; /* sizeof(greta_softmax_options) */
  float scale;
  int32_t causal;           /* row r attends to columns up to r mod cols */
  const greta_tensor* mask; /* added to the scaled elements; NULL: none */
} greta_softmax_options;

typedef struct greta_route_options {
  size_t size;         /* sizeof(greta_route_options) */
  int32_t sigmoid;     /* an expert's score is the sigmoid of its logit, not a softmax's share */
  int32_t renormalise; /* weights are scores over the sum of the token's scores */
  const greta_tensor* bias; /* f32 [experts]: selection is by score + bias; NULL: none */
  float scale;              /* of the weights */
  /* groups of neighbouring experts, 1, 2, 4, 8 or 16, of which the best top_groups (1, 2, 3, 4 or
   * 8) have a token's experts */
  int64_t groups;
  int64_t top_groups;
} greta_route_options;

typedef struct greta_attention_options {
  size_t size; /* sizeof(greta_attention_options) */
  float scale; /* of the scores; 0: 1 / sqrt(dim) */
  int32_t causal;
  int64_t window;            /* keys that a causal query attends to; 0: all */
  float softcap;             /* limit c of the scores s, which become c tanh(s / c); 0: none */
  const greta_tensor* sinks; /* f32 [heads], added to the sums of exponentials; NULL: none */
  const greta_tensor* lse;   /* f32 [batch, q, heads], receives the sums' logarithms; NULL: none */
  /* i32 [batch, pages of a sequence]: numbers of the pages of k and v, which are [pages, kv_heads,
   * page, dim] then; NULL: none */
  const greta_tensor* block_table;
  /* i32 [sequences + 1], both or none: where each sequence begins in packed tokens, and where the
   * last one ends. q and out are [queries, heads, dim] then, k and v [keys, kv_heads, dim], and
   * lengths is NULL. */
  const greta_tensor* cu_seqlens_q;
  const greta_tensor* cu_seqlens_k;
  int32_t ragged; /* lengths of sequences differ: selects what was tuned for such ones */
  /* i32 [batch, q, ceil(q / 32)]: queries are the tokens of a tree, whose keys are the last q valid
   * ones; each sees all keys before these, its own, and token j's if bit j % 32 of its word j / 32
   * is set. NULL: none */
  const greta_tensor* tree;
} greta_attention_options;

typedef struct greta_latent_attention_options {
  size_t size; /* sizeof(greta_latent_attention_options) */
  float scale; /* of the scores; 0: 1 / sqrt(latent + rope) */
  int32_t causal;
  const greta_tensor* tree; /* as that of greta_attention_options; NULL: none */
  const greta_tensor* lse;  /* f32 [batch, q, heads], receives the sums' logarithms; NULL: none */
  /* i32 [batch, pages of a sequence]: numbers of the pages of the cache, which is [pages, page,
   * latent + rope] then; NULL: none */
  const greta_tensor* block_table;
  int32_t ragged; /* lengths of sequences differ: selects what was tuned for such ones */
} greta_latent_attention_options;

typedef struct greta_norm_options {
  size_t size;                /* sizeof(greta_norm_options) */
  const greta_tensor* weight; /* [cols]; NULL: none */
  const greta_tensor* bias;   /* [cols], layernorm only; NULL: none */
  float epsilon;
} greta_norm_options;

GRETA_API greta_gemm_options greta_gemm_defaults(void);
GRETA_API greta_quantized_gemm_options greta_quantized_gemm_defaults(void);
GRETA_API greta_quantized_grouped_gemm_options greta_quantized_grouped_gemm_defaults(void);
GRETA_API greta_quantized_experts_options greta_quantized_experts_defaults(void);
GRETA_API greta_rope_append_options greta_rope_append_defaults(void);
GRETA_API greta_softmax_options greta_softmax_defaults(void);
GRETA_API greta_route_options greta_route_defaults(void);
GRETA_API greta_attention_options greta_attention_defaults(void);
GRETA_API greta_latent_attention_options greta_latent_attention_defaults(void);
GRETA_API greta_norm_options greta_norm_defaults(void);

/* Options may be NULL, which selects the defaults. */

/* C = act(alpha norm(A) B + bias + residual + beta C). With B [batch, k, n] or [batch, n, k], A is
 * [batch, m, k] or [batch, k, m] and C [batch, m, n]: a product for each. */
GRETA_API greta_status greta_gemm(greta_operations* operations, const greta_tensor* a,
                                  const greta_tensor* b, const greta_tensor* c,
                                  const greta_gemm_options* options);
/* C = A B[group] for groups of rows, with B [groups, k, n] (GRETA_NT: [groups, n, k]) and groups
 * i32 [groups], which is read when kernels run. With A [rows, k] and C [rows, n] the groups' rows
 * lie one after the other, and `groups` has the row after each one's last; ends must not decrease.
 * With A [groups, most, k] and C [groups, most, n] it has the number of rows of each group that
 * count. Other rows of C stay as they are. The activation is GRETA_NO_ACTIVATION, or with GRETA_NT and B
 * [groups, 2 n, k], which has a group's gates and then its ups, GRETA_SWIGLU or GRETA_GEGLU. */
GRETA_API greta_status greta_grouped_gemm(greta_operations* operations, const greta_tensor* a,
                                          const greta_tensor* b, const greta_tensor* groups,
                                          const greta_tensor* c, greta_layout layout,
                                          greta_activation activation);
/* C = A W^T with quantised weights W [n, k]: a row of B, u8 [n, bytes], has those of a row of W. With
 * GRETA_INT4 and GRETA_INT8, scales [n, groups] (bf16 if A is, else f16) and zero points u8 [n, groups]
 * are beside them: W = scale (B - zero); zeros NULL: int4 has the zero point 8, int8 is signed. With
 * GRETA_MXFP4, scales u8 [n, k / 32] (e8m0) are beside numbers of four bits (e2m1), zeros NULL. The
 * other formats are the blocks of GGUF files, and scales and zeros are NULL. B must begin at a multiple
 * of 16 bytes with GRETA_INT4, GRETA_INT8, GRETA_Q4_K and GRETA_MXFP4, and of 2 with others; zeros and
 * scales of GRETA_MXFP4 at a multiple of 2. */
GRETA_API greta_status greta_quantized_gemm(greta_operations* operations, const greta_tensor* a,
                                            const greta_tensor* b, const greta_tensor* scales,
                                            const greta_tensor* zeros, const greta_tensor* c,
                                            greta_weights weights);
/* The same with an epilogue, one at most: a bias, a residual, or C [.., n] = silu(gate) * up with B of
 * 2 n rows. */
GRETA_API greta_status greta_quantized_gemm_fused(greta_operations* operations,
                                                  const greta_tensor* a, const greta_tensor* b,
                                                  const greta_tensor* c,
                                                  const greta_quantized_gemm_options* options);
/* C = A W[group]^T for groups of rows, as of greta_grouped_gemm(), of which each has quantised weights:
 * B is u8 [groups, n, bytes], whose rows are those of greta_quantized_gemm(), or with an activation
 * [groups, 2 n, bytes], a group's gates and then its ups. */
GRETA_API greta_status greta_quantized_grouped_gemm(
    greta_operations* operations, const greta_tensor* a, const greta_tensor* b,
    const greta_tensor* groups, const greta_tensor* c,
    const greta_quantized_grouped_gemm_options* options);
/* C = (scales_a A) (scales_b B)^T with A [.., k] and B [n, k] of u8, whose bytes are `numbers`; k
 * is a multiple of 16. Scales are f32: [1, 1] each; [m, 1] and [n, 1]; or of blocks [m, ceil(k /
 * 128)] and [ceil(n / 128), ceil(k / 128)]; with GRETA_SCALES_MX as of greta_mx_gemm(). C is f16,
 * bf16 or f32. */
GRETA_API greta_status greta_scaled_gemm(greta_operations* operations, const greta_tensor* a,
                                         const greta_tensor* b, const greta_tensor* scales_a,
                                         const greta_tensor* scales_b, const greta_tensor* c,
                                         greta_numbers numbers, greta_scales scales);
/* The same in the microscaling formats of the Open Compute Project (MX 1.0): A has numbers_a and B
 * numbers_b, GRETA_E4M3, GRETA_E5M2 or GRETA_E2M1, of which a byte has two, the even one in its lower
 * half. Scales are u8 [m, k / 32] and [n, k / 32], e8m0: 2^(byte - 127), 255 is NaN. k is a multiple of
 * 32. */
GRETA_API greta_status greta_mx_gemm(greta_operations* operations, const greta_tensor* a,
                                     const greta_tensor* b, const greta_tensor* scales_a,
                                     const greta_tensor* scales_b, const greta_tensor* c,
                                     greta_numbers numbers_a, greta_numbers numbers_b);
/* C = (scales_a A) (scales_b B[group])^T for groups of rows, as of greta_grouped_gemm(), with B u8 [groups,
 * n, k], or with an activation [groups, 2 n, k], a group's gates and then its ups. Scales of A are those of
 * greta_scaled_gemm() for its rows, scales of B those for each group, one after the other: f32 [groups, 1];
 * [groups n, 1]; or of blocks [groups ceil(n / 128), ceil(k / 128)], n being B's. Of tensors, A has [groups,
 * 1], too. */
GRETA_API greta_status greta_scaled_grouped_gemm(
    greta_operations* operations, const greta_tensor* a, const greta_tensor* b,
    const greta_tensor* scales_a, const greta_tensor* scales_b, const greta_tensor* groups,
    const greta_tensor* c, greta_numbers numbers, greta_scales scales, greta_activation activation);
/* q = y / scale with y = x, rmsnorm(x) with a weight [cols], sum = x + other and y = rmsnorm(sum)
 * with all three, or silu(x) * other; an x [.., 2 cols] holds gate, then up. NULL: not given. q is
 * u8 [.., cols] and cols a multiple of 4. Scales are f32 and written, [rows, 1] or of blocks [rows,
 * ceil(cols / 128)]; or one [1, 1] that is read. With GRETA_SCALES_MX they are u8 [rows, cols / 32] as of
 * greta_mx_gemm(), and q of GRETA_E2M1 is [.., cols / 2]. */
GRETA_API greta_status greta_quantize(greta_operations* operations, const greta_tensor* x,
                                      const greta_tensor* other, const greta_tensor* weight,
                                      const greta_tensor* sum, const greta_tensor* q,
                                      const greta_tensor* scales, greta_numbers numbers,
                                      greta_scales sharing, float epsilon);
/* The same with y = layernorm(x), its weight [cols] and its bias [cols]. NULL: not given; a bias needs a
 * weight. */
GRETA_API greta_status greta_quantize_layernorm(
    greta_operations* operations, const greta_tensor* x, const greta_tensor* weight,
    const greta_tensor* bias, const greta_tensor* q, const greta_tensor* scales,
    greta_numbers numbers, greta_scales sharing, float epsilon);
/* out = a + b */
GRETA_API greta_status greta_add(greta_operations* operations, const greta_tensor* a,
                                 const greta_tensor* b, const greta_tensor* out);
/* out = silu(gate) * up; packed: each row of x holds gate, then up */
GRETA_API greta_status greta_silu_mul(greta_operations* operations, const greta_tensor* gate,
                                      const greta_tensor* up, const greta_tensor* out);
GRETA_API greta_status greta_silu_mul_packed(greta_operations* operations, const greta_tensor* x,
                                             const greta_tensor* out);
GRETA_API greta_status greta_gelu(greta_operations* operations, const greta_tensor* x,
                                  const greta_tensor* out, greta_gelu_form form);
/* x [tokens, heads, dim], positions i32 [tokens], table f32 [positions, dim]; out may be x. */
GRETA_API greta_status greta_rope(greta_operations* operations, const greta_tensor* x,
                                  const greta_tensor* positions, const greta_tensor* table,
                                  const greta_tensor* out, greta_rope_pairs pairs);
/* Writes k, v [tokens, kv_heads, dim] to caches [kv_heads, capacity, dim] from slot `position`
 * (i32) on. v and its cache may have another dim. */
GRETA_API greta_status greta_kv_update(greta_operations* operations, const greta_tensor* k,
                                       const greta_tensor* v, const greta_tensor* position,
                                       const greta_tensor* k_cache, const greta_tensor* v_cache);
/* The same to caches [pages, kv_heads, page, dim]; block_table i32 [pages of the sequence] holds
 * the numbers of its pages. */
GRETA_API greta_status greta_kv_update_pages(greta_operations* operations, const greta_tensor* k,
                                             const greta_tensor* v, const greta_tensor* position,
                                             const greta_tensor* block_table,
                                             const greta_tensor* k_cache,
                                             const greta_tensor* v_cache);
/* rope of q [batch, tokens, heads, dim] to out, which may be q, and of k [batch, tokens, kv_heads,
 * dim]; kv_update with the rotated k and with v. positions i32 [batch, tokens], table f32
 * [positions, dim], slots i32 [batch], caches [batch, kv_heads, capacity, dim] or, with a block
 * table, [pages, kv_heads, page, dim] */
GRETA_API greta_status greta_rope_append(greta_operations* operations, const greta_tensor* q,
                                         const greta_tensor* k, const greta_tensor* v,
                                         const greta_tensor* positions, const greta_tensor* table,
                                         const greta_tensor* slots, const greta_tensor* k_cache,
                                         const greta_tensor* v_cache, const greta_tensor* out,
                                         const greta_rope_append_options* options);
/* ids i32 [tokens], table [vocabulary, dim], out [tokens, dim] */
GRETA_API greta_status greta_embedding(greta_operations* operations, const greta_tensor* ids,
                                       const greta_tensor* table, const greta_tensor* out);
/* ids i32 [cols], x [.., width], out [.., cols]: the columns of x that ids select */
GRETA_API greta_status greta_gather_columns(greta_operations* operations, const greta_tensor* ids,
                                            const greta_tensor* x, const greta_tensor* out);
/* x [.., cols], index i32 [rows] */
GRETA_API greta_status greta_argmax(greta_operations* operations, const greta_tensor* x,
                                    const greta_tensor* index);
/* Draws a token of each row of logits x [.., cols] to token i32 [rows]. settings f32 [rows, 4]:
 * temperature (0: the largest logit), top_k (0: off), top_p (1: off), min_p (0: off); seeds i32
 * [rows, 3]: a seed's two words and an offset. Both or none, else NULL: penalties f32 [rows, 3],
 * repetition (1: off), frequency and presence (0: off), and history i32 [rows, tokens], by which x
 * is changed in place. A row without a logit above -inf gives -1. */
GRETA_API greta_status greta_sample(greta_operations* operations, const greta_tensor* x,
                                    const greta_tensor* settings, const greta_tensor* seeds,
                                    const greta_tensor* penalties, const greta_tensor* history,
                                    const greta_tensor* token);
/* Selects the experts of each token by logits [.., experts]: ids i32 [.., top_k], the largest
 * first, and their weights f32 [.., top_k]. */
GRETA_API greta_status greta_route(greta_operations* operations, const greta_tensor* logits,
                                   const greta_tensor* ids, const greta_tensor* weights,
                                   const greta_route_options* options);
/* Copies rows of x [.., dim] to the experts of ids i32 [.., top_k], as greta_grouped_gemm takes
 * them: groups i32 [experts], and places i32 [.., top_k], the row of out of each assignment, or -1.
 * out is [rows, dim] with the experts' rows one after the other, their numbers rounded up to a
 * multiple of block (1, 16, 32, 64, 128 or 256) by rows of zeros, and rows = tokens * top_k +
 * (block - 1) * min(experts, tokens * top_k); or [experts, capacity, dim], and block is 1. */
GRETA_API greta_status greta_permute(greta_operations* operations, const greta_tensor* x,
                                     const greta_tensor* ids, const greta_tensor* out,
                                     const greta_tensor* groups, const greta_tensor* places,
                                     int64_t block);
/* out [.., dim] = the sum of the rows of y [.., dim] at each token's places i32 [.., top_k], times
 * weights f32 [.., top_k]. A place that y does not have adds nothing. */
GRETA_API greta_status greta_unpermute(greta_operations* operations, const greta_tensor* y,
                                       const greta_tensor* places, const greta_tensor* weights,
                                       const greta_tensor* out);
/* out [.., dim] = the sum over each token's experts of weights f32 [.., top_k] times down (silu(gate x) *
 * (up x)), for up to 64 tokens: x [.., dim], ids i32 [.., top_k], gate_up [experts, 2 hidden, dim] with
 * each expert's gates and then its ups, down [experts, dim, hidden]. An id that is not below experts
 * adds nothing, nor does one with a weight of 0; their matrices are not read. */
GRETA_API greta_status greta_experts(greta_operations* operations, const greta_tensor* x,
                                     const greta_tensor* ids, const greta_tensor* weights,
                                     const greta_tensor* gate_up, const greta_tensor* down,
                                     const greta_tensor* out);
/* The same of quantised matrices, whose lines are u8, as rows of greta_quantized_gemm's B. */
GRETA_API greta_status greta_quantized_experts(
    greta_operations* operations, const greta_tensor* x, const greta_tensor* ids,
    const greta_tensor* weights, const greta_tensor* gate_up, const greta_tensor* down,
    const greta_tensor* out, const greta_quantized_experts_options* options);
/* greta_experts() of u8 matrices, whose bytes are `numbers` and have scales: those of B in
 * greta_scaled_grouped_gemm(), with an expert's matrix as B of a group. x is not quantised. dim and hidden
 * are multiples of 16. */
GRETA_API greta_status greta_scaled_experts(
    greta_operations* operations, const greta_tensor* x, const greta_tensor* ids,
    const greta_tensor* weights, const greta_tensor* gate_up, const greta_tensor* gate_up_scales,
    const greta_tensor* down, const greta_tensor* down_scales, const greta_tensor* out,
    greta_numbers numbers, greta_scales scales);
/* out [n, k] = the numbers that b stands for, whose rows are those of greta_quantized_gemm's B. scales and
 * zeros are as of greta_quantized_gemm(). */
GRETA_API greta_status greta_dequantize(greta_operations* operations, const greta_tensor* b,
                                        const greta_tensor* scales, const greta_tensor* zeros,
                                        const greta_tensor* out, greta_weights weights);
/* The same of panels of rows as b, of GRETA_INT4, GRETA_INT8 or GRETA_MXFP4; n is a multiple of 16. */
GRETA_API greta_status greta_dequantize_panels(greta_operations* operations, const greta_tensor* b,
                                               const greta_tensor* scales, const greta_tensor* zeros,
                                               const greta_tensor* out, greta_weights weights);
/* b, scales and zeros of greta_quantized_gemm() from weights as AWQ and GPTQ pack them: qweight i32, [k, n / 8]
 * of GRETA_AWQ, else [k / 8, n], or with GRETA_INT8 [k / 4, n]; qscales [groups, n], of f16 or bf16 as scales;
 * qzeros i32 [groups, n / 8], or with GRETA_INT8 [groups, n / 4]. qzeros and zeros NULL: all zero points are 8,
 * with GRETA_INT8 128. order i32 [k]: weight i of each row is the stored weight order[i]; NULL: as stored.
 * packing is GRETA_AWQ, GRETA_GPTQ or GRETA_GPTQ_V2; weights is GRETA_INT4 or, not of GRETA_AWQ, GRETA_INT8;
 * n is a multiple of 8. */
GRETA_API greta_status greta_repack_weights(greta_operations* operations, const greta_tensor* qweight,
                                            const greta_tensor* qscales, const greta_tensor* qzeros,
                                            const greta_tensor* order, const greta_tensor* b,
                                            const greta_tensor* scales, const greta_tensor* zeros,
                                            greta_packing packing, greta_weights weights);
/* The same with panels of rows as b, for products with GRETA_PANELS; n is a multiple of 16. Of
 * GRETA_NOT_PACKED, qweight has rows: u8 [n, bytes] of GRETA_INT4, GRETA_INT8 or GRETA_MXFP4, or f16 or bf16
 * [n, k], as b then; rows have multiples of 16 bytes, and all other operands are NULL, as scales and zero points
 * stay as they are. Both may be [groups, n, ..], as of greta_quantized_grouped_gemm(): each group's panels. */
GRETA_API greta_status greta_repack_to_panels(greta_operations* operations, const greta_tensor* qweight,
                                              const greta_tensor* qscales, const greta_tensor* qzeros,
                                              const greta_tensor* order, const greta_tensor* b,
                                              const greta_tensor* scales, const greta_tensor* zeros,
                                              greta_packing packing, greta_weights weights);
/* q, out [batch, q, heads, dim]; k, v [batch, kv_heads, capacity, dim]; lengths i32 [batch]. v and
 * out may have another dim than q and k. */
GRETA_API greta_status greta_attention(greta_operations* operations, const greta_tensor* q,
                                       const greta_tensor* k, const greta_tensor* v,
                                       const greta_tensor* lengths, const greta_tensor* out,
                                       const greta_attention_options* options);
/* Multi-head latent attention in its absorbed form: q [batch, q, heads, latent + rope]; cache, of
 * all heads, [batch, capacity, latent + rope], whose rows are keys, and their first `latent`
 * elements values; lengths i32 [batch]; out [batch, q, heads, latent]. */
GRETA_API greta_status greta_latent_attention(greta_operations* operations, const greta_tensor* q,
                                              const greta_tensor* cache,
                                              const greta_tensor* lengths, const greta_tensor* out,
                                              const greta_latent_attention_options* options);
/* Joins partial results of attention over parts of the keys by their log-sum-exps: outs [parts, ..,
 * heads, dim], lses f32 [parts, .., heads], out [.., heads, dim]; lse f32 [.., heads] receives
 * those of all parts, unless it is NULL. */
GRETA_API greta_status greta_attention_merge(greta_operations* operations, const greta_tensor* outs,
                                             const greta_tensor* lses, const greta_tensor* out,
                                             const greta_tensor* lse);
/* y may be x */
GRETA_API greta_status greta_softmax(greta_operations* operations, const greta_tensor* x,
                                     const greta_tensor* y, const greta_softmax_options* options);
GRETA_API greta_status greta_layernorm(greta_operations* operations, const greta_tensor* x,
                                       const greta_tensor* y, const greta_norm_options* options);
GRETA_API greta_status greta_rmsnorm(greta_operations* operations, const greta_tensor* x,
                                     const greta_tensor* y, const greta_norm_options* options);
/* sum = x + residual, y = rmsnorm(sum) */
GRETA_API greta_status greta_add_rmsnorm(greta_operations* operations, const greta_tensor* x,
                                         const greta_tensor* residual, const greta_tensor* sum,
                                         const greta_tensor* y, const greta_norm_options* options);
/* y = rmsnorm(layernorm(x)) * gain; the gain is required with a weight, else NULL */
GRETA_API greta_status greta_layernorm_rmsnorm(greta_operations* operations, const greta_tensor* x,
                                               const greta_tensor* y, const greta_tensor* gain,
                                               const greta_norm_options* options);
/* Both tensors are contiguous and have the same type and number of elements. */
GRETA_API greta_status greta_copy(greta_operations* operations, const greta_tensor* to,
                                  const greta_tensor* from);
/* Runs a problem, given by its key such as "softmax dtype=f32 out=f32 rows=4 cols=8", on its
 * operands in order. */
GRETA_API greta_status greta_run(greta_operations* operations, const char* problem,
                                 const greta_tensor* const* operands, size_t count);

#ifdef __cplusplus
}
#endif

#endif
