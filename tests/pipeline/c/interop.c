/* Protects: tensors in memory of other libraries and queues on their streams: interop.c DEVICE. On
 * hip-host that memory is the host's, and the stream is another queue's; other APIs refuse both. */
#include <greta.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 4, COLS = 8, PITCH = 12 };

#define CHECK(condition)                                                                 \
  do {                                                                                   \
    if (!(condition)) {                                                                  \
      printf("line %d: %s; last error: %s\n", __LINE__, #condition, greta_last_error()); \
      return 1;                                                                          \
    }                                                                                    \
  } while (0)

static void count(void* released) {
  ++*(int*)released;
}

static int test_unavailable(greta_runtime* runtime, greta_queue* queue, float* memory) {
  const int64_t shape[] = {ROWS, COLS};
  greta_tensor* tensor = NULL;
  greta_queue* on = NULL;
  void* stream = NULL;
  int released = 0;
  CHECK(greta_tensor_wrap(runtime, GRETA_F32, shape, NULL, 2, memory, count, &released, &tensor) ==
        GRETA_UNAVAILABLE);
  CHECK(strstr(greta_last_error(), "can't use memory or streams of other libraries") != NULL);
  CHECK(greta_queue_open_on(runtime, NULL, &on) == GRETA_UNAVAILABLE);
  CHECK(greta_queue_stream(queue, &stream) == GRETA_UNAVAILABLE);
  CHECK(tensor == NULL && on == NULL && stream == NULL && released == 0);
  return 0;
}

/* Rows of a matrix in host memory are read and written in place, and released after the last use. */
static int test_memory(greta_runtime* runtime, greta_queue* queue, float* x, float* y) {
  const int64_t shape[] = {ROWS, COLS}, strides[] = {PITCH, 1};
  greta_operations* const ops = greta_queue_operations(queue);
  greta_tensor *from = NULL, *to = NULL, *again = NULL;
  int released = 0;
  uint64_t address = 0;
  for (int i = 0; i < ROWS * PITCH; ++i) x[i] = sinf((float)i), y[i] = -1;
  CHECK(greta_tensor_wrap(runtime, GRETA_F32, shape, strides, 2, x, count, &released, &from) ==
        GRETA_OK);
  CHECK(greta_tensor_wrap(runtime, GRETA_F32, shape, NULL, 2, y, count, &released, &to) == GRETA_OK);
  CHECK(greta_tensor_address(from, &address) == GRETA_OK && address == (uint64_t)(uintptr_t)x);
  CHECK(greta_rmsnorm(ops, from, to, NULL) == GRETA_OK);
  greta_tensor_release(from);
  CHECK(released == 0); /* the work in flight uses it */
  CHECK(greta_queue_synchronize(queue, 60) == GRETA_OK);
  CHECK(released == 1);
  for (int row = 0; row < ROWS; ++row) {
    double squares = 0;
    for (int col = 0; col < COLS; ++col) squares += (double)x[row * PITCH + col] * x[row * PITCH + col];
    const double root = sqrt(squares / (double)COLS + 1e-5);
    for (int col = 0; col < COLS; ++col)
      CHECK(fabs(y[row * COLS + col] - x[row * PITCH + col] / root) < 1e-4);
  }
  /* Two tensors of one memory are the same view, or overlap. */
  CHECK(greta_tensor_wrap(runtime, GRETA_F32, shape, NULL, 2, y, NULL, NULL, &again) == GRETA_OK);
  CHECK(greta_softmax(ops, to, again, NULL) == GRETA_OK);
  CHECK(greta_queue_synchronize(queue, 60) == GRETA_OK);
  greta_tensor_release(again);
  CHECK(greta_tensor_wrap(runtime, GRETA_F32, shape, NULL, 2, y + 4, NULL, NULL, &again) == GRETA_OK);
  CHECK(greta_softmax(ops, to, again, NULL) == GRETA_INVALID_ARGUMENT);
  CHECK(strstr(greta_last_error(), "overlaps") != NULL);
  greta_tensor_release(again);
  greta_tensor_release(to);
  CHECK(released == 2);
  return 0;
}

static int test_refused(greta_runtime* runtime, greta_queue* queue, float* x) {
  const int64_t shape[] = {ROWS, COLS}, transposed[] = {1, ROWS}, negative[] = {-COLS, 1};
  const int64_t huge[] = {INT64_MAX, 1};
  const int64_t* const bad[] = {transposed, negative, huge};
  greta_tensor *tensor = NULL, *odd = NULL, *out = NULL;
  int released = 0;
  for (int i = 0; i < 3; ++i) {
    CHECK(greta_tensor_wrap(runtime, GRETA_F32, shape, bad[i], 2, x, count, &released, &tensor) ==
          GRETA_INVALID_ARGUMENT);
    CHECK(strstr(greta_last_error(), "strides [") != NULL);
  }
  CHECK(greta_tensor_wrap(runtime, GRETA_F32, shape, NULL, 2, NULL, count, &released, &tensor) ==
        GRETA_INVALID_ARGUMENT);
  CHECK(tensor == NULL && released == 0);
  CHECK(greta_tensor_wrap(runtime, GRETA_F32, shape, NULL, 2, x + 1, NULL, NULL, &odd) == GRETA_OK);
  CHECK(greta_tensor_allocate(runtime, GRETA_F32, shape, 2, GRETA_DEVICE, &out) == GRETA_OK);
  CHECK(greta_softmax(greta_queue_operations(queue), odd, out, NULL) == GRETA_INVALID_ARGUMENT);
  CHECK(strstr(greta_last_error(), "must be at a multiple of 16") != NULL);
  greta_tensor_release(odd);
  greta_tensor_release(out);
  return 0;
}

/* Work of two queues on one stream runs in the order of submission. */
static int test_stream(greta_runtime* runtime, greta_queue* queue, float* x, float* y) {
  const int64_t shape[] = {ROWS, COLS};
  greta_tensor *from = NULL, *to = NULL, *sum = NULL;
  greta_queue* on = NULL;
  void* stream = NULL;
  float expected[ROWS * COLS], got[ROWS * COLS];
  CHECK(greta_queue_stream(queue, &stream) == GRETA_OK && stream != NULL);
  CHECK(greta_queue_open_on(runtime, stream, &on) == GRETA_OK);
  CHECK(greta_tensor_wrap(runtime, GRETA_F32, shape, NULL, 2, x, NULL, NULL, &from) == GRETA_OK);
  CHECK(greta_tensor_wrap(runtime, GRETA_F32, shape, NULL, 2, y, NULL, NULL, &to) == GRETA_OK);
  CHECK(greta_tensor_allocate(runtime, GRETA_F32, shape, 2, GRETA_DEVICE, &sum) == GRETA_OK);
  for (int i = 0; i < ROWS * COLS; ++i) x[i] = (float)i, y[i] = 100, expected[i] = 4 * (float)i;
  for (int round = 0; round < 20; ++round) {
    CHECK(greta_add(greta_queue_operations(on), from, from, to) == GRETA_OK);
    CHECK(greta_queue_submit(on) == GRETA_OK);
    CHECK(greta_add(greta_queue_operations(queue), to, to, sum) == GRETA_OK);
    CHECK(greta_queue_synchronize(queue, 60) == GRETA_OK);
    CHECK(greta_tensor_download(sum, got, sizeof got) == GRETA_OK);
    CHECK(memcmp(got, expected, sizeof got) == 0);
    memset(y, 0, sizeof got);
  }
  CHECK(greta_add(greta_queue_operations(on), from, from, to) == GRETA_OK);
  CHECK(greta_queue_synchronize(on, 60) == GRETA_OK);
  CHECK(y[3] == 6);
  greta_tensor* const tensors[] = {from, to, sum};
  for (int i = 0; i < 3; ++i) greta_tensor_release(tensors[i]);
  greta_queue_close(on); /* the stream is the other queue's, which still works */
  CHECK(greta_queue_synchronize(queue, 60) == GRETA_OK);
  return 0;
}

int main(int argument_count, char** arguments) {
  greta_runtime* runtime = NULL;
  greta_queue* queue = NULL;
  const char* id = NULL;
  greta_runtime_options options = greta_runtime_defaults();
  float *x = aligned_alloc(256, 1024), *y = aligned_alloc(256, 1024);
  if (argument_count != 2 || x == NULL || y == NULL) return 1;
  options.device = arguments[1];
  CHECK(greta_runtime_open(&options, &runtime) == GRETA_OK);
  CHECK(greta_runtime_device(runtime, &id, NULL) == GRETA_OK);
  CHECK(greta_queue_open(runtime, &queue) == GRETA_OK);
  if (strncmp(id, "hip-host:", 9) != 0) {
    if (test_unavailable(runtime, queue, x) != 0) return 1;
  } else {
    if (test_memory(runtime, queue, x, y) != 0) return 1;
    if (test_refused(runtime, queue, x) != 0) return 1;
    if (test_stream(runtime, queue, x, y) != 0) return 1;
  }
  greta_queue_close(queue);
  greta_runtime_close(runtime);
  free(x);
  free(y);
  return 0;
}
