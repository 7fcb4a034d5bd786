#include "runtime/pipeline/llama/device_weights.hpp"

#include <algorithm>
#include <initializer_list>
#include <span>

#include "kernels/model/parallel.hpp"
#include "runtime/pipeline/compute/queue.hpp"

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

/// Copies blocks to a matrix that has the same weights in other blocks, or apart from their scales.
void upload_rewritten(Runtime& runtime, const WeightView& from, const WeightMatrix& to) {
  const BlockFormatTraits& stored = block_traits(*from.blocks);
  const std::size_t blocks = from.elements() / stored.elements,
                    most = piece_elements / stored.elements;
  const std::size_t bytes = to.values.bytes() / blocks;
  const auto upload = [&](const Tensor& target, std::size_t first, const auto& piece) {
    const Tensor place =
        part(target, static_cast<std::int64_t>(first), static_cast<std::int64_t>(piece.size()));
    runtime.upload(place, piece).value();
  };
  std::vector<std::byte> piece, scales;
  for (std::size_t first = 0; first < blocks; first += most) {
    const std::size_t count = std::min(most, blocks - first);
    piece.resize(count * bytes);
    if (to.scales) scales.resize(count);
    parallel_parts(static_cast<std::int64_t>(count), [&](std::int64_t begin, std::int64_t end) {
      const auto b = static_cast<std::size_t>(begin), some = static_cast<std::size_t>(end) - b;
      const std::byte* const source = from.data + (first + b) * stored.bytes;
      std::byte* const codes = piece.data() + b * bytes;
      if (to.scales) {
        split_mxfp4(source, some, codes, scales.data() + b);
      } else {
        rewrite_blocks(*from.blocks, source, some, codes);
      }
    });
    upload(to.values, first * bytes, piece);
    if (to.scales) upload(to.scales, first, scales);
  }
}

/// Copies the scales of a matrix, times that of static activations, if there is one.
void upload_scales(Runtime& runtime, const ScaledWeights& from, const WeightMatrix& to) {
  if (!from.format.given_input) {
    runtime.upload(to.scales, {from.scales, to.scales.bytes()}).value();
    return;
  }
  const auto count = static_cast<std::size_t>(to.scales.shape().elements());
  std::vector<float> scales(count);
  for (std::size_t i = 0; i < count; ++i) {
    scales[i] = static_cast<float>(load_element(DType::f32, from.scales, i) * from.input_scale);
  }
  runtime.upload(to.scales, std::as_bytes(std::span(scales))).value();
  runtime.upload(to.input.scale, std::as_bytes(std::span(&from.input_scale, 1))).value();
}

