#include "kernels/templates/gemm/adversarial.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "kernels/model/random.hpp"
#include "kernels/model/weight_panels.hpp"
#include "kernels/reference/gemm.hpp"
#include "kernels/templates/gemm/shape.hpp"

namespace greta::kernels::gemm {
namespace {

// Fraction of C's range for the product and for each other term.
constexpr double share_of_range = 0x1p-3;

/// Rows of op(A) or columns of op(B), with k elements each.
struct Lines {
  HostTensor& tensor;
  bool along_k;  ///< whether the elements of a line are contiguous

  std::int64_t count() const { return along_k ? tensor.spec.rows : tensor.spec.cols; }
  std::int64_t length() const { return along_k ? tensor.spec.cols : tensor.spec.rows; }
  std::size_t index(std::int64_t line, std::int64_t k) const {
    return static_cast<std::size_t>(along_k ? line * length() + k : k * count() + line);
  }
};

/// The largest magnitudes of A and B whose products fit: both large, or one of them up to its
/// type's maximum. With a norm, `weight` takes A's place, as no element of a normalised row exceeds
/// the root of K times its weight.
struct Limits {
  double a = 1, b = 1, weight = 1;
};

/// Returns the largest magnitude of what is activated, or of a factor of a gated activation.
double range_of(const Shape& s) {
  const double most = share_of_range * magnitudes_of(s.out).most;
  return s.gated ? std::sqrt(most) : most;
}

Limits limits_of(const Shape& s, double least, std::mt19937_64& random) {
  const double most = magnitudes_of(s.in).most;
  const double k = static_cast<double>(s.k);
  // Sums are f32 before alpha makes them small.
  const double most_sum = share_of_range * magnitudes_of(DType::f32).most;
  const double range = range_of(s) / std::max(std::abs(double{s.alpha}), 1e-30);
  double product = std::min(range, most_sum) / k;
  // Kernels of norms multiply with rows that are not normalised yet.
  if (s.norm) product = std::min(product, 0x1p60 / k);
  const std::uint64_t larger = uniform_below(random, 3);
  const double even = std::clamp(std::sqrt(product), 16 * least, most);
  const double large = std::clamp(product / (16 * least), 16 * least, most);
  const double small = std::clamp(product / large, 16 * least, most);
  Limits limits = larger == 0   ? Limits{even, even}
                  : larger == 1 ? Limits{large, small}
                                : Limits{small, large};
  if (s.norm) {  // the sum of squares stays finite
    limits.weight = std::min(limits.a, 0x1p60);
    limits.a = std::min(most, 0x1p59 / std::sqrt(k));
  }
  return limits;
}

/// Returns a magnitude that keeps products of the smallest elements, and the rounding errors of
/// their sums, in f32's normal range.
double least_of(const Shape& s) {
  return std::max(smallest_normal(s.in), 0x1p-40);
}

/// Fills half of the lines with magnitudes between `least` and `most`. Scales the others so that
/// they stay below `most`. `signs` permits lines of a single sign.
void fill(const Lines& lines, double least, double most, bool signs, std::mt19937_64& random) {
  const DType type = lines.tensor.spec.dtype;
  const double plain = std::min(1.0, 2 * most), log_range = std::log2(most / least);
  for (std::int64_t line = 0; line < lines.count(); ++line) {
    enum { kept, huge, tiny, wide, zero, spike, equal, negative };
    const std::uint64_t kind =
        uniform_below(random, 2) == 0 ? 0 : 1 + uniform_below(random, signs ? 7 : 5);
    const auto peak = static_cast<std::int64_t>(
        uniform_below(random, static_cast<std::uint64_t>(lines.length())));
    const double common = least * std::exp2(log_range * uniform(random));
    for (std::int64_t k = 0; k < lines.length(); ++k) {
      const std::size_t at = lines.index(line, k);
      const double x = 2 * uniform(random) - 1;
      double value = plain * lines.tensor.at(at);
      if (kind == huge || (kind == spike && k == peak)) value = x * most;
      if (kind == tiny) value = 16 * x * least;
      if (kind == wide) value = std::copysign(least * std::exp2(log_range * std::abs(x)), x);
      if (kind == equal) value = common;
      if (kind == negative) value = -std::abs(x) * common;
      const double size = std::clamp(std::abs(value), least, most);
      store_element(type, lines.tensor.data.data(), at,
                    kind == zero ? 0 : std::copysign(size, value));
    }
  }
}

/// Makes an element or a whole line NaN in half of the matrices that have several lines; of lines
/// the first one as often as any other, which kernels load in place of what lies past an end. All
/// elements of that line's row or column of C are NaN then, in whatever order kernels multiply and
/// add, and no others.
void mix_in_nan(const Lines& lines, std::mt19937_64& random) {
  if (lines.count() == 1 || uniform_below(random, 2) == 0) return;
  const auto draw = [&](std::int64_t bound) {
    return static_cast<std::int64_t>(uniform_below(random, static_cast<std::uint64_t>(bound)));
  };
  const std::int64_t line = draw(2) == 0 ? 0 : draw(lines.count());
  const std::int64_t first = draw(lines.length());
  const std::int64_t end = draw(2) == 0 ? lines.length() : 0;
  const auto store = [&](std::int64_t k) {
    store_element(lines.tensor.spec.dtype, lines.tensor.data.data(), lines.index(line, k),
                  std::numeric_limits<double>::quiet_NaN());
  };
  store(first);
  for (std::int64_t k = 0; k < end; ++k) store(k);
}

/// Makes one element of a third of the lines infinite, at any place. Elements of C are infinite
/// then, or NaN, in whatever order kernels multiply and add, if the other elements are moderate:
/// sums of parts of numbers, of which some may have the other sign, must not overflow.
void mix_in_infinities(const Lines& lines, std::mt19937_64& random) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (std::int64_t line = 0; line < lines.count(); ++line) {
    if (uniform_below(random, 3) != 0) continue;
    const auto k = static_cast<std::int64_t>(
        uniform_below(random, static_cast<std::uint64_t>(lines.length())));
    store_element(lines.tensor.spec.dtype, lines.tensor.data.data(), lines.index(line, k),
                  std::copysign(infinity, uniform(random) - 0.5));
  }
}

/// Calls change() for each matrix of a batch, or for the only one.
template <typename F>
void for_each_matrix(HostTensor& tensor, std::int64_t rows, std::int64_t cols, const F& change) {
  const std::int64_t matrices = static_cast<std::int64_t>(tensor.spec.elements()) / (rows * cols);
  if (matrices == 1) return change(tensor);
  HostTensor matrix = tensor;
  matrix.spec.rows = rows;
  matrix.spec.cols = cols;
  const auto bytes = static_cast<std::ptrdiff_t>(matrix.spec.bytes());
  for (auto at = tensor.data.begin(); at != tensor.data.end(); at += bytes) {
    matrix.data.assign(at, at + bytes);
    change(matrix);
    std::copy(matrix.data.begin(), matrix.data.end(), at);
  }
}

}  // namespace

