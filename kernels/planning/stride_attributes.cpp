#include "kernels/planning/stride_attributes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <numeric>
#include <utility>

#include "kernels/planning/device_limits.hpp"

namespace greta::kernels {
namespace {

constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();

std::optional<std::string> canonical_stride(const std::string& text) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || value < 1 || value > most) return std::nullopt;
  return std::to_string(value);
}

}  // namespace

Strides strides_of(const Problem& problem) {
  Strides list;
  for (const auto& attribute : problem.attributes) {
    const std::string& name = attribute.first;
    if (name.ends_with("_stride")) list.emplace_back(name, problem.stride(name, 0));
  }
  return list;
}

Attribute stride_attribute(std::string name, std::string help, std::string fallback,
                           std::function<std::int64_t(const Problem&)> packed) {
  const std::string allowed = fmt::format("a whole number from {} to {}", fallback, most);
  return {.name = std::move(name),
          .help = std::move(help),
          .fallback = std::move(fallback),
          .allowed_text = allowed,
          .canonical = canonical_stride,
          .packed = std::move(packed)};
}

Attribute x_stride_attribute(std::string help) {
  return stride_attribute("x_stride", std::move(help), "cols",
                          [](const Problem& problem) { return problem.dim("cols"); });
}

Result<void> check_pairs(const Problem& problem) {
  const std::int64_t dim = problem.dim("dim");
  if (dim % 2 != 0) return bad_field("dim", std::to_string(dim), "must be even, for pairs");
  if (problem.attribute("style", "interleaved") != "interleaved") return {};
  for (const auto& [name, stride] : strides_of(problem)) {
    if (stride % 2 != 0) {
      return bad_field(name, std::to_string(stride), "must be even, for pairs of neighbours");
    }
  }
  return {};
}

std::vector<Constraint> stride_constraints(const Strides& strides) {
  std::vector<Constraint> constraints;
  for (const auto& [name, stride] : strides) {
    constraints.push_back(
        {name, fmt::format("VEC must divide {}, {}", name, stride), stride % p["VEC"] == 0});
  }
  return constraints;
}

std::int64_t common_step(const Strides& strides, std::int64_t extent) {
  for (const auto& named : strides) extent = std::gcd(extent, named.second);
  return extent;
}

int widest_of(const Strides& strides, DType type, std::int64_t cols) {
  const std::int64_t step = common_step(strides, cols);
  return widest_vector(type, step, step);
}

Defines::value_type stride_define(const Strides& strides, std::string_view name,
                                  std::int64_t packed) {
  std::int64_t said = 0;
  for (const auto& [known, stride] : strides) {
    if (known == name && stride != packed) said = stride;
  }
  return {define_name(name), std::to_string(said)};
}

}  // namespace greta::kernels
