#include <fmt/format.h>

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <string_view>

#include "kernels/described/described_extents.hpp"

namespace greta::kernels::described {
namespace {

using Type = DescribedScalar::Type;

/// Returns the number as an integer, where it is one of 64 bits. 2.0 is, 2.5 is not.
std::optional<std::int64_t> whole(const FormulaValue& value) {
  if (value.is_integer()) return value.integer();
  const double number = value.real();
  if (number != std::floor(number) || std::abs(number) >= 0x1p63) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

template <typename T>
bool holds(std::int64_t number) {
  return std::in_range<T>(number);
}

std::optional<Argument> argument_of(Type type, const FormulaValue& value) {
  if (!value.is_number()) return std::nullopt;
  if (type == Type::f64) return std::bit_cast<std::uint64_t>(value.real());
  if (type == Type::f32) {
    const auto number = static_cast<float>(value.real());
    return std::isfinite(number) ? std::optional<Argument>(number) : std::nullopt;
  }
  const auto number = whole(value);
  if (!number) return std::nullopt;
  const bool fits = type == Type::i32   ? holds<std::int32_t>(*number)
                    : type == Type::u32 ? holds<std::uint32_t>(*number)
                    : type == Type::u64 ? holds<std::uint64_t>(*number)
                                        : true;
  if (!fits) return std::nullopt;
  if (type == Type::i64 || type == Type::u64) return static_cast<std::uint64_t>(*number);
  return static_cast<std::uint32_t>(*number);
}

}  // namespace

Result<Argument> scalar_argument(const Extents& extents, const DescribedScalar& scalar,
                                 const Config* config) {
  const auto value = evaluate(extents, scalar.value, config);
  if (!value) return value.failure();
  if (const auto argument = argument_of(scalar.type, *value)) return *argument;
  constexpr std::array<std::string_view, 6> types{"i32", "u32", "i64", "u64", "f32", "f64"};
  return invalid_argument(
      at_place(extents, scalar.value,
               fmt::format("the scalar {} is of type {}, which has no such value: {}", scalar.name,
                           types.at(static_cast<std::size_t>(scalar.type)),
                           shown(extents, scalar.value, config))));
}

}  // namespace greta::kernels::described
