#include "kernels/templates/scaled_gemm/inputs.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <string_view>

#include "kernels/model/adversarial.hpp"
#include "kernels/model/parallel.hpp"
#include "kernels/model/random.hpp"
#include "kernels/reference/references.hpp"
#include "kernels/templates/scaled_gemm/shape.hpp"

namespace greta::kernels::scaled_gemm {
namespace {

std::byte coded(ByteFormat format, double value) {
  return std::byte{encode_byte(format, value)};
}

/// Puts the code of number `i` of those that begin at `codes`.
void put(ByteFormat format, std::byte* codes, std::int64_t i, std::byte code) {
  const int bits = traits(format).bits, of_byte = 8 / bits;
  std::byte& to = codes[i / of_byte];
  const auto shift = static_cast<int>(i % of_byte) * bits;
  const std::byte mask = std::byte{0xff} >> (8 - bits) << shift;
  to = (to & ~mask) | (code << shift & mask);
}

/// Codes of uniform numbers: of most draws, the upper bits say the code.
class UniformCodes {
 public:
  explicit UniformCodes(ByteFormat format) : format_(format) {
    for (std::uint64_t upper = 0; upper < known_.size(); ++upper) {
      const std::byte least = exactly(upper << lower_bits);
      const std::byte most = exactly((upper << lower_bits) + ((1ULL << lower_bits) - 1));
      if (least == most) known_[upper] = least;
    }
  }

  std::byte of(std::uint64_t draw) const {
    const std::optional<std::byte>& known = known_[draw >> lower_bits];
    return known ? *known : exactly(draw);
  }

 private:
  static constexpr int upper_bits = 14, lower_bits = 64 - upper_bits;

  std::byte exactly(std::uint64_t draw) const {
    const double unit = (static_cast<double>(draw >> 12) + 0.5) * 0x1p-52;
    return coded(format_, traits(format_).largest * (2 * unit - 1));
  }

