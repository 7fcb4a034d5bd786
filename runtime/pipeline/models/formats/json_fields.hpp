#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/device/layers.hpp"

namespace greta::runtime {

/// Parses an untrusted file. Throws Error with a one-line message for invalid JSON and for
/// duplicate keys. `name` is the file name for messages.
nlohmann::json parse_json(std::string_view text, const std::string& name);

/// Reads the fields of a JSON object with checks. All functions throw Error with a one-line message
/// that names the file and the field. A field that is null counts as missing.
class JsonFields {
 public:
  /// `name` describes the object in messages, e.g. "config.json". The object must outlive this one.
  JsonFields(const nlohmann::json& object, std::string name);

  const std::string& name() const { return name_; }
  bool has(const std::string& key) const;
  /// Returns whether there is a member, which may be null.
  bool names(const std::string& key) const { return object_.contains(key); }
  /// Returns any value. Throws Error if it is missing.
  const nlohmann::json& at(const std::string& key) const;
  JsonFields object(const std::string& key) const;
  /// Returns an integer in [least, most], or `fallback` if it is missing.
  std::int64_t integer(const std::string& key, std::int64_t least, std::int64_t most,
                       std::optional<std::int64_t> fallback = std::nullopt) const;
  /// Returns a finite number.
  double number(const std::string& key, std::optional<double> fallback = std::nullopt) const;
  bool flag(const std::string& key, bool fallback) const;
  std::string text(const std::string& key,
                   const std::optional<std::string>& fallback = std::nullopt) const;
  /// Throws Error: "NAME: WHAT".
  [[noreturn]] void refuse(const std::string& what) const;

 private:
  const nlohmann::json& object_;
  std::string name_;
};

}  // namespace greta::runtime
