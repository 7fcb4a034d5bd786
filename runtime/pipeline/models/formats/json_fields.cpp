#include "runtime/pipeline/models/formats/json_fields.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <utility>

#include "runtime/device/result.hpp"
#include "runtime/device/text/json_builder.hpp"
#include "runtime/device/text/printable.hpp"

namespace greta::runtime {
namespace {

/// Returns a value for messages, truncated to 60 characters.
std::string shown(const nlohmann::json& value) {
  if (value.is_structured()) return value.is_array() ? "a list" : "an object";
  std::string text = value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

/// Returns an integer of 63 bits, which may be written as 4.0.
std::optional<std::int64_t> integer_of(const nlohmann::json& value) {
  if (value.is_number_float()) {
    constexpr double exact = 9007199254740992;  // 2^53
    const auto number = value.get<double>();
    if (std::trunc(number) != number || std::abs(number) > exact) return std::nullopt;
    return static_cast<std::int64_t>(number);
  }
  constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > most) return std::nullopt;
  if (!value.is_number_integer()) return std::nullopt;
  return value.get<std::int64_t>();
}

}  // namespace

nlohmann::json parse_json(std::string_view text, const std::string& name) {
  device::JsonBuilder builder;
  if (nlohmann::json::sax_parse(text, &builder)) return std::move(builder.value());
  if (builder.repeated_key()) {
    throw Error(fmt::format("{}: the key {} occurs twice", name, shown(*builder.repeated_key())));
  }
  if (builder.number_too_large()) {
    throw Error(fmt::format("{}: isn't JSON (a number is too large)", name));
  }
  throw Error(fmt::format("{}: isn't JSON (at byte {})", name, builder.failed_at()));
}

JsonFields::JsonFields(const nlohmann::json& object, std::string name)
    : object_(object), name_(std::move(name)) {
  if (!object_.is_object()) refuse("is not a JSON object");
}

void JsonFields::refuse(const std::string& what) const {
  throw Error(one_line(fmt::format("{}: {}", name_, what)));
}

bool JsonFields::has(const std::string& key) const {
  const auto found = object_.find(key);
  return found != object_.end() && !found->is_null();
}

const nlohmann::json& JsonFields::at(const std::string& key) const {
  if (!has(key)) refuse(fmt::format("has no {}", key));
  return object_.at(key);
}

JsonFields JsonFields::object(const std::string& key) const {
  return {at(key), fmt::format("{}: {}", name_, key)};
}

std::int64_t JsonFields::integer(const std::string& key, std::int64_t least, std::int64_t most,
                                 std::optional<std::int64_t> fallback) const {
  if (fallback && !has(key)) return *fallback;
  const nlohmann::json& value = at(key);
  const auto number = integer_of(value);
  if (!number || *number < least || *number > most) {
    refuse(fmt::format("{} is {}; allowed: {} to {}", key, shown(value), least, most));
  }
  return *number;
}

double JsonFields::number(const std::string& key, std::optional<double> fallback) const {
  if (fallback && !has(key)) return *fallback;
  const nlohmann::json& value = at(key);
  if (!value.is_number() || !std::isfinite(value.get<double>())) {
    refuse(fmt::format("{} is {}; allowed: a number", key, shown(value)));
  }
  return value.get<double>();
}

bool JsonFields::flag(const std::string& key, bool fallback) const {
  if (!has(key)) return fallback;
  const nlohmann::json& value = at(key);
  if (!value.is_boolean()) refuse(fmt::format("{} is {}; allowed: true, false", key, shown(value)));
  return value.get<bool>();
}

std::string JsonFields::text(const std::string& key,
                             const std::optional<std::string>& fallback) const {
  if (fallback && !has(key)) return *fallback;
  const nlohmann::json& value = at(key);
  if (!value.is_string()) refuse(fmt::format("{} is {}; allowed: a text", key, shown(value)));
  return value.get<std::string>();
}

}  // namespace greta::runtime
