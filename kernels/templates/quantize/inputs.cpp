#include "kernels/templates/quantize/inputs.hpp"

#include <cmath>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <limits>
#include <random>

#include "kernels/model/adversarial.hpp"
#include "kernels/model/random.hpp"
#include "kernels/skeletons/norms.hpp"
#include "kernels/templates/quantize/shape.hpp"

namespace greta::kernels::quantize {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

bool is_scale(const TensorSpec& spec) {
  return spec.name == "scale";
}

/// Stores a NaN of which all bits but the sign are set, so that no part of them passes for a
/// number.
void store_nan(HostTensor& tensor, std::size_t index) {
  const std::size_t bytes = bytes_of(tensor.spec.dtype, std::size_t{1});
  std::byte* const element = tensor.data.data() + index * bytes;
  std::memset(element, 0xFF, bytes);
  element[bytes - 1] = std::byte{0x7F};
}

/// Puts NaN into a few rows, and if allowed infinities and negative zeros.
void mix_in_special_values(HostTensor& tensor, bool all, std::mt19937_64& random) {
  const auto cols = static_cast<std::uint64_t>(tensor.spec.cols);
  const double values[] = {infinity, -infinity, -0.0};
  for (std::int64_t row = 0; row < tensor.spec.rows; ++row) {
    if (uniform_below(random, 4) != 0) continue;
    const auto first = static_cast<std::size_t>(row) * tensor.spec.cols;
    for (std::uint64_t count = 1 + uniform_below(random, 3); count > 0; --count) {
      const std::size_t index = first + uniform_below(random, cols);
      const std::uint64_t kind =
          all ? uniform_below(random, 1 + std::size(values)) : std::size(values);
      if (kind == std::size(values)) {
        store_nan(tensor, index);
      } else {
        store_element(tensor.spec.dtype, tensor.data.data(), index, values[kind]);
      }
    }
  }
}

/// Rounds the elements of some rows to few significant bits, the last of them 1: with scales that
/// are powers of two, many then lie halfway between two numbers of the format.
void mix_in_ties(HostTensor& tensor, std::mt19937_64& random) {
  constexpr int most_bits = 5;  // one more than those of e4m3
  for (std::int64_t row = 0; row < tensor.spec.rows; ++row) {
    if (uniform_below(random, 4) != 0) continue;
    for (std::int64_t col = 0; col < tensor.spec.cols; ++col) {
      const auto index = static_cast<std::size_t>(row * tensor.spec.cols + col);
      int exponent = 0;
      const double part = std::frexp(tensor.at(index), &exponent);
      const int bits = 1 + static_cast<int>(uniform_below(random, most_bits));
      const double odd = 2 * std::floor(std::ldexp(std::abs(part), bits - 1)) + 1;
      store_element(tensor.spec.dtype, tensor.data.data(), index,
                    std::copysign(std::ldexp(odd, exponent - bits), part));
    }
  }
}

}  // namespace

HostTensor input(const Problem& problem, const TensorSpec& spec, std::uint64_t seed) {
  HostTensor tensor = random_tensor(spec, seed);
  if (!is_scale(spec)) return tensor;
  const double largest = traits(shape_of(problem).format).largest;
  std::mt19937_64 random(mix64(seed));
  store_element(DType::f32, tensor.data.data(), 0, (0.3 + 0.3 * uniform(random)) / largest);
  return tensor;
}

void harden(const Problem& problem, std::vector<HostTensor>& inputs, std::uint64_t seed) {
  const Shape shape = shape_of(problem);
  std::mt19937_64 random(mix64(seed));
  if (shape.norm()) rows::harden_norm(problem, inputs, seed);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    HostTensor& tensor = inputs[i];
    if (is_scale(tensor.spec)) {
      const double scales[] = {0,
                               -1,
                               0x1p-149,
                               0x1p-127,
                               0x1p-126,
                               0x1p-100,
                               0x1p-10,
                               1,
                               0x1p20,
                               0x1p126,
                               0x1p127,
                               infinity,
                               std::numeric_limits<double>::quiet_NaN()};
      // Half of the draws leave the scale in its range, half of these make it a power of two.
      const std::uint64_t draw = uniform_below(random, 2 * std::size(scales));
      const double power = std::exp2(std::round(std::log2(tensor.at(0))));
      if (draw < std::size(scales) || draw % 2 == 0) {
        store_element(DType::f32, tensor.data.data(), 0,
                      draw < std::size(scales) ? scales[draw] : power);
      }
      continue;
    }
    if (!shape.norm())
      mix_in_adversarial_rows(tensor, magnitudes_of(tensor.spec.dtype), mix64(seed + i));
    if (shape.fused == Fused::none) mix_in_ties(tensor, random);
    // What is computed from infinities may be NaN or not; of NaN it is NaN.
    const bool has_rows = tensor.spec.rows > 1 || !shape.norm();  // and not a norm's weight
    if (has_rows) mix_in_special_values(tensor, shape.fused == Fused::none, random);
  }
}

}  // namespace greta::kernels::quantize
