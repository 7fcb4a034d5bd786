#include "kernels/planning/number_attribute.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

namespace greta::kernels {

std::optional<float> finite_number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  float value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value == 0 ? 0 : value;
}

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::string> canonical_number(const std::string& text) {
  const auto value = finite_number(text);
  return value ? std::optional(fmt::format("{}", *value)) : std::nullopt;
}

Attribute number_attribute(std::string name, std::string help, std::string fallback,
                           std::vector<std::string> examples) {
  return {.name = std::move(name),
          .help = std::move(help),
          .fallback = std::move(fallback),
          .allowed_text = "a finite number",
          .canonical = canonical_number,
          .examples = std::move(examples)};
}

}  // namespace greta::kernels
