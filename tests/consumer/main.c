/* Runs operations and a pipeline through greta.h alone, in C: main.c DEVICE [DATABASE]. Prints what
 * is wrong. The installed databases and DATABASE have a winner of a product (test_databases). */
#include <greta.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { ROWS = 4, DEPTH = 8, COLS = 12 };

#define CHECK(condition)                                                                 \
  do {                                                                                   \
    if (!(condition)) {                                                                  \
      printf("line %d: %s; last error: %s\n", __LINE__, #condition, greta_last_error()); \
      return 1;                                                                          \
    }                                                                                    \
  } while (0)

/* rmsnorm(A B^T) with epsilon 1e-5, as it is defined. */
static void reference(const float* a, const float* b, const float* weight, float* y) {
  for (int row = 0; row < ROWS; ++row) {
    double squares = 0, c[COLS];
    for (int col = 0; col < COLS; ++col) {
      c[col] = 0;
      for (int k = 0; k < DEPTH; ++k) c[col] += (double)a[row * DEPTH + k] * b[col * DEPTH + k];
      squares += c[col] * c[col];
    }
    const double root = sqrt(squares / (double)COLS + 1e-5);
    for (int col = 0; col < COLS; ++col) y[row * COLS + col] = (float)(c[col] / root * weight[col]);
  }
}

static int close_to(const float* actual, const float* expected) {
  for (int i = 0; i < ROWS * COLS; ++i) {
    if (!(fabsf(actual[i] - expected[i]) < 1e-4F)) return 0;
  }
  return 1;
}

static void fill(float* values, int count, float seed) {
  for (int i = 0; i < count; ++i) values[i] = sinf(seed + 1.7F * (float)i);
}

struct tensors {
  greta_tensor *a, *staged, *b, *weight, *c, *y;
};

static int allocate(greta_runtime* runtime, struct tensors* t) {
  const int64_t a[] = {ROWS, DEPTH}, b[] = {COLS, DEPTH}, c[] = {ROWS, COLS}, w[] = {COLS};
  CHECK(greta_tensor_allocate(runtime, GRETA_F32, a, 2, GRETA_DEVICE, &t->a) == GRETA_OK);
  CHECK(greta_tensor_allocate(runtime, GRETA_F32, a, 2, GRETA_STAGING, &t->staged) == GRETA_OK);
  CHECK(greta_tensor_allocate(runtime, GRETA_F32, b, 2, GRETA_DEVICE, &t->b) == GRETA_OK);
  CHECK(greta_tensor_allocate(runtime, GRETA_F32, w, 1, GRETA_DEVICE, &t->weight) == GRETA_OK);
  CHECK(greta_tensor_allocate(runtime, GRETA_F32, c, 2, GRETA_DEVICE, &t->c) == GRETA_OK);
  CHECK(greta_tensor_allocate(runtime, GRETA_F32, c, 2, GRETA_DEVICE, &t->y) == GRETA_OK);
  return 0;
}

/* rmsnorm(A B^T), into y by way of c. */
static greta_status compute(greta_operations* ops, const struct tensors* t, const greta_tensor* a,
                            const greta_tensor* c) {
  greta_gemm_options gemm = greta_gemm_defaults();
  gemm.layout = GRETA_NT;
  greta_norm_options norm = greta_norm_defaults();
  norm.weight = t->weight;
  const greta_status status = greta_gemm(ops, a, t->b, c, &gemm);
  return status == GRETA_OK ? greta_rmsnorm(ops, c, t->y, &norm) : status;
}

static int test_queue(greta_queue* queue, const struct tensors* t, const float* expected) {
  float y[ROWS * COLS];
  CHECK(compute(greta_queue_operations(queue), t, t->a, t->c) == GRETA_OK);
  CHECK(greta_queue_synchronize(queue, 60) == GRETA_OK);
  CHECK(greta_tensor_download(t->y, y, sizeof y) == GRETA_OK);
  CHECK(close_to(y, expected));
  return 0;
}

/* The host changes staging memory between replays. */
static int test_pipeline(greta_runtime* runtime, greta_queue* queue, const struct tensors* t,
                         const float* b, const float* weight) {
  const int64_t a[] = {ROWS, DEPTH}, c[] = {ROWS, COLS};
  greta_pipeline* pipeline = NULL;
  greta_tensor *copied = NULL, *product = NULL;
  greta_graph* graph = NULL;
  CHECK(greta_pipeline_begin(runtime, &pipeline) == GRETA_OK);
  greta_operations* const ops = greta_pipeline_operations(pipeline);
  CHECK(greta_pipeline_temporary(pipeline, GRETA_F32, a, 2, &copied) == GRETA_OK);
  CHECK(greta_pipeline_temporary(pipeline, GRETA_F32, c, 2, &product) == GRETA_OK);
  CHECK(greta_copy(ops, copied, t->staged) == GRETA_OK);
  CHECK(greta_pipeline_label(pipeline, "the only layer") == GRETA_OK);
  CHECK(compute(ops, t, copied, product) == GRETA_OK);
  CHECK(greta_pipeline_finish(pipeline, 1, &graph) == GRETA_OK);
  greta_pipeline_release(pipeline);
  greta_tensor_release(copied);
  greta_tensor_release(product);
  void* staged = NULL;
  CHECK(greta_tensor_host(t->staged, &staged) == GRETA_OK);
  for (int round = 0; round < 3; ++round) {
    float values[ROWS * DEPTH], expected[ROWS * COLS], y[ROWS * COLS];
    fill(values, ROWS * DEPTH, (float)round);
    memcpy(staged, values, sizeof values);
    reference(values, b, weight, expected);
    CHECK(greta_queue_replay(queue, graph) == GRETA_OK);
    CHECK(greta_queue_synchronize(queue, 60) == GRETA_OK);
    CHECK(greta_tensor_download(t->y, y, sizeof y) == GRETA_OK);
    CHECK(close_to(y, expected));
  }
  const char* text = NULL;
  CHECK(greta_graph_explain(graph, &text) == GRETA_OK);
  CHECK(strstr(text, "the only layer | gemm dtype=f32 out=f32 layout=nt m=4 n=12 k=8 | ") != NULL);
  size_t temporaries = 0;
  CHECK(greta_graph_memory(graph, &temporaries, NULL) == GRETA_OK);
  CHECK(temporaries >= ROWS * (DEPTH + COLS) * sizeof(float));
  greta_graph_release(graph);
  return 0;
}

/* Columns of a matrix, read and written where they lie: columns 4 to 11 of c to 0 to 7 of y. Rows
 * that are not evenly apart are refused. */
static int test_columns(greta_queue* queue, const struct tensors* t) {
  greta_operations* const ops = greta_queue_operations(queue);
  const int64_t blocks[] = {2, 3, DEPTH};
  greta_tensor *read = NULL, *written = NULL, *reshaped = NULL, *uneven = NULL;
  float x[ROWS * COLS], y[ROWS * COLS];
  fill(x, ROWS * COLS, 3.5F);
  CHECK(greta_tensor_upload(t->c, x, sizeof x) == GRETA_OK);
  CHECK(greta_tensor_upload(t->y, x, sizeof x) == GRETA_OK);
  CHECK(greta_tensor_slice(t->c, 1, COLS - DEPTH, DEPTH, &read) == GRETA_OK);
  CHECK(greta_tensor_slice(t->y, 1, 0, DEPTH, &written) == GRETA_OK);
  CHECK(greta_rmsnorm(ops, read, written, NULL) == GRETA_OK);
  CHECK(greta_queue_synchronize(queue, 60) == GRETA_OK);
  CHECK(greta_tensor_download(t->y, y, sizeof y) == GRETA_OK);
  for (int row = 0; row < ROWS; ++row) {
    const float* const from = x + row * COLS + COLS - DEPTH;
    double squares = 0;
    for (int col = 0; col < DEPTH; ++col) squares += (double)from[col] * from[col];
    for (int col = 0; col < COLS; ++col) {
      const int i = row * COLS + col;
      const double root = sqrt(squares / (double)DEPTH + 1e-5);
      if (col < DEPTH) CHECK(fabs(y[i] - from[col] / root) < 1e-4);
      if (col >= DEPTH) CHECK(y[i] == x[i]);
    }
  }
  CHECK(greta_tensor_reshape(t->c, blocks, 3, &reshaped) == GRETA_OK);
  CHECK(greta_tensor_slice(reshaped, 1, 0, 2, &uneven) == GRETA_OK);
  CHECK(greta_rmsnorm(ops, uneven, written, NULL) == GRETA_INVALID_ARGUMENT);
  CHECK(strstr(greta_last_error(), "f32 [2, 2, 8] with strides [24, 8, 1]") != NULL);
  greta_tensor* const views[] = {read, written, reshaped, uneven};
  for (int i = 0; i < 4; ++i) greta_tensor_release(views[i]);
  return 0;
}

/* What makes no sense is an error with one line, whatever is null or out of range. */
static int test_errors(greta_runtime* runtime, greta_queue* queue, const struct tensors* t) {
  greta_operations* const ops = greta_queue_operations(queue);
  const int64_t bad[] = {4, -1}, huge[] = {1, 1, 1, 1, 1};
  greta_tensor* none = NULL;
  struct {
    greta_gemm_options known;
    int unknown;
  } newer = {greta_gemm_defaults(), 0};
  greta_gemm_options gemm = greta_gemm_defaults();
  CHECK(greta_gemm(ops, t->a, NULL, t->c, NULL) == GRETA_INVALID_ARGUMENT);
  CHECK(strcmp(greta_last_error(), "b is null") == 0);
  CHECK(greta_gemm(NULL, t->a, t->b, t->c, NULL) == GRETA_INVALID_ARGUMENT);
  CHECK(greta_gemm(ops, t->a, t->b, t->c, NULL) == GRETA_INVALID_ARGUMENT); /* nn: 8 x 12 needed */
  CHECK(strstr(greta_last_error(), "B is f32 [12, 8], but it must be f32 of 8 x 8") != NULL);
  gemm.layout = 7;
  CHECK(greta_gemm(ops, t->a, t->b, t->c, &gemm) == GRETA_INVALID_ARGUMENT);
  CHECK(strcmp(greta_last_error(), "layout is 7, which it can't be") == 0);
  gemm = greta_gemm_defaults();
  gemm.size = 4;
  CHECK(greta_gemm(ops, t->a, t->b, t->c, &gemm) == GRETA_INVALID_ARGUMENT);
  gemm.size = sizeof gemm - 1;
  CHECK(greta_gemm(ops, t->a, t->b, t->c, &gemm) == GRETA_INVALID_ARGUMENT);
  gemm.size = 1 << 20;
  CHECK(greta_gemm(ops, t->a, t->b, t->c, &gemm) == GRETA_INVALID_ARGUMENT);
  newer.known.size = sizeof newer;
  newer.known.layout = GRETA_NT;
  memset((char*)&newer + sizeof newer.known, 0, sizeof newer - sizeof newer.known);
  CHECK(greta_gemm(ops, t->a, t->b, t->c, &newer.known) == GRETA_OK);
  newer.unknown = 1;
  CHECK(greta_gemm(ops, t->a, t->b, t->c, &newer.known) == GRETA_INVALID_ARGUMENT);
  CHECK(strstr(greta_last_error(), "does not know") != NULL);
  CHECK(greta_tensor_allocate(runtime, GRETA_F32, bad, 2, GRETA_DEVICE, &none) != GRETA_OK);
  CHECK(greta_tensor_allocate(runtime, GRETA_F32, huge, 5, GRETA_DEVICE, &none) != GRETA_OK);
  CHECK(greta_tensor_allocate(runtime, 9, bad, 1, GRETA_DEVICE, &none) != GRETA_OK);
  CHECK(greta_tensor_slice(t->a, 0, 3, 2, &none) == GRETA_INVALID_ARGUMENT);
  CHECK(greta_tensor_upload(t->a, NULL, 128) == GRETA_INVALID_ARGUMENT);
  CHECK(greta_tensor_download(t->a, &none, sizeof none) == GRETA_INVALID_ARGUMENT);
  CHECK(greta_run(ops, "fft n=2", NULL, 0) == GRETA_INVALID_ARGUMENT);
  CHECK(greta_queue_synchronize(queue, -1) == GRETA_INVALID_ARGUMENT);
  CHECK(greta_queue_replay(queue, NULL) == GRETA_INVALID_ARGUMENT);
  CHECK(greta_runtime_open(NULL, NULL) == GRETA_INVALID_ARGUMENT);
  CHECK(none == NULL);
  CHECK(greta_queue_operations(NULL) == NULL);
  return 0;
}

/* A program whose header had no more than alpha and beta: what comes behind is not there, and is
 * not read. */
static int test_older_options(greta_queue* queue, const struct tensors* t) {
  greta_gemm_options gemm = greta_gemm_defaults();
  gemm.size = offsetof(greta_gemm_options, bias);
  gemm.layout = GRETA_NT;
  gemm.alpha = 3;
  memset((char*)&gemm + gemm.size, 0xa5, sizeof gemm - gemm.size);
  float c[ROWS * COLS], once[ROWS * COLS];
  CHECK(greta_gemm(greta_queue_operations(queue), t->a, t->b, t->c, &gemm) == GRETA_OK);
  CHECK(greta_queue_synchronize(queue, 60) == GRETA_OK);
  CHECK(greta_tensor_download(t->c, c, sizeof c) == GRETA_OK);
  gemm.alpha = 1;
  CHECK(greta_gemm(greta_queue_operations(queue), t->a, t->b, t->c, &gemm) == GRETA_OK);
  CHECK(greta_queue_synchronize(queue, 60) == GRETA_OK);
  CHECK(greta_tensor_download(t->c, once, sizeof once) == GRETA_OK);
  for (int i = 0; i < ROWS * COLS; ++i) CHECK(fabsf(c[i] - 3 * once[i]) < 1e-4F);
  return 0;
}

/* A program whose header had no rounded_weights: its struct ended with padding, which may have
 * anything. Only the field of the present struct allows rounding, which is not for f32. */
static int test_former_padding(greta_runtime* runtime, greta_queue* queue) {
  const int64_t shapes[3][2] = {{1, 32}, {1, 34}, {1, 1}};
  greta_tensor* operands[3];
  for (int i = 0; i < 3; ++i) {
    CHECK(greta_tensor_allocate(runtime, i == 1 ? GRETA_U8 : GRETA_F32, shapes[i], 2, GRETA_DEVICE,
                                &operands[i]) == GRETA_OK);
  }
  greta_operations* ops = greta_queue_operations(queue);
  greta_quantized_gemm_options options = greta_quantized_gemm_defaults();
  options.weights = GRETA_Q8_0;
  options.size = offsetof(greta_quantized_gemm_options, rounded_weights);
  const size_t used = offsetof(greta_quantized_gemm_options, norm_epsilon) + sizeof(float);
  CHECK(options.size == 64 && used == 60);
  memset((char*)&options + used, 0xa5, sizeof options - used);
  CHECK(greta_quantized_gemm_fused(ops, operands[0], operands[1], operands[2], &options) ==
        GRETA_OK);
  options = greta_quantized_gemm_defaults();
  options.weights = GRETA_Q8_0;
  options.rounded_weights = 1;
  CHECK(greta_quantized_gemm_fused(ops, operands[0], operands[1], operands[2], &options) ==
        GRETA_INVALID_ARGUMENT);
  CHECK(strstr(greta_last_error(), "needs dtype f16 or bf16") != NULL);
  CHECK(greta_queue_synchronize(queue, 60) == GRETA_OK);
  for (int i = 0; i < 3; ++i) greta_tensor_release(operands[i]);
  return 0;
}

/* Objects of two runtimes don't mix, and what is no temporary of a pipeline is not kept by it. */
static int test_runtimes_apart(greta_runtime* runtime, greta_queue* queue, const struct tensors* t,
                               const char* device) {
  const int64_t shape[] = {ROWS, COLS};
  greta_runtime_options options = greta_runtime_defaults();
  options.device = device;
  greta_runtime* other = NULL;
  greta_pipeline *pipeline = NULL, *own = NULL;
  greta_tensor *foreign = NULL, *product = NULL;
  greta_graph* graph = NULL;
  CHECK(greta_runtime_open(&options, &other) == GRETA_OK);
  CHECK(greta_pipeline_begin(other, &pipeline) == GRETA_OK);
  CHECK(greta_pipeline_begin(runtime, &own) == GRETA_OK);
  CHECK(greta_pipeline_temporary(pipeline, GRETA_F32, shape, 2, &foreign) == GRETA_OK);
  CHECK(greta_pipeline_temporary(own, GRETA_F32, shape, 2, &product) == GRETA_OK);
  CHECK(greta_pipeline_keep(own, NULL) == GRETA_INVALID_ARGUMENT);
  CHECK(greta_pipeline_keep(NULL, product) == GRETA_INVALID_ARGUMENT);
  CHECK(greta_pipeline_keep(own, foreign) == GRETA_INVALID_ARGUMENT);
  CHECK(strcmp(greta_last_error(), "the tensor belongs to another runtime") == 0);
  CHECK(greta_pipeline_keep(own, t->c) == GRETA_INVALID_ARGUMENT);
  CHECK(strstr(greta_last_error(), "not a temporary of this pipeline") != NULL);
  CHECK(greta_add(greta_pipeline_operations(own), t->c, t->y, foreign) == GRETA_INVALID_ARGUMENT);
  CHECK(greta_add(greta_pipeline_operations(own), t->c, t->y, product) == GRETA_OK);
  CHECK(greta_pipeline_keep(own, product) == GRETA_OK);
  CHECK(greta_pipeline_finish(own, 1, &graph) == GRETA_OK); /* what was refused left nothing */
  greta_queue* apart = NULL;
  CHECK(greta_queue_open(other, &apart) == GRETA_OK);
  CHECK(greta_queue_replay(apart, graph) == GRETA_INVALID_ARGUMENT);
  CHECK(greta_queue_replay(queue, graph) == GRETA_OK);
  greta_graph_release(graph); /* the queue keeps it until its work is done */
  greta_pipeline_release(own);
  greta_pipeline_release(pipeline);
  greta_runtime_close(other);
  greta_queue_close(apart);
  greta_tensor_release(foreign); /* a temporary of a pipeline that is gone */
  CHECK(greta_queue_synchronize(queue, 60) == GRETA_OK);
  greta_tensor_release(product);
  return 0;
}

/* A rule forces what runs, until then it must not have run, and what a rule decided is told. */
static int test_rules(const char* device) {
  greta_runtime_options options = greta_runtime_defaults();
  greta_runtime* runtime = NULL;
  const char* json = NULL;
  options.device = device;
  options.no_shipped = 1;
  CHECK(greta_runtime_open(&options, &runtime) == GRETA_OK);
  CHECK(greta_runtime_use(runtime, "softmax cols=64: streamed") == GRETA_OK);
  CHECK(greta_runtime_use(runtime, "softmax cols=32: held THREADS=3") == GRETA_OK);
  CHECK(greta_runtime_use(runtime, "softmax: nope") == GRETA_INVALID_ARGUMENT);
  CHECK(strstr(greta_last_error(), "rule \"softmax: nope\": nope: must be one of staged") != NULL);
  CHECK(greta_runtime_use(runtime, NULL) == GRETA_INVALID_ARGUMENT);
  CHECK(greta_runtime_use(NULL, "softmax: held") == GRETA_INVALID_ARGUMENT);
  CHECK(greta_runtime_lookup(runtime, "softmax rows=16 cols=64", &json) == GRETA_OK);
  CHECK(strstr(json, "\"config\":\"streamed ") != NULL);
  CHECK(strstr(json, "\"origin\":\"forced\"") != NULL);
  CHECK(strstr(json, "\"rule\":\"softmax cols=64: streamed\"") != NULL);
  CHECK(greta_runtime_lookup(runtime, "softmax rows=16 cols=32", &json) == GRETA_CONSTRAINTS);
  CHECK(strstr(greta_last_error(), "domain: THREADS=3") != NULL);
  CHECK(greta_runtime_use(runtime, "softmax rows<=16: held") == GRETA_INVALID_ARGUMENT);
  CHECK(strstr(greta_last_error(), "is prepared already") != NULL);
  CHECK(greta_runtime_use(runtime, "gelu: flat") == GRETA_OK);
  CHECK(greta_runtime_rules(runtime, &json) == GRETA_OK);
  CHECK(strstr(json, "{\"decided\":true,\"matched\":true,\"rule\":\"softmax cols=64: ") != NULL);
  CHECK(strstr(json, "{\"decided\":false,\"matched\":false,\"rule\":\"gelu: flat\"}") != NULL);
  greta_runtime_close(runtime);
  return 0;
}

/* Returns in `text` the explanation of one product, 64 x 48 x 80, with these options. */
static int explain_product(const greta_runtime_options* options, char* text, size_t room) {
  const int64_t a[] = {64, 80}, b[] = {80, 48}, c[] = {64, 48};
  greta_runtime* runtime = NULL;
  greta_pipeline* pipeline = NULL;
  greta_graph* graph = NULL;
  struct tensors t;
  const char* lines = NULL;
  CHECK(greta_runtime_open(options, &runtime) == GRETA_OK);
  CHECK(greta_tensor_allocate(runtime, GRETA_F32, a, 2, GRETA_DEVICE, &t.a) == GRETA_OK);
  CHECK(greta_tensor_allocate(runtime, GRETA_F32, b, 2, GRETA_DEVICE, &t.b) == GRETA_OK);
  CHECK(greta_tensor_allocate(runtime, GRETA_F32, c, 2, GRETA_DEVICE, &t.c) == GRETA_OK);
  CHECK(greta_pipeline_begin(runtime, &pipeline) == GRETA_OK);
  CHECK(greta_gemm(greta_pipeline_operations(pipeline), t.a, t.b, t.c, NULL) == GRETA_OK);
  CHECK(greta_pipeline_finish(pipeline, 1, &graph) == GRETA_OK);
  CHECK(greta_graph_explain(graph, &lines) == GRETA_OK);
  CHECK(strlen(lines) < room);
  memcpy(text, lines, strlen(lines) + 1);
  greta_graph_release(graph);
  greta_pipeline_release(pipeline);
  greta_tensor_release(t.a);
  greta_tensor_release(t.b);
  greta_tensor_release(t.c);
  greta_runtime_close(runtime);
  return 0;
}

/* The installed databases have a winner of the product, and so has `database`. */
static int test_databases(const char* device, const char* database) {
  greta_runtime_options options = greta_runtime_defaults();
  greta_runtime* runtime = NULL;
  char text[4096];
  const char *list[] = {database, NULL}, *absent[] = {"/nonexistent/tuned.db"};
  options.device = device;
  CHECK(explain_product(&options, text, sizeof text) == 0 && strstr(text, "exact, shipped"));
  options.no_shipped = 1;
  CHECK(explain_product(&options, text, sizeof text) == 0 && strstr(text, "default"));
  options.application = list;
  options.application_count = 1;
  CHECK(explain_product(&options, text, sizeof text) == 0 && strstr(text, "exact, application"));
  options.database = database;
  CHECK(explain_product(&options, text, sizeof text) == 0 && strstr(text, " | exact | "));
  options.application_count = 2;
  CHECK(greta_runtime_open(&options, &runtime) == GRETA_INVALID_ARGUMENT);
  options.application = absent;
  options.application_count = 1;
  CHECK(greta_runtime_open(&options, &runtime) == GRETA_IO);
  options.application = NULL;
  CHECK(greta_runtime_open(&options, &runtime) == GRETA_INVALID_ARGUMENT);
  CHECK(runtime == NULL);
  return 0;
}

int main(int count, char** arguments) {
  float a[ROWS * DEPTH], b[COLS * DEPTH], weight[COLS], expected[ROWS * COLS];
  greta_runtime* runtime = NULL;
  greta_queue* queue = NULL;
  struct tensors t;
  const char *id = NULL, *name = NULL;
  CHECK(greta_abi_version() == GRETA_ABI_VERSION);
  if (count > 2) return test_databases(arguments[1], arguments[2]);
  greta_runtime_options options = greta_runtime_defaults();
  options.device = "no such device";
  CHECK(greta_runtime_open(&options, &runtime) == GRETA_UNAVAILABLE);
  options.device = count > 1 ? arguments[1] : "auto";
  CHECK(greta_runtime_open(&options, &runtime) == GRETA_OK);
  CHECK(greta_runtime_device(runtime, &id, &name) == GRETA_OK);
  printf("GRETA %s on %s, %s\n", greta_version(), id, name);
  CHECK(greta_queue_open(runtime, &queue) == GRETA_OK);
  if (allocate(runtime, &t) != 0) return 1;
  fill(a, ROWS * DEPTH, 0.5F);
  fill(b, COLS * DEPTH, 1.5F);
  fill(weight, COLS, 2.5F);
  reference(a, b, weight, expected);
  CHECK(greta_tensor_upload(t.a, a, sizeof a) == GRETA_OK);
  CHECK(greta_tensor_upload(t.b, b, sizeof b) == GRETA_OK);
  CHECK(greta_tensor_upload(t.weight, weight, sizeof weight) == GRETA_OK);
  const int failed = test_queue(queue, &t, expected) ||
                     test_pipeline(runtime, queue, &t, b, weight) || test_columns(queue, &t) ||
                     test_errors(runtime, queue, &t) || test_older_options(queue, &t) ||
                     test_former_padding(runtime, queue) ||
                     test_runtimes_apart(runtime, queue, &t, options.device) ||
                     test_rules(options.device);
  greta_runtime_close(runtime); /* what is left keeps what it needs */
  greta_queue_close(queue);
  greta_tensor* const all[] = {t.a, t.staged, t.b, t.weight, t.c, t.y, NULL};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; ++i) greta_tensor_release(all[i]);
  return failed;
}
