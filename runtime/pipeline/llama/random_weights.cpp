#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <random>
#include <span>

#include "kernels/model/random.hpp"
#include "runtime/pipeline/llama/device_weights.hpp"

/// Weights for measurements, where there are none.
namespace greta::runtime {
namespace {

constexpr std::size_t piece_bytes = std::size_t{8} << 20;  // of a random piece

/// Fills large tensors by repeatedly copying parts of a random piece.
void fill_from(Runtime& runtime, const Tensor& to, std::span<const std::byte> piece,
               std::size_t unit, std::mt19937_64& random) {
  const std::size_t all = to.bytes(), units = piece.size() / unit;
  const auto element = bytes_of(to.dtype(), std::size_t{1});
  const Tensor flat = to.reshape({to.shape().elements()});
  for (std::size_t first = 0; first < all;) {
    const std::size_t from = uniform_below(random, units / 2 + 1) * unit;
    const std::size_t count = std::min(piece.size() - from, all - first);
    runtime
        .upload(flat.slice(0, static_cast<std::int64_t>(first / element),
                           static_cast<std::int64_t>(count / element)),
                piece.subspan(from, count))
        .value();
    first += count;
  }
}

/// Returns random numbers of a type in +-largest.
std::vector<std::byte> random_numbers(DType dtype, double largest, std::mt19937_64& random) {
  const std::size_t count = piece_bytes / 2;
  std::vector<std::byte> piece(bytes_of(dtype, count));
  for (std::size_t i = 0; i < count; ++i) {
    const auto draw = static_cast<double>(uniform_below(random, 1U << 24U)) * 0x1p-23 - 1;
    store_element(dtype, piece.data(), i, largest * draw);
  }
  return piece;
}

std::vector<std::byte> random_bytes(std::size_t count, std::mt19937_64& random) {
  std::vector<std::byte> piece(count);
  for (std::byte& byte : piece) byte = static_cast<std::byte>(random() & 0xff);
  return piece;
}

/// Returns the standard deviation of the weights of a format whose bits are random and whose scale
/// is 1. Of q4_k, whose minima have a scale of their own, it is that of the weights if this scale
/// is 7.5, which makes their mean 0.
double deviation_of(WeightFormat format) {
  switch (format) {
    case WeightFormat::int4:
    case WeightFormat::q4_0:
      return 4.6;
    case WeightFormat::int8:
    case WeightFormat::q8_0:
      return 74;
    case WeightFormat::q4_k:
      return 258;
    case WeightFormat::q6_k:
      return 1366;
    case WeightFormat::mxfp4:
      return 2.9;
  }
  return 1;
}

/// Returns random blocks with this scale.
std::vector<std::byte> random_blocks(BlockFormat format, double scale, std::mt19937_64& random) {
  const std::size_t bytes = block_traits(format).bytes;
  std::vector<std::byte> piece = random_bytes(piece_bytes / bytes * bytes, random);
  for (std::size_t at = 0; at < piece.size(); at += bytes) {
    std::byte* const block = piece.data() + at;
    constexpr std::size_t scale_of_q6_k = 208;
    store_element(DType::f16, block + (format == BlockFormat::q6_k ? scale_of_q6_k : 0), 0, scale);
    if (format == BlockFormat::q4_k) store_element(DType::f16, block + 2, 0, 7.5 * scale);
  }
  return piece;
}

/// Fills matrices with random weights of one standard deviation.
class Filler {
 public:
  Filler(Runtime& runtime, DType dtype, double deviation, std::uint64_t seed)
      : runtime_(runtime), deviation_(deviation), random_(seed) {
    numbers_ = random_numbers(dtype, std::sqrt(3.0) * deviation, random_);
  }

  void fill(const Tensor& to) {
    fill_from(runtime_, to, numbers_, bytes_of(to.dtype(), std::size_t{1}), random_);
  }

