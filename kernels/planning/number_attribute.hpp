#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "kernels/model/operation.hpp"

namespace greta::kernels {

/// Parses a finite f32 number; negative zero becomes zero. Returns std::nullopt for other text.
std::optional<float> finite_number(std::string_view text);
/// Returns the whole number that the text is.
std::optional<std::int64_t> whole_number(std::string_view text);
/// Returns the shortest text of a finite f32 number, as used for attribute values.
std::optional<std::string> canonical_number(const std::string& text);
/// Returns an attribute whose values are finite numbers.
Attribute number_attribute(std::string name, std::string help, std::string fallback,
                           std::vector<std::string> examples);

}  // namespace greta::kernels
