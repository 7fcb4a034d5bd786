#include "runtime/pipeline/llama/device_weights.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include "kernels/model/parallel.hpp"
#include "kernels/model/random.hpp"

namespace greta::runtime {
namespace {

constexpr std::size_t piece_elements = std::size_t{4} << 20;  // elements per upload

LlamaDeviceWeights allocate_weights(Runtime& runtime, const LlamaConfig& config, DType dtype) {
  return make_weights(config, dtype, runtime.maker());
}

/// Returns elements [first, first + count) of a matrix in row-major order.
Tensor part(const Tensor& tensor, std::int64_t first, std::int64_t count) {
  return tensor.reshape({tensor.shape().elements()}).slice(0, first, count);
}

/// Writes elements first to first + count - 1 in another type, on all cores.
void convert(const WeightView& from, std::size_t first, std::size_t count, DType type,
             std::byte* to) {
  constexpr std::size_t some = 4096;  // whole blocks of every format
  const auto parts = static_cast<std::int64_t>((count + some - 1) / some);
  parallel_parts(parts, [&](std::int64_t begin, std::int64_t end) {
    std::vector<double> values(some);
    for (auto part = static_cast<std::size_t>(begin); part < static_cast<std::size_t>(end);
         ++part) {
      const std::size_t at = part * some, length = std::min(some, count - at);
      from.read(first + at, length, values.data());
      for (std::size_t i = 0; i < length; ++i) store_element(type, to, at + i, values[i]);
    }
  });
}

void upload_matrix(Runtime& runtime, const WeightView& from, const Tensor& to) {
  const DType type = to.dtype();
  std::vector<std::byte> converted;
  for (std::size_t first = 0; first < from.elements(); first += piece_elements) {
    const std::size_t count = std::min(piece_elements, from.elements() - first);
    const std::byte* source = from.data + from.offset(first);
    if (from.blocks || from.dtype != type) {
      converted.resize(bytes_of(type, count));
      convert(from, first, count, type, converted.data());
      source = converted.data();
    }
    const Tensor target =
        part(to, static_cast<std::int64_t>(first), static_cast<std::int64_t>(count));
    runtime.upload(target, {source, bytes_of(type, count)}).value();
  }
}

/// Uploads matrices into consecutive rows.
void upload_rows(Runtime& runtime, std::initializer_list<const WeightView*> from,
                 const Tensor& to) {
  std::int64_t row = 0;
  for (const WeightView* view : from) {
    upload_matrix(runtime, *view, to.slice(0, row, view->rows));
    row += view->rows;
  }
}

/// Fills large tensors with random numbers, by repeatedly copying one block from random offsets.
class Filler {
 public:
  Filler(DType dtype, double largest, std::uint64_t seed)
      : random_(seed), block_(bytes_of(dtype, piece_elements)) {
    for (std::size_t i = 0; i < piece_elements; ++i) {
      const auto draw = static_cast<double>(uniform_below(random_, 1U << 24U)) * 0x1p-23 - 1;
      store_element(dtype, block_.data(), i, largest * draw);
    }
  }

  void fill(Runtime& runtime, const Tensor& to) {
    const auto all = static_cast<std::size_t>(to.shape().elements());
    for (std::size_t first = 0; first < all;) {
      const std::size_t from = uniform_below(random_, piece_elements / 2);
      const std::size_t count = std::min(piece_elements - from, all - first);
      const Tensor target =
          part(to, static_cast<std::int64_t>(first), static_cast<std::int64_t>(count));
      runtime
          .upload(target, {block_.data() + bytes_of(to.dtype(), from), bytes_of(to.dtype(), count)})
          .value();
      first += count;
    }
  }

 private:
  std::mt19937_64 random_;
  std::vector<std::byte> block_;
};

void fill_ones(Runtime& runtime, const Tensor& to) {
  std::vector<std::byte> ones(to.bytes());
  for (std::int64_t i = 0; i < to.shape().elements(); ++i) {
    store_element(to.dtype(), ones.data(), static_cast<std::size_t>(i), 1);
  }
  runtime.upload(to, ones).value();
}

}  // namespace

LlamaDeviceWeights make_weights(const LlamaConfig& config, DType dtype, const TensorMaker& make) {
  const auto tensor = [&](std::initializer_list<std::int64_t> extents) {
    return make(dtype, Shape(extents), Memory::device);
  };
  const std::int64_t dim = config.dim, hidden = config.hidden_dim;
  LlamaDeviceWeights weights;
  weights.config = config;
  weights.dtype = dtype;
  weights.embedding = tensor({config.vocab, dim});
  weights.final_norm = tensor({dim});
  weights.head = config.tied_embeddings ? weights.embedding : tensor({config.vocab, dim});
  for (std::int64_t i = 0; i < config.layers; ++i) {
    weights.layers.push_back({tensor({dim}), tensor({config.q_dim() + 2 * config.kv_dim(), dim}),
                              tensor({dim, config.q_dim()}), tensor({dim}),
                              tensor({2 * hidden, dim}), tensor({dim, hidden})});
  }
  return weights;
}

std::uint64_t weight_bytes(const LlamaConfig& config, DType dtype) {
  return bytes_of(dtype, static_cast<std::uint64_t>(config.parameters()));
}

LlamaDeviceWeights upload_weights(Runtime& runtime, const LlamaModel& model, DType dtype) {
  LlamaDeviceWeights weights = allocate_weights(runtime, model.config, dtype);
  const LlamaWeights& from = model.weights;
  upload_matrix(runtime, from.embedding, weights.embedding);
  upload_matrix(runtime, from.final_norm, weights.final_norm);
  if (!model.config.tied_embeddings) upload_matrix(runtime, from.head, weights.head);
  for (std::size_t i = 0; i < from.layers.size(); ++i) {
    const LlamaLayer& layer = from.layers[i];
    const LlamaDeviceLayer& to = weights.layers[i];
    upload_matrix(runtime, layer.attn_norm, to.attn_norm);
    upload_rows(runtime, {&layer.wq, &layer.wk, &layer.wv}, to.qkv);
    upload_matrix(runtime, layer.wo, to.wo);
    upload_matrix(runtime, layer.ffn_norm, to.ffn_norm);
    upload_rows(runtime, {&layer.gate, &layer.up}, to.gate_up);
    upload_matrix(runtime, layer.down, to.down);
  }
  return weights;
}

LlamaDeviceWeights random_weights(Runtime& runtime, const LlamaConfig& config, DType dtype,
                                  std::uint64_t seed) {
  LlamaDeviceWeights weights = allocate_weights(runtime, config, dtype);
  Filler filler(dtype, std::sqrt(3 / static_cast<double>(config.dim)), seed);
  filler.fill(runtime, weights.embedding);
  if (!config.tied_embeddings) filler.fill(runtime, weights.head);
  fill_ones(runtime, weights.final_norm);
  for (const LlamaDeviceLayer& layer : weights.layers) {
    for (const Tensor* norm : {&layer.attn_norm, &layer.ffn_norm}) fill_ones(runtime, *norm);
    for (const Tensor* matrix : {&layer.qkv, &layer.wo, &layer.gate_up, &layer.down}) {
      filler.fill(runtime, *matrix);
    }
  }
  return weights;
}

}  // namespace greta::runtime