  void fill(const WeightMatrix& to) {
    if (!to.quantised()) return fill(to.values);
    if (to.order) fill_order(to.order);
    if (to.format.scaled) return fill_scaled(to);
    const WeightFormat format = *to.format.quantised;
    const double scale = deviation_ / deviation_of(format);
    auto& piece = pieces_[static_cast<std::size_t>(format)];
    if (piece.empty()) {
      piece = in_blocks(format) ? random_blocks(*traits(format).blocks, scale, random_)
                                : random_bytes(piece_bytes, random_);
    }
    const auto block = static_cast<std::size_t>(std::max<std::int64_t>(1, block_bytes(format)));
    fill_from(runtime_, to.values, piece, block, random_);
    const bool powers = format == WeightFormat::mxfp4;
    if (to.scales) fill_equal(to.scales, powers ? 127 + std::round(std::log2(scale)) : scale);
    // The middle of the unsigned integers.
    if (to.zeros) fill_equal(to.zeros, format == WeightFormat::int4 ? 8 : 128);
  }

  /// Writes a random permutation.
  void fill_order(const Tensor& to) {
    std::vector<std::int32_t> order(static_cast<std::size_t>(to.shape().elements()));
    std::iota(order.begin(), order.end(), 0);
    for (std::size_t i = order.size(); i > 1; --i) {
      std::swap(order[i - 1], order[uniform_below(random_, i)]);
    }
    runtime_.upload(to, std::as_bytes(std::span(order))).value();
  }

  void fill_scaled(const WeightMatrix& to) {
    const ByteFormat format = to.format.scaled->numbers;
    const double largest = traits(format).largest;
    if (scaled_.empty()) {
      scaled_.resize(piece_bytes);
      for (std::byte& code : scaled_) {
        code = std::byte{kernels::encode_byte(format, largest * (2 * uniform(random_) - 1))};
      }
    }
    fill_from(runtime_, to.values, scaled_, 1, random_);
    const double input = to.input.scale ? 8 / largest : 1;
    fill_equal(to.scales, std::sqrt(3.0) * deviation_ / largest * input);
    if (to.input.scale) fill_equal(to.input.scale, input);
  }

  void fill(const Projection& to) {
    for (const WeightMatrix& segment : to.segments) fill(segment);
  }

  void fill_equal(const Tensor& to, double value) {
    std::vector<std::byte> all(to.bytes());
    for (std::int64_t i = 0; i < to.shape().elements(); ++i) {
      store_element(to.dtype(), all.data(), static_cast<std::size_t>(i), value);
    }
    runtime_.upload(to, all).value();
  }

 private:
  Runtime& runtime_;
  double deviation_;
  std::mt19937_64 random_;
  std::vector<std::byte> numbers_;
  std::array<std::vector<std::byte>, weight_format_table.size()> pieces_;
  std::vector<std::byte> scaled_;
};

}  // namespace

LlamaDeviceWeights random_weights(Runtime& runtime, const LlamaConfig& config, DType dtype,
                                  std::uint64_t seed) {
  LlamaDeviceWeights weights = make_weights(config, dtype, runtime.maker());
  Filler filler(runtime, dtype, 1 / std::sqrt(static_cast<double>(config.dim)), seed);
  filler.fill(weights.embedding);
  if (!config.tied_embeddings || weights.head.quantised()) filler.fill(weights.head);
  filler.fill_equal(weights.final_norm, 1);
  for (const LlamaDeviceLayer& layer : weights.layers) {
    for (const Tensor* norm : {&layer.attn_norm, &layer.ffn_norm}) filler.fill_equal(*norm, 1);
    for (const Tensor* norm : {&layer.q_norm, &layer.k_norm}) {
      if (*norm) filler.fill_equal(*norm, 1);
    }
    for (const Tensor* bias :
         {&layer.qkv_bias, &layer.out_bias, &layer.gate_up_bias, &layer.down_bias}) {
      if (*bias) filler.fill(*bias);
    }
    for (const Projection* matrices : {&layer.qkv, &layer.gate_up}) filler.fill(*matrices);
    for (const WeightMatrix* matrix : {&layer.wo, &layer.down}) {
      if (*matrix) filler.fill(*matrix);
    }
    for (const Tensor* router : {&layer.router, &layer.shared_router}) {
      if (*router) filler.fill(*router);
    }
    for (const WeightMatrix* experts : {&layer.expert_gate_up, &layer.expert_down}) {
      if (*experts) filler.fill(*experts);
    }
  }
  return weights;
}

}  // namespace greta::runtime
