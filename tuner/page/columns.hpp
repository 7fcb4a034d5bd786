#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

#include "runtime/device/layers.hpp"

namespace greta::tuner {

// Numbers of a page as typed arrays: little-endian, in base64. A column is an object with one key,
// the type: {"f4": "…"} is a Float32Array, {"u1": "…"} a Uint8Array, {"u2": "…"} a Uint16Array and
// {"i4": "…"} an Int32Array.

/// Returns RFC 4648's base64 with padding.
std::string base64(std::string_view bytes);

nlohmann::json column(std::span<const float> values);
nlohmann::json column(std::span<const std::uint8_t> values);
nlohmann::json column(std::span<const std::uint16_t> values);
nlohmann::json column(std::span<const std::int32_t> values);
/// Returns a column of f4.
nlohmann::json column(std::span<const double> values);

/// Returns JSON as the content of a script element of type application/json: no text in it ends the
/// element or begins a comment, as `<`, `>`, `&` and the line separators U+2028 and U+2029 are
/// escaped. Invalid UTF-8 becomes U+FFFD.
std::string script_json(const nlohmann::json& data);

}  // namespace greta::tuner
