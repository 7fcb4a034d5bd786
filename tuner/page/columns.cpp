#include "tuner/page/columns.hpp"

#include <bit>
#include <vector>

namespace greta::tuner {
namespace {

static_assert(std::endian::native == std::endian::little, "columns are copied as they lie");

template <typename T>
nlohmann::json typed(const char* type, std::span<const T> values) {
  const std::string_view bytes(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  return {{type, base64(bytes)}};
}

}  // namespace

std::string base64(std::string_view bytes) {
  constexpr std::string_view digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t here = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t b = 0; b < 3; ++b)
      group = group << 8 | (b < here ? static_cast<unsigned char>(bytes[i + b]) : 0U);
    for (std::size_t d = 0; d < 4; ++d)
      text += d <= here ? digits[group >> (18 - 6 * d) & 63] : '=';
  }
  return text;
}

nlohmann::json column(std::span<const float> values) {
  return typed("f4", values);
}
nlohmann::json column(std::span<const std::uint8_t> values) {
  return typed("u1", values);
}
nlohmann::json column(std::span<const std::uint16_t> values) {
  return typed("u2", values);
}
nlohmann::json column(std::span<const std::int32_t> values) {
  return typed("i4", values);
}
nlohmann::json column(std::span<const double> values) {
  const std::vector<float> narrow(values.begin(), values.end());
  return column(std::span<const float>(narrow));
}

std::string script_json(const nlohmann::json& data) {
  const std::string text = data.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  std::string safe;
  safe.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '<') {
      safe += "\\u003c";
    } else if (c == '>') {
      safe += "\\u003e";
    } else if (c == '&') {
      safe += "\\u0026";
    } else if (text.compare(i, 2, "\xe2\x80") == 0 && i + 2 < text.size() &&
               (text[i + 2] == '\xa8' || text[i + 2] == '\xa9')) {
      safe += text[i + 2] == '\xa8' ? "\\u2028" : "\\u2029";
      i += 2;
    } else {
      safe += c;
    }
  }
  return safe;
}

}  // namespace greta::tuner
