#include "kernels/templates/scaled_gemm/inputs.hpp"

#include <algorithm>
#include <cmath>
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

void fill_codes(ByteFormat format, HostTensor& tensor, std::uint64_t stream) {
  const double largest = traits(format).largest;
  parallel_parts(std::ssize(tensor.data), [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      const std::uint64_t draw = mix64(stream + static_cast<std::uint64_t>(i));
      const double unit = (static_cast<double>(draw >> 12) + 0.5) * 0x1p-52;
      tensor.data[static_cast<std::size_t>(i)] = coded(format, largest * (2 * unit - 1));
    }
  });
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
    std::byte* const codes = tensor.data.data() + row * shape.k;
    for (std::int64_t i = 0; i < shape.k; ++i) {
      const double sign = random() >> 63 != 0 ? 1 : -1;
      if (kind == zeros) codes[i] = std::byte{0};
      if (kind == largest_ones) codes[i] = coded(shape.format, sign * largest);
      // The smallest byte of a floating-point format stands for its smallest subnormal number.
      if (kind == subnormal) {
        const double least = decode_byte(shape.format, 1);
        codes[i] =
            coded(shape.format, sign * least * static_cast<double>(uniform_below(random, 4)));
      }
      if (kind == any_bits) codes[i] = finite_code(shape.format, random);
      if (kind == one_large) codes[i] = coded(shape.format, sign * largest / 128);
    }
    const auto place =
        static_cast<std::int64_t>(uniform_below(random, static_cast<std::uint64_t>(shape.k)));
    if (kind == one_large) codes[place] = coded(shape.format, largest);
    // All bits but the sign: NaN or, with e5m2, less two infinity.
    if (kind == not_finite && !finite && uniform_below(random, 4) == 0) {
      const bool infinite =
          shape.format == ByteFormat::e5m2 && !shape.gated() && random() >> 63 != 0;
      codes[place] = std::byte{static_cast<std::uint8_t>(
          infinite ? (random() >> 63 != 0 ? 0x7c : 0xfc) : encode_byte(shape.format, NAN))};
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

}  // namespace

HostTensor input(const Problem& problem, const TensorSpec& spec, std::uint64_t seed) {
  if (spec.name == "C") return random_tensor(spec, seed);
  return random_operand(shape_of(problem).format, spec, seed);
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
