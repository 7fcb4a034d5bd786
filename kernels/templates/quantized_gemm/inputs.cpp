#include "kernels/templates/quantized_gemm/inputs.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string_view>

#include "kernels/model/adversarial.hpp"
#include "kernels/model/random.hpp"
#include "kernels/reference/references.hpp"
#include "kernels/templates/quantized_gemm/shape.hpp"

namespace greta::kernels::quantized_gemm {
namespace {

// Kernels multiply an element of A by integers of up to 8 bits and add them before they scale.
constexpr double largest_of_a = 0x1p100, least_of_a = 0x1p-40;
/// With a norm the weight takes A's place, whose squares are added.
constexpr double largest_of_weight = 0x1p50, root_of_squares = 0x1p59;

/// Draws the scale of a block, so that weights are below `most` in magnitude.
struct Scales {
  double most = 0.5;
  bool adversarial = false;

  /// `largest`: the largest integer that is multiplied by the scale.
  double draw(double largest, std::mt19937_64& random) const {
    const double plain = most / largest * (0.5 + uniform(random) / 2);
    if (!adversarial) return plain;
    enum { zero, denormal, smallest, small, negative, kinds };
    switch (uniform_below(random, 2 * kinds)) {
      case zero:
        return 0;
      case denormal:
        return std::min(plain, 0x1p-14 * uniform(random));
      case smallest:
        return std::min(plain, 0x1p-24);
      case small:
        return plain * std::exp2(-12 * uniform(random));
      case negative:
        return -plain;
      default:
        return plain;
    }
  }
};

void store_f16(std::byte* at, double value) {
  store_element(DType::f16, at, 0, value);
}

/// Gives a block of a GGUF format, whose bytes are random, sensible scales. Those of q4_k are such
/// that weights have both signs: minima are those of the scales times 7.5 / 8. In an eighth of the
/// blocks, or half of the adversarial ones, parts have any scales and minima.
void set_scales(WeightFormat format, std::byte* block, const Scales& scales,
                std::mt19937_64& random) {
  if (format == WeightFormat::q4_0) store_f16(block, scales.draw(8, random));
  if (format == WeightFormat::q8_0) store_f16(block, scales.draw(128, random));
  if (format == WeightFormat::q6_k) store_f16(block + 208, scales.draw(32 * 128, random));
  if (format != WeightFormat::q4_k) return;
  const double scale = scales.draw(15 * 63, random);
  store_f16(block, scale);
  store_f16(block + 2, 7.5 * scale);
  // Adversarial weights are also of one integer whose product with the scale is the minimum but for
  // a rounding: the weights are nearly zero, while both are not.
  const bool cancels = scales.adversarial && uniform_below(random, 4) == 0;
  if (cancels) {
    const auto integer = static_cast<int>(uniform_below(random, 16));
    store_f16(block + 2, integer * scale);
    std::fill(block + 16, block + 144, static_cast<std::byte>(integer * 17));
  }
  if (!cancels && uniform_below(random, scales.adversarial ? 2 : 8) == 0) {
    std::generate(block + 4, block + 16, [&] { return static_cast<std::byte>(random() >> 56); });
    return;
  }
  // Bytes 4 to 7 have the lower six bits of scales 0 to 3 and two bits of scales 4 to 7, bytes 8 to
  // 11 the same of the minima; bytes 12 to 15 the lower halves of scales and minima 4 to 7.
  for (int i = 0; i < 4; ++i) {
    block[8 + i] = block[4 + i];
    const auto low = std::to_integer<unsigned>(block[12 + i]) & 15U;
    block[12 + i] = static_cast<std::byte>(low | low << 4);
  }
}

void fill_random(HostTensor& tensor, std::mt19937_64& random) {
  for (std::byte& byte : tensor.data) byte = static_cast<std::byte>(random() >> 56);
}

/// Replaces the integers of some blocks by equal ones: all bits clear or set.
void mix_in_equal_integers(WeightFormat format, std::byte* block, std::mt19937_64& random) {
  const std::uint64_t kind = uniform_below(random, 8);
  if (kind > 1) return;
  const std::int64_t first = format == WeightFormat::q4_k   ? 16
                             : format == WeightFormat::q6_k ? 0
                                                            : 2;
  const std::int64_t end = format == WeightFormat::q6_k ? 192 : block_bytes(format);
  std::fill(block + first, block + end, kind == 0 ? std::byte{0} : std::byte{255});
}

void fill_blocks(WeightFormat format, HostTensor& tensor, const Scales& scales,
                 std::mt19937_64& random) {
  for (std::int64_t at = 0; at < std::ssize(tensor.data); at += block_bytes(format)) {
    std::byte* const block = tensor.data.data() + at;
    if (scales.adversarial) mix_in_equal_integers(format, block, random);
    set_scales(format, block, scales, random);
  }
}

/// Powers of two near what other formats have, which are neither 0 nor negative.
void fill_powers(HostTensor& tensor, const Scales& scales, std::mt19937_64& random) {
  constexpr double least = 0x1p-60;
  for (std::byte& scale : tensor.data) {
    const double drawn = std::max(least, std::abs(scales.draw(6, random)));
    scale = static_cast<std::byte>(127 + std::ilogb(drawn));
  }
}

/// The ends of the range of e8m0: 2^-127, which is below all normal numbers, and NaN.
void mix_in_end_powers(HostTensor& tensor, bool smallest, bool nan, std::mt19937_64& random) {
  for (std::byte& scale : tensor.data) {
    if (smallest && uniform_below(random, 4) == 0) scale = std::byte{0};
  }
  if (nan) tensor.data[uniform_below(random, tensor.data.size())] = std::byte{255};
}

void fill_scales(const Shape& shape, HostTensor& tensor, const Scales& scales,
                 std::mt19937_64& random) {
  if (shape.format == WeightFormat::mxfp4) return fill_powers(tensor, scales, random);
  const bool few = shape.format == WeightFormat::int4 && !(shape.zeros && scales.adversarial);
  const double largest = few ? 16 : 256;
  for (std::size_t i = 0; i < tensor.spec.elements(); ++i) {
    store_element(tensor.spec.dtype, tensor.data.data(), i, scales.draw(largest, random));
  }
}

/// Zero points are near the middle, or any bytes if adversarial.
void fill_zeros(const Shape& shape, HostTensor& tensor, bool adversarial, std::mt19937_64& random) {
  if (shape.packing) return fill_random(tensor, random);
  const std::uint64_t values = shape.format == WeightFormat::int4 ? 16 : 256;
  for (std::byte& zero : tensor.data) {
    const bool any = adversarial && uniform_below(random, 4) == 0;
    const std::uint64_t drawn =
        any ? uniform_below(random, 256) : values * 3 / 8 + uniform_below(random, values / 4);
    zero = static_cast<std::byte>(drawn);
  }
}

/// Returns whether a kernel that multiplies integers and scales their sums, in whatever parts,
/// agrees with products of dequantised weights where an element of A is infinite. A weight of
/// q4_k and q6_k may be two products, one of them with 0, and activations and norms divide
/// infinities.
bool takes_infinities(const Shape& shape) {
  const bool one_product = shape.format == WeightFormat::int4 ||
                           shape.format == WeightFormat::int8 ||
                           shape.format == WeightFormat::q4_0 || shape.format == WeightFormat::q8_0;
  return one_product && !shape.gated() && !shape.norm;
}

/// Makes one element NaN in one of eight tensors, or if allowed infinite in another one. Each
/// element of its row of C is NaN then, or infinite, or NaN where a weight is 0, in whatever order
/// kernels multiply and add.
void mix_in_special_value(HostTensor& a, bool infinities, std::uint64_t seed) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  std::mt19937_64 random(seed);
  const std::uint64_t kind = uniform_below(random, 8);
  if (kind > (infinities ? 1U : 0U)) return;
  const double value = kind == 0 ? std::numeric_limits<double>::quiet_NaN()
                                 : std::copysign(infinity, uniform(random) - 0.5);
  store_element(a.spec.dtype, a.data.data(), uniform_below(random, a.spec.elements()), value);
}

}  // namespace

