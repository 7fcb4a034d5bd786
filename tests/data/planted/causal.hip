// Causal attention with fewer heads of keys than of queries: a workgroup for each query of a head.

#define THREADS 32
#define MOST_KEYS 128

extern "C" __global__ void causal(const float* q, const float* k, const float* v, float* y, int heads, int kv_heads,
                                  int queries, int keys, int dim, float scale) {
  __shared__ float weights[MOST_KEYS];
  const int me = threadIdx.x, query = blockIdx.x, head = blockIdx.y;
  const int kv_head = head / (heads / kv_heads);
  const float* own = q + (query * heads + head) * dim;
  const int seen = keys - queries + query + 1;
  for (int key = me; key < seen; key += THREADS) {
    const float* line = k + (key * kv_heads + kv_head) * dim;
    float score = 0;
    for (int i = 0; i < dim; ++i) score += own[i] * line[i];
    weights[key] = score * scale;
  }
  __syncthreads();
  float most = -1e30f, sum = 0;
  for (int key = 0; key < seen; ++key) most = fmaxf(most, weights[key]);
  for (int key = 0; key < seen; ++key) sum += expf(weights[key] - most);
  for (int i = me; i < dim; i += THREADS) {
    float value = 0;
    for (int key = 0; key < seen; ++key)
      value += expf(weights[key] - most) * v[(key * kv_heads + kv_head) * dim + i];
    y[(query * heads + head) * dim + i] = value / sum;
  }
}

extern "C" __global__ void causal_naive(const float* q, const float* k, const float* v, float* y, int heads,
                                        int kv_heads, int queries, int keys, int dim, float scale) {
  const int query = blockIdx.x, head = blockIdx.y, i = threadIdx.x;
  const int kv_head = head / (heads / kv_heads);
  double most = -1e30f, sum = 0, value = 0;
  for (int pass = 0; pass < 2; ++pass) {
    for (int key = 0; key <= keys - queries + query; ++key) {
      double score = 0;
      for (int d = 0; d < dim; ++d)
        score += static_cast<double>(q[(query * heads + head) * dim + d]) *
                 static_cast<double>(k[(key * kv_heads + kv_head) * dim + d]);
      score *= static_cast<double>(scale);
      if (pass == 0) {
        most = fmax(most, score);
      } else {
        sum += exp(score - most);
        value += exp(score - most) * static_cast<double>(v[(key * kv_heads + kv_head) * dim + i]);
      }
    }
  }
  y[(query * heads + head) * dim + i] = static_cast<float>(value / sum);
}
