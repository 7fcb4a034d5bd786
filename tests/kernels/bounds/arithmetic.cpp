#include "tests/kernels/bounds/arithmetic.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

#include "kernels/model/random.hpp"
#include "tests/layers.hpp"

namespace greta::test::bounds {

const std::vector<Arithmetic>& arithmetics() {
  using Sums = Arithmetic::Sums;
  static const std::vector<Arithmetic> list{
      {.name = "straight", .sums = Sums::straight},
      {.name = "fused", .sums = Sums::lanes, .fused = true},
      {.name = "least precise", .sums = Sums::tree, .least_precise = true}};
  return list;
}

Float Float::dropped(float value) {
  if (!std::isfinite(value)) return value;
  const auto raw = std::bit_cast<std::uint32_t>(value);
  const int bits = current_.dropped;
  const std::uint32_t half = std::uint32_t{1} << (bits - 1), odd = raw >> bits & 1;
  return std::bit_cast<float>((raw + half - 1 + odd) & ~(2 * half - 1));
}

Float Float::off(double exact, double ulps) {
  const auto nearest = static_cast<float>(exact);
  if (!current_.least_precise || !std::isnormal(nearest)) return rounded(nearest);
  // A number from -1 to 1 that depends on the value.
  const auto draw = static_cast<double>(mix64(std::bit_cast<std::uint64_t>(exact)) >> 11) * 0x1p-52;
  const double ulp = std::ldexp(1, std::ilogb(exact) - 23);
  return rounded(static_cast<float>(exact + (draw - 1) * ulps * ulp));
}

Float operator/(Float a, Float b) {
  return Float::off(static_cast<double>(a.value_) / b.value_, 2.5);
}

Float exp(Float x) {
  if (Float::current_.fused) {
    constexpr float log2_e = 1.44269504F;
    return Float::rounded(std::exp2((x * log2_e).value()));
  }
  return Float::off(std::exp(static_cast<double>(x.value_)), 3 + 2 * std::abs(x.value_));
}

Float erfc(Float x) {
  return Float::rounded(std::erfc(x.value_));
}

Float inverse_root(Float x) {
  return Float::off(1 / std::sqrt(static_cast<double>(x.value_)), 2);
}

double coarsened(DType type, double value, int bits) {
  if (bits == 0 || value == 0 || !std::isfinite(value)) return value;
  const double least = std::max(std::abs(value), smallest_normal(type));
  const double step = std::ldexp(unit_roundoff(type), std::ilogb(least) + 1 + bits);
  return std::nearbyint(value / step) * step;
}

Float as_number_of(DType type, Float x) {
  std::array<std::byte, 4> raw{};
  store_element(type, raw.data(), 0, coarsened(type, x.value(), arithmetic().dropped));
  return static_cast<float>(load_element(type, raw.data(), 0));
}

}  // namespace greta::test::bounds