HostTensor input(const Problem& problem, const TensorSpec& spec, std::uint64_t seed) {
  const Shape shape = shape_of(problem);
  const bool weights = spec.name == "B" || spec.name == "scales" || spec.name == "zeros";
  if (!weights) return random_tensor(spec, seed);
  HostTensor tensor{spec, std::vector<std::byte>(spec.bytes())};
  std::mt19937_64 random(mix64(seed));
  if (spec.name == "B") fill_random(tensor, random);
  if (spec.name == "B" && in_blocks(shape.format)) fill_blocks(shape.format, tensor, {}, random);
  if (spec.name == "scales") fill_scales(shape, tensor, {}, random);
  if (spec.name == "zeros") fill_zeros(shape, tensor, false, random);
  return tensor;
}

void harden(const Problem& problem, std::vector<HostTensor>& inputs, std::uint64_t seed) {
  harden_operands(shape_of(problem), quantized_gemm_fully_checked(problem), inputs, seed);
}

/// An eighth of C's range is for the sum of products, or each of two factors has its root, and an
/// eighth for what is added; either A or the weights are large, or both.
void harden_operands(const Shape& shape, bool fully_checked, std::vector<HostTensor>& inputs,
                     std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const double range = magnitudes_of(shape.out).most / 8;
  const double product = (shape.gated() ? std::sqrt(range) : range) / static_cast<double>(shape.k);
  const double most_of_type = magnitudes_of(shape.in).most;
  const double largest = std::min(most_of_type, shape.norm ? largest_of_weight : largest_of_a);
  const double sizes[] = {std::sqrt(product), 0x1p-20, 0x1p14, 0.5};
  Scales scales{.most = std::min(sizes[uniform_below(random, 4)], 0x1p14), .adversarial = true};
  const double least = std::max(smallest_normal(shape.in), least_of_a);
  // Devices may take the smallest power for zero, so that what it is multiplied by must be small.
  const bool powers = shape.format == WeightFormat::mxfp4;
  const bool smallest = powers && uniform_below(random, 2) == 0;
  const bool nan = powers && fully_checked && uniform_below(random, 2) == 0;
  const double most =
      std::clamp(product / scales.most, 16 * least, smallest ? std::min(largest, 0.25) : largest);
  scales.most = std::min(scales.most, product / most);
  if (shape.norm) {
    const double root = root_of_squares / std::sqrt(static_cast<double>(shape.k));
    mix_in_adversarial_rows(inputs[0], {least, std::min(most_of_type, root)}, mix64(seed + 2));
  }
  HostTensor& factor =
      !shape.norm ? inputs[0]
                  : *std::find_if(inputs.begin(), inputs.end(), [](const HostTensor& tensor) {
                      return tensor.spec.name == "weight";
                    });
  for (std::size_t i = 0; most < 0.5 && i < factor.spec.elements(); ++i) {
    const double value = factor.at(i);
    store_element(shape.in, factor.data.data(), i,
                  std::copysign(most, value) * 2 * std::abs(value));
  }
  mix_in_adversarial_rows(factor, {least, most}, mix64(seed));
  for (HostTensor& tensor : inputs) {
    if (tensor.spec.name == "B" && in_blocks(shape.format)) {
      fill_blocks(shape.format, tensor, scales, random);
    }
    if (tensor.spec.name == "scales") fill_scales(shape, tensor, scales, random);
    if (tensor.spec.name == "scales" && powers) mix_in_end_powers(tensor, smallest, nan, random);
    if (tensor.spec.name == "zeros") fill_zeros(shape, tensor, true, random);
    if (tensor.spec.name == "bias" || tensor.spec.name == "residual") {
      Magnitudes added = magnitudes_of(shape.out);
      added.most = range;
      mix_in_adversarial_rows(tensor, added, mix64(seed + 1));
    }
  }
  if (fully_checked) mix_in_special_value(inputs[0], takes_infinities(shape), mix64(seed + 3));
}

}  // namespace greta::kernels::quantized_gemm
