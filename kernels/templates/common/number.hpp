#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "kernels/model/operation.hpp"

namespace greta::kernels {

/// The f32 number that a text says, never a negative zero; nothing where it says none or an
/// infinite one.
std::optional<float> finite_number(std::string_view text);
/// A finite f32 number as short as it can be written: the values of an attribute.
std::optional<std::string> canonical_number(const std::string& text);
/// An attribute that is any finite number.
Attribute number_attribute(std::string name, std::string help, std::string fallback,
                           std::vector<std::string> examples);

}  // namespace greta::kernels
