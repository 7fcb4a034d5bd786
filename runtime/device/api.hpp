#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "runtime/device/layers.hpp"

namespace greta::device {

/// An API that gives access to devices. Its text is stored in databases and begins a device's id.
enum class Api : std::uint8_t { vulkan, hip, hip_host };

/// A language of kernels.
enum class Language : std::uint8_t { glsl, hip };

/// Returns "vulkan", "hip" or "hip-host".
std::string_view to_string(Api api);
std::optional<Api> api_from_string(std::string_view text);

/// Returns "glsl" or "hip".
std::string_view to_string(Language language);
std::optional<Language> language_from_string(std::string_view text);

}  // namespace greta::device
