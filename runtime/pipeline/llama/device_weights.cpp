#include "runtime/pipeline/llama/device_weights.hpp"

#include <algorithm>
#include <initializer_list>

#include "kernels/model/parallel.hpp"

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

void upload_numbers(Runtime& runtime, const WeightView& from, const Tensor& to) {
  const DType type = to.dtype();
  std::vector<std::byte> converted;
  for (std::size_t first = 0; first < from.elements(); first += piece_elements) {
    const std::size_t count = std::min(piece_elements, from.elements() - first);
    const std::byte* source = from.data + from.offset(first);
    if (from.quantised() || from.dtype != type) {
      converted.resize(bytes_of(type, count));
      convert(from, first, count, type, converted.data());
      source = converted.data();
    }
    const Tensor target =
        part(to, static_cast<std::int64_t>(first), static_cast<std::int64_t>(count));
    runtime.upload(target, {source, bytes_of(type, count)}).value();
  }
}

/// Copies a quantised matrix; scales are rounded to the type of the target's.
void upload_quantised(Runtime& runtime, const WeightView& from, const WeightMatrix& to) {
  const auto upload = [&](const Tensor& target, const std::byte* source) {
    runtime.upload(target, {source, target.bytes()}).value();
  };
  upload(to.values, from.data);
  if (from.scaled) return upload(to.scales, from.scaled->scales);
  if (!from.groups) return;
  if (to.scales.dtype() == from.groups->type) {
    upload(to.scales, from.groups->scales);
  } else {
    const auto count = static_cast<std::size_t>(to.scales.shape().elements());
    std::vector<std::byte> rounded(to.scales.bytes());
    for (std::size_t i = 0; i < count; ++i) {
      store_element(to.scales.dtype(), rounded.data(), i,
                    load_element(from.groups->type, from.groups->scales, i));
    }
    upload(to.scales, rounded.data());
  }
  if (to.zeros) upload(to.zeros, from.groups->zeros);
}

void upload_matrix(Runtime& runtime, const WeightView& from, const WeightMatrix& to) {
  if (!(from.format() == to.format)) {
    throw Error("the formats of a model's config are not those of its weights");
  }
  if (to.quantised()) return upload_quantised(runtime, from, to);
  upload_numbers(runtime, from, to.values);
}

/// Uploads matrices into consecutive rows.
void upload_rows(Runtime& runtime, std::initializer_list<const WeightView*> from,
                 const Projection& to) {
  std::int64_t row = 0;
  for (const WeightView* view : from) {
    upload_matrix(runtime, *view, to.slice(row, view->rows));
    row += view->rows;
  }
}

}  // namespace

LlamaDeviceWeights make_weights(const LlamaConfig& config, DType dtype, const TensorMaker& make) {
  const auto vector = [&] { return make(dtype, {config.dim}, Memory::device); };
  const auto matrix = [&](std::int64_t rows, std::int64_t cols, const MatrixFormat& format) {
    return make_matrix(dtype, rows, cols, format, make);
  };
  const std::int64_t dim = config.dim, hidden = config.hidden_dim;
  const LlamaFormats& formats = config.formats;
  LlamaDeviceWeights weights;
  weights.config = config;
  weights.dtype = dtype;
  weights.embedding = make(dtype, {config.vocab, dim}, Memory::device);
  weights.final_norm = vector();
  const bool shared = config.tied_embeddings && formats.head.plain();
  weights.head = shared ? WeightMatrix(weights.embedding) : matrix(config.vocab, dim, formats.head);
  for (std::int64_t i = 0; i < config.layers; ++i) {
    const LlamaLayerFormats layer = formats.layer(i);
    const std::vector<ProjectionPart> qkv{
        {config.q_dim(), layer.wq}, {config.kv_dim(), layer.wk}, {config.kv_dim(), layer.wv}};
    const std::vector<ProjectionPart> gate_up{{hidden, layer.gate}, {hidden, layer.up}};
    weights.layers.push_back(
        {vector(), make_projection(dtype, dim, qkv, make), matrix(dim, config.q_dim(), layer.wo),
         vector(), make_projection(dtype, dim, gate_up, make), matrix(dim, hidden, layer.down)});
    LlamaDeviceLayer& added = weights.layers.back();
    if (config.qkv_bias) {
      added.qkv_bias = make(dtype, {config.q_dim() + 2 * config.kv_dim()}, Memory::device);
    }
    if (!config.qk_norm) continue;
    added.q_norm = make(dtype, {config.head_dim}, Memory::device);
    added.k_norm = make(dtype, {config.head_dim}, Memory::device);
  }
  return weights;
}