void harden_product(const Shape& shape, HostTensor& a, HostTensor& b, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const double least = least_of(shape);
  const Limits most = limits_of(shape, least, random);
  fill({a, shape.a_along_k}, least, most.a, true, random);
  fill({b, shape.b_along_k}, least, most.b, false, random);
}

void harden(const Problem& problem, std::vector<HostTensor>& inputs, std::uint64_t seed) {
  const Shape s = shape_of(problem);
  std::mt19937_64 random(seed);
  const double least = least_of(s);
  const Limits most = limits_of(s, least, random);
  // Without A and B, alpha 0 makes 0 or NaN of NaN.
  const bool special = gemm_fully_checked(problem) && s.alpha != 0;
  // Activations and norms divide infinities. Kernels may multiply parts of f32 numbers, for which
  // infinities are a case of their own.
  const bool infinite = special && s.activation == 0 && !s.norm &&
                        uniform_below(random, s.in == DType::f32 ? 2 : 4) == 0;
  const auto change = [&](const Lines& lines, double largest, bool signs) {
    if (infinite) return mix_in_infinities(lines, random);
    fill(lines, least, largest, signs, random);
    if (special) mix_in_nan(lines, random);
  };
  for_each_matrix(inputs[0], s.a_lines(), s.a_length(), [&](HostTensor& a) {
    change({a, s.a_along_k}, most.a, true);
  });
  const auto row_bytes = static_cast<std::int64_t>(bytes_of(s.in, s.b_length()));
  for_each_matrix(inputs[1], s.b_lines(), s.b_length(), [&](HostTensor& b) {
    if (s.panels) b.data = rows_of_panels(b.data, row_bytes);
    change({b, s.b_along_k}, most.b, false);
    if (s.panels) b.data = panels_of_rows(b.data, row_bytes);
  });
  if (s.norm) fill({inputs[2], true}, least, most.weight, false, random);
  for (std::size_t i = s.norm ? 3 : 2; i < inputs.size(); ++i) {
    const double factor = inputs[i].spec.name == "C" ? std::max(1.0, std::abs(double{s.beta})) : 1;
    Magnitudes range = magnitudes_of(s.out);
    range.most *= share_of_range / factor;
    if (s.gated) range.most = range_of(s);
    mix_in_adversarial_rows(inputs[i], range, mix64(seed + i));
  }
}

}  // namespace greta::kernels::gemm
