#include "runtime/pipeline/models/formats/gguf_metadata.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "runtime/device/result.hpp"
#include "runtime/device/text/printable.hpp"

namespace greta::runtime {
namespace {

template <typename T>
T number_at(const GgufValue& value, std::uint64_t index) {
  T number;
  std::memcpy(&number, value.data.data() + index * sizeof(T), sizeof(T));
  return number;
}

/// Returns an integer; std::nullopt for other types and numbers of 2^63 and more.
std::optional<std::int64_t> integer_at(const GgufValue& value, std::uint64_t index) {
  switch (value.type) {
    case GgufType::u8:
      return number_at<std::uint8_t>(value, index);
    case GgufType::i8:
      return number_at<std::int8_t>(value, index);
    case GgufType::u16:
      return number_at<std::uint16_t>(value, index);
    case GgufType::i16:
      return number_at<std::int16_t>(value, index);
    case GgufType::u32:
      return number_at<std::uint32_t>(value, index);
    case GgufType::i32:
      return number_at<std::int32_t>(value, index);
    case GgufType::i64:
      return number_at<std::int64_t>(value, index);
    case GgufType::u64: {
      const auto number = number_at<std::uint64_t>(value, index);
      if (number > std::uint64_t{std::numeric_limits<std::int64_t>::max()}) return std::nullopt;
      return static_cast<std::int64_t>(number);
    }
    default:
      return std::nullopt;
  }
}

std::optional<double> number_at(const GgufValue& value, std::uint64_t index) {
  if (value.type == GgufType::f32) return number_at<float>(value, index);
  if (value.type == GgufType::f64) return number_at<double>(value, index);
  if (const auto integer = integer_at(value, index)) return static_cast<double>(*integer);
  return std::nullopt;
}

}  // namespace

std::size_t gguf_size(GgufType type) {
  switch (type) {
    case GgufType::u8:
    case GgufType::i8:
    case GgufType::boolean:
      return 1;
    case GgufType::u16:
    case GgufType::i16:
      return 2;
    case GgufType::u32:
    case GgufType::i32:
    case GgufType::f32:
      return 4;
    case GgufType::u64:
    case GgufType::i64:
    case GgufType::f64:
      return 8;
    default:
      return 0;
  }
}

void GgufMetadata::refuse(std::string_view key, const std::string& what) const {
  throw Error(fmt::format("{}: {} {}", name_, one_line(key.substr(0, 100)), what));
}

const GgufValue* GgufMetadata::find(std::string_view key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : &found->second;
}

const GgufValue& GgufMetadata::value(std::string_view key, bool list) const {
  const GgufValue* const found = find(key);
  if (found == nullptr) refuse(key, "is missing");
  if (found->is_list != list) refuse(key, list ? "is not an array" : "is an array");
  return *found;
}

std::int64_t GgufMetadata::integer(std::string_view key, std::int64_t least, std::int64_t most,
                                   std::optional<std::int64_t> fallback) const {
  if (fallback && !has(key)) return *fallback;
  const auto number = integer_at(value(key, false), 0);
  if (!number || *number < least || *number > most) {
    refuse(key,
           fmt::format("is {}; allowed: {} to {}",
                       number ? fmt::format("{}", *number) : "not such a number", least, most));
  }
  return *number;
}

double GgufMetadata::number(std::string_view key, std::optional<double> fallback) const {
  if (fallback && !has(key)) return *fallback;
  const auto number = number_at(value(key, false), 0);
  if (!number || !std::isfinite(*number)) refuse(key, "is not a finite number");
  return *number;
}

bool GgufMetadata::flag(std::string_view key, bool fallback) const {
  if (!has(key)) return fallback;
  const GgufValue& found = value(key, false);
  if (found.type != GgufType::boolean || std::to_integer<int>(found.data[0]) > 1) {
    refuse(key, "is not true or false");
  }
  return std::to_integer<int>(found.data[0]) == 1;
}

std::vector<std::string_view> GgufMetadata::texts(std::string_view key) const {
  const GgufValue& found = value(key, true);
  if (found.type != GgufType::string) refuse(key, "is not an array of strings");
  std::vector<std::string_view> list;
  list.reserve(found.count);
  const std::byte* next = found.data.data();
  for (std::uint64_t i = 0; i < found.count; ++i) {
    std::uint64_t length = 0;
    std::memcpy(&length, next, sizeof(length));
    next += sizeof(length);
    list.emplace_back(reinterpret_cast<const char*>(next), length);
    next += length;
  }
  return list;
}

std::optional<std::string_view> GgufMetadata::text(std::string_view key) const {
  if (!has(key)) return std::nullopt;
  const GgufValue& found = value(key, false);
  if (found.type != GgufType::string) refuse(key, "is not a string");
  constexpr std::size_t prefix = sizeof(std::uint64_t);
  return std::string_view(reinterpret_cast<const char*>(found.data.data()) + prefix,
                          found.data.size() - prefix);
}

std::vector<double> GgufMetadata::numbers(std::string_view key) const {
  const GgufValue& found = value(key, true);
  std::vector<double> list;
  list.reserve(found.count);
  for (std::uint64_t i = 0; i < found.count; ++i) {
    const auto number = number_at(found, i);
    if (!number) refuse(key, "is not an array of numbers");
    list.push_back(*number);
  }
  return list;
}

}  // namespace greta::runtime
