#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/device/layers.hpp"

namespace greta::runtime {

/// Parses a file that nobody vouches for. Throws Error with one line for what is no JSON, and for
/// an object that has a key twice. `name` is the file's, for messages.
nlohmann::json parse_json(std::string_view text, const std::string& name);

/// The fields of a JSON object, checked as they are read. All throw Error with one line that names
/// the file and the field. A field that is null counts as one that isn't there.
class JsonFields {
 public:
  /// `name`: what the object is, for messages, as "config.json". The object must outlive it.
  JsonFields(const nlohmann::json& object, std::string name);

  const std::string& name() const { return name_; }
  bool has(const std::string& key) const;
  /// Any value; throws where there is none.
  const nlohmann::json& at(const std::string& key) const;
  JsonFields object(const std::string& key) const;
  /// A whole number of least … most; `fallback` where there is none.
  std::int64_t integer(const std::string& key, std::int64_t least, std::int64_t most,
                       std::optional<std::int64_t> fallback = std::nullopt) const;
  /// A finite number.
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