std::uint64_t weight_bytes(const LlamaConfig& config, DType dtype) {
  const LlamaFormats& formats = config.formats;
  auto bytes = bytes_of(dtype, static_cast<std::uint64_t>(config.parameters()));
  // What a quantised matrix takes instead of numbers.
  const auto instead = [&](const MatrixFormat& format, std::int64_t rows, std::int64_t cols,
                           bool shared = false) {
    if (format.plain()) return;
    bytes += static_cast<std::uint64_t>(format.bytes(dtype, rows, cols));
    if (!shared) bytes -= static_cast<std::uint64_t>(MatrixFormat{}.bytes(dtype, rows, cols));
  };
  instead(formats.head, config.vocab, config.dim, config.tied_embeddings);
  const auto layers = std::min(static_cast<std::size_t>(config.layers), formats.layers.size());
  for (std::size_t i = 0; i < layers; ++i) {
    const LlamaLayerFormats& layer = formats.layers[i];
    instead(layer.wq, config.q_dim(), config.dim);
    for (const MatrixFormat& kv : {layer.wk, layer.wv}) instead(kv, config.kv_dim(), config.dim);
    instead(layer.wo, config.dim, config.q_dim());
    for (const MatrixFormat& up : {layer.gate, layer.up}) {
      instead(up, config.hidden_dim, config.dim);
    }
    instead(layer.down, config.dim, config.hidden_dim);
  }
  return bytes;
}

LlamaDeviceWeights upload_weights(Runtime& runtime, const LlamaModel& model, DType dtype) {
  LlamaDeviceWeights weights = allocate_weights(runtime, model.config, dtype);
  const LlamaWeights& from = model.weights;
  upload_numbers(runtime, from.embedding, weights.embedding);
  upload_numbers(runtime, from.final_norm, weights.final_norm);
  if (!model.config.tied_embeddings || weights.head.quantised()) {
    upload_matrix(runtime, from.head, weights.head);
  }
  for (std::size_t i = 0; i < from.layers.size(); ++i) {
    const LlamaLayer& layer = from.layers[i];
    const LlamaDeviceLayer& to = weights.layers[i];
    upload_numbers(runtime, layer.attn_norm, to.attn_norm);
    upload_rows(runtime, {&layer.wq, &layer.wk, &layer.wv}, to.qkv);
    upload_matrix(runtime, layer.wo, to.wo);
    upload_numbers(runtime, layer.ffn_norm, to.ffn_norm);
    upload_rows(runtime, {&layer.gate, &layer.up}, to.gate_up);
    upload_matrix(runtime, layer.down, to.down);
    if (to.qkv_bias) {
      const std::int64_t q = model.config.q_dim(), kv = model.config.kv_dim();
      upload_numbers(runtime, layer.bq, to.qkv_bias.slice(0, 0, q));
      upload_numbers(runtime, layer.bk, to.qkv_bias.slice(0, q, kv));
      upload_numbers(runtime, layer.bv, to.qkv_bias.slice(0, q + kv, kv));
    }
    if (to.q_norm) {
      upload_numbers(runtime, layer.q_norm, to.q_norm);
      upload_numbers(runtime, layer.k_norm, to.k_norm);
    }
  }
  return weights;
}

}  // namespace greta::runtime
