#include <algorithm>

#include "runtime/pipeline/llama/runner.hpp"

/// Attention of a traced pass with one-hot values, which shows the weights of the keys.
namespace greta::runtime {
namespace {

std::vector<std::byte> stored(DType dtype, const std::vector<double>& values) {
  std::vector<std::byte> bytes(bytes_of(dtype, values.size()));
  for (std::size_t i = 0; i < values.size(); ++i) store_element(dtype, bytes.data(), i, values[i]);
  return bytes;
}

/// The operands of the attention of a pass.
struct Operands {
  Tensor all;      ///< [rows, ...]: where the queries are
  Tensor queries;  ///< [1, tokens, heads, dim]
  Tensor values;   ///< as a cache
  Tensor out;      ///< [1, tokens, heads, dim]
};

/// Sets queries as they lie in the pass: packed, or the first columns of q, k and v.
void set_queries(Runtime& runtime, const Operands& operands, const TraceMatrix& queries) {
  const std::int64_t cols = operands.all.shape().last();
  std::vector<double> rows(static_cast<std::size_t>(operands.all.shape().elements()));
  for (std::int64_t row = 0; row < queries.rows; ++row)
    std::copy_n(queries.row(row), queries.cols, rows.begin() + row * cols);
  runtime.upload(operands.all, stored(operands.all.dtype(), rows)).value();
}

/// Sets value `first` + c of all KV heads to 1 in column c, and all other elements to 0.
void set_values(Runtime& runtime, const Operands& operands, std::int64_t first) {
  const Shape& shape = operands.values.shape();  // [1, kv_heads, capacity, dim]
  const std::int64_t capacity = shape[2], dim = shape[3];
  std::vector<double> all(static_cast<std::size_t>(shape.elements()));
  for (std::int64_t head = 0; head < shape[1]; ++head) {
    for (std::int64_t c = 0; c < dim && first + c < capacity; ++c)
      all[static_cast<std::size_t>((head * capacity + first + c) * dim + c)] = 1;
  }
  runtime.upload(operands.values, stored(operands.values.dtype(), all)).value();
}

}  // namespace

AttentionProbes LlamaRunner::probe_attention(const LlamaTrace& trace, std::int64_t layer) {
  const LlamaConfig& c = weights_.config;
  const auto index = static_cast<std::size_t>(layer);
  const auto count = static_cast<std::int64_t>(trace.ids.size());
  const LlamaPassShape shape{1, traced_tokens_};
  const DType dtype = weights_.dtype;
  const std::int64_t dim = c.head_dim, length = position_;
  // The pass rotated queries in place, beside keys and values unless these are apart, or wrote them
  // elsewhere.
  const bool in_place = trace.layers[index][LlamaStage::k_rope].rows > 0 &&
                        (shape.rows() == 1 || weights_.layers[index].qkv.segments.size() == 1);
  const std::int64_t parts = in_place ? c.heads + 2 * c.kv_heads : c.heads;
  const auto make = [&](const Shape& of) { return runtime_.allocate(dtype, of).value(); };
  Operands operands{.all = make({shape.rows(), parts * dim}),
                    .queries = {},
                    .values = make(memory_.values[index].shape()),
                    .out = make({1, shape.tokens, c.heads, dim})};
  operands.queries = operands.all.reshape({1, shape.tokens, parts, dim}).slice(2, 0, c.heads);
  AttentionOptions options;
  options.causal = shape.tokens > 1;
  const LlamaInputs inputs(memory_.inputs, shape);

  const auto run = [&](const TraceMatrix& queries) {
    set_queries(runtime_, operands, queries);
    TraceMatrix weights(count * c.heads, length);
    std::vector<std::byte> bytes(operands.out.bytes());
    for (std::int64_t first = 0; first < length; first += dim) {
      set_values(runtime_, operands, first);
      queue_
          ->attention(operands.queries, memory_.keys[index], operands.values, inputs.lengths,
                      operands.out, options)
          .value();
      queue_->synchronize().value();
      runtime_.download(operands.out, bytes).value();
      for (std::int64_t row = 0; row < weights.rows; ++row) {
        for (std::int64_t col = first; col < std::min(first + dim, length); ++col)
          weights.row(row)[col] =
              load_element(dtype, bytes.data(), static_cast<std::size_t>(row * dim + col - first));
      }
    }
    return weights;
  };
  const TraceMatrix& queries = trace.layers[index][LlamaStage::q_rope];
  return {run(queries), run(TraceMatrix(queries.rows, queries.cols))};
}

}  // namespace greta::runtime
