#include "kernels/templates/quantized_gemm/inputs.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string_view>

#include "kernels/model/adversarial.hpp"
#include "kernels/model/parallel.hpp"
#include "kernels/model/random.hpp"
#include "kernels/model/weight_panels.hpp"
#include "kernels/reference/references.hpp"
#include "kernels/templates/quantized_gemm/shape.hpp"

namespace greta::kernels::quantized_gemm {
namespace {

// Kernels multiply an element of A by integers of up to 8 bits and add them before they scale.
constexpr double largest_of_a = 0x1p100, least_of_a = 0x1p-40;
/// Where products with scales are still far above what devices may flush.
constexpr double least_of_ladder = 0x1p-100;
/// With a norm the weight takes A's place, whose squares are added. Products of both are not much
/// farther apart than elements of a type: some kernels keep them as two of these (`stream`).
constexpr double largest_of_weight = 0x1p50, root_of_squares = 0x1p59, ladder_of_weight = 0x1p-48;

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

void fill_random(HostTensor& tensor, std::uint64_t stream) {
  constexpr std::int64_t word = sizeof(std::uint64_t);
  const std::int64_t bytes = std::ssize(tensor.data);
  parallel_parts((bytes + word - 1) / word, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      const std::uint64_t drawn = mix64(stream + static_cast<std::uint64_t>(i));
      std::memcpy(tensor.data.data() + i * word, &drawn,
                  static_cast<std::size_t>(std::min(word, bytes - i * word)));
    }
  });
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

/// The smallest power of e8m0, 2^-127, which is below all normal numbers.
void mix_in_smallest_power(HostTensor& tensor, std::mt19937_64& random) {
  for (std::byte& scale : tensor.data) {
    if (uniform_below(random, 4) == 0) scale = std::byte{0};
  }
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
  if (shape.packing) return fill_random(tensor, random());
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

/// Returns whether each weight has bits of its own, which put_weight() puts: a code of mxfp4, or an
/// integer that is all but for scales and zero points.
bool has_own_bits(const Shape& shape) {
  return !shape.packing && shape.format != WeightFormat::q4_k && shape.format != WeightFormat::q6_k;
}

/// Sets the bits of weight `i` of a row. Requires has_own_bits().
void put_weight(const Shape& shape, HostTensor& b, std::int64_t row, std::int64_t i, int bits) {
  const std::int64_t bytes = row_bytes(shape.format, shape.k), block = i / 32, within = i % 32;
  std::int64_t at = traits(shape.format).bits == 8 ? i : i / 2;
  bool upper = i % 2 == 1;
  if (shape.format == WeightFormat::q8_0) at = block * 34 + 2 + within;
  if (shape.format == WeightFormat::q4_0) {
    at = block * 18 + 2 + within % 16;
    upper = within >= 16;
  }
  std::byte& to = b.data[static_cast<std::size_t>(shape.panels ? panel_place(row, at, bytes)
                                                               : row * bytes + at)];
  const auto put = static_cast<std::byte>(bits);
  if (traits(shape.format).bits == 8) {
    to = put;
  } else {
    to = upper ? (to & std::byte{15}) | put << 4 : (to & std::byte{240}) | put;
  }
}

/// The operand of this name; nullptr if there is none.
HostTensor* find(std::vector<HostTensor>& inputs, const char* name) {
  const auto found = std::find_if(inputs.begin(), inputs.end(), [&](const HostTensor& tensor) {
    return tensor.spec.name == name;
  });
  return found == inputs.end() ? nullptr : &*found;
}

/// Returns the bits of a weight of 0 in a group of a row. A zero point that no weight of int4 has
/// becomes one.
int bits_of_zero(const Shape& shape, HostTensor* zeros, std::int64_t row, std::int64_t i) {
  if (zeros != nullptr) {
    std::byte& zero =
        zeros->data[static_cast<std::size_t>(row * shape.row_scales() + i / shape.group)];
    if (shape.format == WeightFormat::int4) zero &= std::byte{15};
    return std::to_integer<int>(zero);
  }
  return shape.format == WeightFormat::int4 || shape.format == WeightFormat::q4_0 ? 8 : 0;
}

/// Gives elements of A, or of the norm's weight, sizes of a ladder, and each row of B weights of 0
/// for those above a rung of its own. So elements of each size are the largest of some sums, in
/// whose bounds larger ones do not hide their errors.
void make_ladder(const Shape& shape, HostTensor& factor, Magnitudes range,
                 std::vector<HostTensor>& inputs, std::mt19937_64& random) {
  constexpr int rungs = 16;
  constexpr double steps[] = {2, 5, 8, 14};  // powers of 2
  const double step = std::min(steps[uniform_below(random, std::size(steps))],
                               std::log2(range.most / range.least) / rungs);
  std::vector<int> rung(static_cast<std::size_t>(shape.k));
  for (int& one : rung) one = static_cast<int>(uniform_below(random, rungs));
  for (std::size_t i = 0; i < factor.spec.elements(); ++i) {
    const double size = range.most * std::exp2(-step * rung[i % rung.size()]);
    const double x = 2 * uniform(random) - 1;
    store_element(shape.in, factor.data.data(), i, std::copysign(size * (1 + std::abs(x)) / 2, x));
  }
  HostTensor &b = *find(inputs, "B"), *zeros = find(inputs, "zeros");
  for (std::int64_t row = 0; row < b.spec.rows; ++row) {
    const auto first = static_cast<int>(uniform_below(random, rungs));
    for (std::int64_t i = 0; i < shape.k; ++i) {
      if (rung[static_cast<std::size_t>(i)] >= first) continue;
      put_weight(shape, b, row, i, bits_of_zero(shape, zeros, row, i));
    }
  }
}

/// Makes all weighted elements of A positive or 0, or all negative or 0.
void make_one_signed(const Shape& shape, HostTensor& a, HostTensor& weight, bool negative) {
  for (HostTensor* tensor : {&a, &weight}) {
    for (std::size_t i = 0; i < tensor->spec.elements(); ++i) {
      const double size = std::abs(tensor->at(i));
      store_element(shape.in, tensor->data.data(), i, negative && tensor == &a ? -size : size);
    }
  }
}

/// Makes one scale of e8m0 NaN, of weights whose products all have one sign: with an infinity in
/// its place their sum would be one, too.
void put_nan_power(const Shape& shape, HostTensor& factor, std::vector<HostTensor>& inputs,
                   std::mt19937_64& random) {
  HostTensor &b = *find(inputs, "B"), &scales = *find(inputs, "scales");
  const std::size_t at = uniform_below(random, scales.data.size());
  scales.data[at] = std::byte{255};
  const auto place = static_cast<std::int64_t>(at);
  const std::int64_t row = place / shape.row_scales(),
                     first = place % shape.row_scales() * shape.group;
  constexpr int one = 2, less_one = 10;  // codes of e2m1
  const int code = uniform_below(random, 2) == 0 ? one : less_one;
  for (std::int64_t i = first; i < first + shape.group; ++i) {
    put_weight(shape, b, row, i, code);
    for (std::int64_t r = 0; r < factor.spec.rows; ++r) {
      const auto element = static_cast<std::size_t>(r * shape.k + i);
      store_element(shape.in, factor.data.data(), element, std::abs(factor.at(element)));
    }
  }
}

}  // namespace

HostTensor input(const Problem& problem, const TensorSpec& spec, std::uint64_t seed) {
  const Shape shape = shape_of(problem);
  const bool weights = spec.name == "B" || spec.name == "scales" || spec.name == "zeros";
  if (!weights) return random_tensor(spec, seed);
  HostTensor tensor{spec, std::vector<std::byte>(spec.bytes())};
  std::mt19937_64 random(mix64(seed));
  if (spec.name == "B") fill_random(tensor, random());
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
  // Such scales are in the range of bf16, as long as A is as small or large.
  std::mt19937_64 of_scales(mix64(seed + 5));
  if (shape.group > 0 && shape.scales() == DType::bf16 && uniform_below(of_scales, 4) == 0) {
    scales.most = std::exp2(200 * uniform(of_scales) - 100);
  }
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
  HostTensor& factor = shape.norm ? *find(inputs, "weight") : inputs[0];
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
    if (tensor.spec.name == "scales" && smallest) mix_in_smallest_power(tensor, random);
    if (tensor.spec.name == "zeros") fill_zeros(shape, tensor, true, random);
    if (tensor.spec.name == "bias" || tensor.spec.name == "residual") {
      Magnitudes added = magnitudes_of(shape.out);
      added.most = range;
      mix_in_adversarial_rows(tensor, added, mix64(seed + 1));
    }
  }
  std::mt19937_64 of_ladder(mix64(seed + 4));
  if (has_own_bits(shape) && uniform_below(of_ladder, 3) == 0) {
    const double lowest = std::max(
        {smallest_normal(shape.in), least_of_ladder, shape.norm ? most * ladder_of_weight : 0});
    make_ladder(shape, factor, {std::min(lowest, most), most}, inputs, of_ladder);
  }
  std::mt19937_64 of_signs(mix64(seed + 6));
  if (shape.norm && uniform_below(of_signs, 4) == 0)
    make_one_signed(shape, inputs[0], factor, uniform_below(of_signs, 2) == 0);
  if (nan) put_nan_power(shape, factor, inputs, random);
  if (fully_checked) mix_in_special_value(inputs[0], takes_infinities(shape), mix64(seed + 3));
}

}  // namespace greta::kernels::quantized_gemm
