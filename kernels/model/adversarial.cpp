#include "kernels/model/adversarial.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <random>

#include "kernels/model/random.hpp"

namespace greta::kernels {
namespace {

enum class RowKind {
  huge,
  tiny,
  subnormal,
  equal,
  zero,  ///< of both signs
  negative,
  wide,        ///< magnitudes across the range
  spike,       ///< one huge value among moderate ones
  offset,      ///< moderate differences to a large value
  exponents,   ///< e^x overflows for some elements and vanishes for others
  all_vanish,  ///< e^x is 0 for all elements
};
constexpr auto row_kinds = static_cast<std::uint64_t>(RowKind::all_vanish) + 1;

double signed_uniform(std::mt19937_64& random) {
  return 2 * uniform(random) - 1;
}

/// Draws the elements of one row.
class Row {
 public:
  Row(RowKind kind, Magnitudes range, DType type, std::int64_t cols, std::mt19937_64& random)
      : kind_(kind), range_(range), normal_(smallest_normal(type)), random_(random) {
    spike_ = static_cast<std::int64_t>(uniform_below(random, static_cast<std::uint64_t>(cols)));
    const double moderate = std::exp2(12 * uniform(random) - 2);
    common_ = uniform_below(random, 2) == 0 ? moderate : log_uniform();
    common_ = std::copysign(common_, signed_uniform(random));
    offset_ = std::exp2(4 + 6 * uniform(random));
    offset_ = std::copysign(offset_, signed_uniform(random));
  }

  double element(std::int64_t col) {
    const double value = draw(col), size = std::abs(value);
    return size == 0 ? value : std::copysign(std::clamp(size, range_.least, range_.most), value);
  }

 private:
  double log_uniform() {
    const double low = std::log2(range_.least), high = std::log2(range_.most);
    return std::exp2(low + (high - low) * uniform(random_));
  }

  double draw(std::int64_t col) {
    const double x = signed_uniform(random_);
    switch (kind_) {
      case RowKind::huge:
        return x * range_.most;
      case RowKind::tiny:
        return std::copysign(1 + std::abs(x), x) * std::max(range_.least, normal_);
      case RowKind::subnormal:
        return x * normal_;
      case RowKind::equal:
        return common_;
      case RowKind::zero:
        return std::copysign(0, x);
      case RowKind::negative:
        return -std::abs(x * common_);
      case RowKind::wide:
        return std::copysign(log_uniform(), x);
      case RowKind::spike:
        return col == spike_ ? std::copysign(range_.most, x) : x;
      case RowKind::offset:
        return offset_ + x;
      case RowKind::exponents:
        return 300 * x;
      case RowKind::all_vanish:
        return -400 + 100 * x;
    }
    return x;
  }

  RowKind kind_;
  Magnitudes range_;
  double normal_;
  std::mt19937_64& random_;
  std::int64_t spike_ = 0;
  double common_ = 0, offset_ = 0;
};

/// Returns the bits of a NaN: the usual one, all bits set with either sign, which GPUs produce, or
/// the least payload. Conversions that round by adding half a unit turn some of these into
/// infinities or zeros.
std::uint32_t nan_bits(DType type, std::uint64_t number) {
  constexpr std::uint32_t of_f32[] = {0x7fc00000, 0x7fffffff, 0xffffffff, 0x7f800001};
  const std::uint32_t bits = of_f32[number % std::size(of_f32)];
  if (type == DType::f32) return bits;
  const std::uint32_t least = bits & 1;  // survives where the payload is cut
  if (type == DType::bf16) return bits >> 16 | least;
  return (bits >> 16 & 0x8000) | 0x7c00 | (bits >> 13 & 0x3ff) | least;
}

}  // namespace

Magnitudes magnitudes_of(DType type) {
  return {smallest_positive(type), largest_finite(type)};
}

Magnitudes normal_within(DType type, Magnitudes range) {
  return {std::max(range.least, smallest_normal(type)),
          std::min(range.most, magnitudes_of(type).most)};
}

void mix_in_adversarial_rows(HostTensor& tensor, Magnitudes range, std::uint64_t seed) {
  const TensorSpec& spec = tensor.spec;
  std::mt19937_64 random(seed);
  for (std::int64_t r = 0; r < spec.rows; ++r) {
    if (uniform_below(random, 2) == 0) continue;
    const auto kind = static_cast<RowKind>(uniform_below(random, row_kinds));
    Row row(kind, range, spec.dtype, spec.cols, random);
    for (std::int64_t c = 0; c < spec.cols; ++c) {
      store_element(spec.dtype, tensor.data.data(), static_cast<std::size_t>(r * spec.cols + c),
                    row.element(c));
    }
  }
}

void mix_in_special_values(HostTensor& tensor, std::uint64_t seed) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  constexpr double values[] = {std::numeric_limits<double>::quiet_NaN(), infinity, -infinity};
  const auto cols = static_cast<std::uint64_t>(tensor.spec.cols);
  std::mt19937_64 random(mix64(seed));
  for (std::int64_t row = 0; row < tensor.spec.rows; ++row) {
    if (uniform_below(random, 4) != 0) continue;
    for (std::uint64_t left = 1 + uniform_below(random, 3); left > 0; --left) {
      const auto at = static_cast<std::uint64_t>(row) * cols + uniform_below(random, cols);
      const double value = values[uniform_below(random, std::size(values))];
      const DType type = tensor.spec.dtype;
      store_element(type, tensor.data.data(), static_cast<std::size_t>(at), value);
      if (!std::isnan(value) || !kernels_convert(type)) continue;
      const std::uint32_t bits = nan_bits(type, at);
      const std::size_t size = type == DType::f32 ? 4 : 2;
      std::memcpy(tensor.data.data() + at * size, &bits, size);
    }
  }
}

void mix_in_invalid_indices(HostTensor& indices, std::int64_t count, std::uint64_t seed) {
  using Limits = std::numeric_limits<std::int32_t>;
  const std::int64_t past = std::min<std::int64_t>(count, Limits::max());
  const std::int64_t candidates[] = {-1, past, Limits::min(), Limits::max(), -past, 0, count - 1};
  std::mt19937_64 random(seed);
  for (std::size_t i = 0; i < indices.spec.elements(); ++i) {
    if (uniform_below(random, 4) != 0) continue;
    const std::int64_t chosen = candidates[uniform_below(random, std::size(candidates))];
    store_element(DType::i32, indices.data.data(), i, static_cast<double>(chosen));
  }
}

}  // namespace greta::kernels