/// Copies a quantised matrix; scales are rounded to the type of the target's.
void upload_quantised(Runtime& runtime, const WeightView& from, const WeightMatrix& to) {
  const auto upload = [&](const Tensor& target, const std::byte* source) {
    runtime.upload(target, {source, target.bytes()}).value();
  };
  if (from.blocks && same_weights(*from.blocks) != from.blocks) {
    return upload_rewritten(runtime, from, to);
  }
  upload(to.values, from.data);
  if (to.order) {
    upload(to.order, reinterpret_cast<const std::byte*>(from.order));
  }
  if (from.scaled) return upload_scales(runtime, *from.scaled, to);
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
  MatrixFormat format = from.format();
  if (format.order != 0 && to.format.order != 0) format.order = to.format.order;
  format.panels = to.format.panels;  // which repack() makes
  if (!(format == to.format)) {
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

/// Creates a layer's router and experts.
void make_experts(const LlamaConfig& config, const LlamaLayerFormats& formats, DType dtype,
                  const TensorMaker& make, LlamaDeviceLayer& layer) {
  const LlamaExperts& e = config.experts;
  const auto tensor = [&](const Shape& shape) { return make(dtype, shape, Memory::device); };
  layer.router = tensor({e.count, config.dim});
  layer.expert_gate_up =
      make_matrix(dtype, e.count * 2 * e.hidden_dim, config.dim, formats.expert_gate_up, make);
  layer.expert_down =
      make_matrix(dtype, e.count * config.dim, e.hidden_dim, formats.expert_down, make);
  if (e.shared_hidden_dim > 0) layer.shared_router = tensor({1, config.dim});
}

/// Copies a matrix to one of a format with zero points, which it may lack: then its integers get
/// the implied ones, 8 of int4, or of int8, whose signed integers become unsigned, 128.
void upload_with_zeros(Runtime& runtime, const WeightView& from, const WeightMatrix& to) {
  if (!to.zeros || (from.groups && from.groups->zeros != nullptr)) {
    return upload_matrix(runtime, from, to);
  }
  WeightMatrix plain = to;
  plain.format.zeros = false;
  plain.zeros = {};
  upload_matrix(runtime, from, plain);
  const bool four = to.format.quantised == WeightFormat::int4;
  const std::vector<std::byte> zeros(to.zeros.bytes(),
                                     std::byte{four ? std::uint8_t{8} : std::uint8_t{128}});
  runtime.upload(to.zeros, zeros).value();
  if (four) return;
  std::vector<std::byte> integers(from.data, from.data + to.values.bytes());
  for (std::byte& integer : integers) integer ^= std::byte{0x80};
  runtime.upload(to.values, integers).value();
}

void upload_experts(Runtime& runtime, const LlamaLayer& from, const LlamaDeviceLayer& to) {
  upload_numbers(runtime, from.router, to.router);
  if (to.shared_router) upload_numbers(runtime, from.shared_router, to.shared_router);
  std::int64_t gates = 0, downs = 0;  // rows so far
  for (const LlamaExpert& expert : from.experts) {
    for (const WeightView* view : {&expert.gate, &expert.up}) {
      upload_with_zeros(runtime, *view, to.expert_gate_up.slice(gates, view->rows));
      gates += view->rows;
    }
    upload_with_zeros(runtime, expert.down, to.expert_down.slice(downs, expert.down.rows));
    downs += expert.down.rows;
  }
}

/// Calls visit(matrix) for each matrix of a layer that may be quantised.
template <typename Layer, typename Visit>
void for_each_matrix(Layer& layer, const Visit& visit) {
  for (auto* const projection : {&layer.qkv, &layer.gate_up}) {
    for (auto& segment : projection->segments) visit(segment);
  }
  for (auto* const matrix : {&layer.wo, &layer.down, &layer.expert_gate_up, &layer.expert_down}) {
    visit(*matrix);
  }
}

/// Copies vectors, one after the other.
void upload_joined(Runtime& runtime, std::initializer_list<const WeightView*> from,
                   const Tensor& to) {
  std::int64_t first = 0;
  for (const WeightView* view : from) {
    upload_numbers(runtime, *view, to.slice(0, first, view->cols));
    first += view->cols;
  }
}

/// Copies the biases and the norms of heads that a layer has.
void upload_vectors(Runtime& runtime, const LlamaLayer& from, const LlamaDeviceLayer& to) {
  if (to.qkv_bias) upload_joined(runtime, {&from.bq, &from.bk, &from.bv}, to.qkv_bias);
  if (to.out_bias) upload_numbers(runtime, from.bo, to.out_bias);
  if (to.gate_up_bias) {
    upload_joined(runtime, {&from.b_gate, &from.b_up}, to.gate_up_bias);
    upload_numbers(runtime, from.b_down, to.down_bias);
  }
  if (to.q_norm) {
    upload_numbers(runtime, from.q_norm, to.q_norm);
    upload_numbers(runtime, from.k_norm, to.k_norm);
  }
}

/// Makes panels of the rows of matrices whose format has them.
class PanelMaker {
 public:
  explicit PanelMaker(Runtime& runtime) : runtime_(runtime) {}

  void repack(WeightMatrix& matrix) {
    if (!matrix.format.panels) return;
    if (!queue_) queue_ = runtime_.queue().value();
    const Shape& shape = matrix.values.shape();
    Tensor panels = runtime_.allocate(DType::u8, shape).value();
    RepackOptions options;
    options.packing = kernels::WeightPacking::rows;
    options.format = *matrix.format.quantised;
    queue_->repack_weights(matrix.values, {}, panels, {}, options).value();
    queue_->synchronize().value();
    matrix.values = std::move(panels);  // whose rows are freed
  }

 private:
  Runtime& runtime_;
  std::unique_ptr<Queue> queue_;
};

/// Returns the weights of attention and of a layer's feed-forward network.
LlamaDeviceLayer make_layer(const LlamaConfig& config, DType dtype, std::int64_t index,
                            const TensorMaker& make) {
  const LlamaLayerFormats formats = config.formats.layer(index);
  const std::int64_t dim = config.dim, ffn = config.ffn_dim(index);
  const auto vector = [&](std::int64_t length) { return make(dtype, {length}, Memory::device); };
  LlamaDeviceLayer layer;
  layer.attn_norm = vector(dim);
  layer.qkv = make_projection(
      dtype, dim,
      {{config.q_dim(), formats.wq}, {config.kv_dim(), formats.wk}, {config.kv_dim(), formats.wv}},
      make);
  layer.wo = make_matrix(dtype, dim, config.q_dim(), formats.wo, make);
  layer.ffn_norm = vector(dim);
  if (ffn > 0) {
    layer.gate_up = make_projection(dtype, dim, {{ffn, formats.gate}, {ffn, formats.up}}, make);
    layer.down = make_matrix(dtype, dim, ffn, formats.down, make);
  }
  if (config.qkv_bias) layer.qkv_bias = vector(config.q_dim() + 2 * config.kv_dim());
  if (config.out_bias) layer.out_bias = vector(dim);
  if (config.has_mlp_bias(index)) {
    layer.gate_up_bias = vector(2 * ffn);
    layer.down_bias = vector(dim);
  }
  if (config.qk_norm) {
    layer.q_norm = vector(config.head_dim);
    layer.k_norm = vector(config.head_dim);
  }
  if (config.has_experts(index)) make_experts(config, formats, dtype, make, layer);
  return layer;
}

}  // namespace

LlamaDeviceWeights make_weights(const LlamaConfig& config, DType dtype, const TensorMaker& make) {
  const MatrixFormat& head = config.formats.head;
  LlamaDeviceWeights weights;
  weights.config = config;
  weights.dtype = dtype;
  weights.embedding = make(dtype, {config.vocab, config.dim}, Memory::device);
  weights.final_norm = make(dtype, {config.dim}, Memory::device);
  const bool shared = config.tied_embeddings && head.plain();
  weights.head = shared ? WeightMatrix(weights.embedding)
                        : make_matrix(dtype, config.vocab, config.dim, head, make);
  for (std::int64_t i = 0; i < config.layers; ++i) {
    weights.layers.push_back(make_layer(config, dtype, i, make));
  }
  return weights;
}

std::uint64_t weight_bytes(const LlamaConfig& config, DType dtype) {
  std::uint64_t bytes = 0;
  make_weights(config, dtype, [&](DType type, const Shape& shape, Memory) {
    Tensor tensor = Tensor::placeholder(type, shape);
    bytes += tensor.bytes();
    return tensor;
  });
  return bytes;
}

std::uint64_t repacking_bytes(const LlamaDeviceWeights& weights) {
  std::uint64_t most = 0;
  const auto visit = [&](const WeightMatrix& matrix) {
    if (matrix.format.panels) most = std::max<std::uint64_t>(most, matrix.values.bytes());
  };
  visit(weights.head);
  for (const LlamaDeviceLayer& layer : weights.layers) for_each_matrix(layer, visit);
  return most;
}

void set_ones(LlamaDeviceWeights& weights, const Tensor& ones) {
  const auto visit = [&](WeightMatrix& matrix) {
    if (matrix.input.scale) matrix.input.ones = ones;
  };
  visit(weights.head);
  for (LlamaDeviceLayer& layer : weights.layers) for_each_matrix(layer, visit);
}

LlamaDeviceWeights upload_weights(Runtime& runtime, const LlamaModel& model, DType dtype) {
  const LlamaWeights& from = model.weights;
  if (const std::string& unread = model.config.formats.unread_experts; !unread.empty()) {
    throw Error("the experts are stored in " + unread + ", which their products can't read");
  }
  LlamaDeviceWeights weights = allocate_weights(runtime, model.config, dtype);
  upload_numbers(runtime, from.embedding, weights.embedding);
  upload_numbers(runtime, from.final_norm, weights.final_norm);
  if (!model.config.tied_embeddings || weights.head.quantised()) {
    upload_matrix(runtime, from.head, weights.head);
  }
  PanelMaker panels(runtime);
  panels.repack(weights.head);
  for (std::size_t i = 0; i < from.layers.size(); ++i) {
    const LlamaLayer& layer = from.layers[i];
    LlamaDeviceLayer& to = weights.layers[i];
    upload_numbers(runtime, layer.attn_norm, to.attn_norm);
    upload_rows(runtime, {&layer.wq, &layer.wk, &layer.wv}, to.qkv);
    upload_matrix(runtime, layer.wo, to.wo);
    upload_numbers(runtime, layer.ffn_norm, to.ffn_norm);
    if (to.down) {
      upload_rows(runtime, {&layer.gate, &layer.up}, to.gate_up);
      upload_matrix(runtime, layer.down, to.down);
    }
    if (to.router) upload_experts(runtime, layer, to);
    upload_vectors(runtime, layer, to);
    for_each_matrix(to, [&](WeightMatrix& matrix) { panels.repack(matrix); });
  }
  return weights;
}

}  // namespace greta::runtime