  ByteFormat format_;
  std::array<std::optional<std::byte>, std::size_t{1} << upper_bits> known_{};
};

/// Returns the codes of a format, which are computed once per process.
const UniformCodes& uniform_codes(ByteFormat format) {
  static std::mutex mutex;
  static std::map<ByteFormat, UniformCodes> all;
  const std::lock_guard lock(mutex);
  return all.try_emplace(format, format).first->second;
}

void fill_codes(ByteFormat format, HostTensor& tensor, std::uint64_t stream) {
  const UniformCodes& codes = uniform_codes(format);
  const int bits = traits(format).bits;
  parallel_parts(std::ssize(tensor.data), [&](std::int64_t first, std::int64_t last) {
    auto number = stream + static_cast<std::uint64_t>(first * (8 / bits));
    for (std::int64_t i = first; i < last; ++i) {
      std::byte byte{};
      for (int shift = 0; shift < 8; shift += bits) byte |= codes.of(mix64(number++)) << shift;
      tensor.data[static_cast<std::size_t>(i)] = byte;
    }
  });
}

/// Returns the byte of the power of two 2^exponent, as e8m0.
std::byte power(int exponent) {
  return std::byte{static_cast<std::uint8_t>(std::clamp(exponent + 127, 0, 254))};
}

/// Fills scales e8m0 with powers of two up to 2^most.
void fill_powers(HostTensor& tensor, int most, std::mt19937_64& random) {
  for (std::byte& scale : tensor.data) scale = power(most - static_cast<int>(random() >> 62));
}

void fill_scales(HostTensor& tensor, double most, std::mt19937_64& random) {
  for (std::size_t i = 0; i < tensor.spec.elements(); ++i) {
    store_element(DType::f32, tensor.data.data(), i, most * (0.5 + uniform(random) / 2));
  }
}

/// Returns a random byte that stands for a finite number.
std::byte finite_code(ByteFormat format, std::mt19937_64& random) {
  for (;;) {
    const auto byte = static_cast<std::uint8_t>(random() >> 56);
    if (std::isfinite(decode_byte(format, byte))) return std::byte{byte};
  }
}

/// Replaces about half of the rows of codes by special ones.
void mix_in_special_rows(const Shape& shape, HostTensor& tensor, bool finite,
                         std::mt19937_64& random) {
  const double largest = traits(shape.format).largest;
  enum { zeros, largest_ones, subnormal, any_bits, one_large, not_finite, kinds };
  for (std::int64_t row = 0; row < tensor.spec.rows; ++row) {
    const std::uint64_t kind = uniform_below(random, 2 * kinds);
    std::byte* const codes = tensor.data.data() + row * shape.bytes_a(shape.k);
    const auto set = [&](std::int64_t i, std::byte code) { put(shape.format, codes, i, code); };
    for (std::int64_t i = 0; i < shape.k; ++i) {
      const double sign = random() >> 63 != 0 ? 1 : -1;
      if (kind == zeros) set(i, std::byte{0});
      if (kind == largest_ones) set(i, coded(shape.format, sign * largest));
      // The smallest byte of a floating-point format stands for its smallest subnormal number.
      if (kind == subnormal) {
        const double least = decode_byte(shape.format, 1);
        set(i, coded(shape.format, sign * least * static_cast<double>(uniform_below(random, 4))));
      }
      if (kind == any_bits) set(i, finite_code(shape.format, random));
      if (kind == one_large) set(i, coded(shape.format, sign * largest / 128));
    }
    const auto place =
        static_cast<std::int64_t>(uniform_below(random, static_cast<std::uint64_t>(shape.k)));
    if (kind == one_large) set(place, coded(shape.format, largest));
    // All bits but the sign: NaN or, with e5m2, less two infinity.
    if (kind == not_finite && !finite && uniform_below(random, 2) == 0) {
      const bool infinite =
          shape.format == ByteFormat::e5m2 && !shape.gated() && random() >> 63 != 0;
      set(place, std::byte{static_cast<std::uint8_t>(infinite ? (random() >> 63 != 0 ? 0x7c : 0xfc)
                                                              : encode_byte(shape.format, NAN))});
    }
  }
}

/// Replaces scales by special ones of at most `most`.
void mix_in_special_scales(HostTensor& tensor, double most, bool finite, std::mt19937_64& random) {
  enum { zero, negative, subnormal, smallest, small, kinds };
  for (std::size_t i = 0; i < tensor.spec.elements(); ++i) {
    double scale = most * (0.5 + uniform(random) / 2);
    const std::uint64_t kind = uniform_below(random, 2 * kinds);
    if (kind == zero) scale = 0;
    if (kind == negative) scale = -scale;
    if (kind == subnormal && finite) scale = std::min(scale, 0x1p-126 * uniform(random));
    if (kind == smallest && finite) scale = std::min(scale, 0x1p-149);
    if (kind == small) scale *= std::exp2(-20 * uniform(random));
    store_element(DType::f32, tensor.data.data(), i, scale);
  }
}

/// Replaces powers of two by special ones of at most 2^most. NaN is rare, and 2^-127 is where
/// devices may flush it.
void mix_in_special_powers(HostTensor& tensor, int most, bool finite, std::mt19937_64& random) {
  enum { least, not_a_number, small, kinds };
  for (std::byte& scale : tensor.data) {
    const std::uint64_t kind = uniform_below(random, 2 * kinds);
    scale = power(most - static_cast<int>(random() >> 62));
    if (kind == least && finite) scale = power(-127);
    if (kind == small) scale = power(most - static_cast<int>(uniform_below(random, 20)));
    const bool is_nan = kind == not_a_number && !finite && uniform_below(random, 8) == 0;
    if (is_nan) scale = std::byte{255};
  }
}

/// Replaces operands of microscaling formats: an eighth of C's range is for the sum of products;
/// the scales of A or of B are large, or both.
void harden_mx(const Shape& shape, bool finite, std::vector<HostTensor>& inputs,
               std::mt19937_64& random) {
  const double range = std::min(magnitudes_of(shape.out).most / 8, 0x1p100);
  const double largest_a = traits(shape.format).largest, largest_b = traits(shape.format_b).largest;
  const int product = std::ilogb(range / static_cast<double>(shape.k) / largest_a / largest_b);
  const int sizes[] = {product / 2, -std::ilogb(largest_a), -20, 10};
  const int of_a = std::min(sizes[uniform_below(random, 4)], product + 60);
  const int of_b = std::min(product - of_a, 60);
  Shape lines = shape;
  mix_in_special_rows(lines, inputs[0], finite, random);
  lines.format = shape.format_b;
  mix_in_special_rows(lines, inputs[1], finite, random);
  mix_in_special_powers(inputs[2], of_a, finite, random);
  mix_in_special_powers(inputs[3], of_b, finite, random);
}

}  // namespace

HostTensor input(const Problem& problem, const TensorSpec& spec, std::uint64_t seed) {
  if (spec.name == "C") return random_tensor(spec, seed);
  const Shape shape = shape_of(problem);
  const bool of_b = spec.name.ends_with('B') || spec.name.ends_with('b');
  const ByteFormat format = of_b ? shape.format_b : shape.format;
  if (!shape.mx() || !spec.name.starts_with("scales")) return random_operand(format, spec, seed);
  HostTensor tensor{spec, std::vector<std::byte>(spec.bytes())};
  std::mt19937_64 random(mix64(seed));
  fill_powers(tensor, -2 - std::ilogb(traits(format).largest), random);
  return tensor;
}

HostTensor random_operand(ByteFormat format, const TensorSpec& spec, std::uint64_t seed) {
  HostTensor tensor{spec, std::vector<std::byte>(spec.bytes())};
  if (spec.dtype == DType::u8) {
    fill_codes(format, tensor, mix64(seed));
  } else {
    std::mt19937_64 random(mix64(seed));
    fill_scales(tensor, 0.5 / traits(format).largest, random);
  }
  return tensor;
}

void harden_lines(Shape lines, double most, bool finite, HostTensor& numbers, HostTensor& scales,
                  std::mt19937_64& random) {
  lines.gate = Gate::swiglu;
  mix_in_special_rows(lines, numbers, finite, random);
  mix_in_special_scales(scales, most, false, random);
}

void harden(const Problem& problem, std::vector<HostTensor>& inputs, std::uint64_t seed) {
  harden_operands(shape_of(problem), scaled_gemm_fully_checked(problem), inputs, seed);
}

/// An eighth of C's range is for the sum of products, or each of two factors has its root; the
/// scales of A or of B are large, or both.
void harden_operands(const Shape& shape, bool fully_checked, std::vector<HostTensor>& inputs,
                     std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const bool finite = shape.integers() || !fully_checked || random() >> 63 != 0;
  if (shape.mx()) return harden_mx(shape, finite, inputs, random);
  const double largest = traits(shape.format).largest + 1;
  const double range = std::min(magnitudes_of(shape.out).most / 8, 0x1p100);
  const double product =
      (shape.gated() ? std::sqrt(range) : range) / static_cast<double>(shape.k) / largest / largest;
  const double sizes[] = {std::sqrt(product), 1 / largest, 0x1p-20, 0x1p10};
  const double of_a = std::min(sizes[uniform_below(random, 4)], product * 0x1p60);
  const double of_b = std::min(product / of_a, 0x1p60);
  for (HostTensor& tensor : inputs) {
    if (tensor.spec.dtype == DType::u8) mix_in_special_rows(shape, tensor, finite, random);
    if (tensor.spec.name == "scales_a") mix_in_special_scales(tensor, of_a, finite, random);
    if (tensor.spec.name == "scales_b") mix_in_special_scales(tensor, of_b, finite, random);
  }
}

}  // namespace greta::kernels::scaled_gemm
