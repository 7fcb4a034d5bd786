#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::runtime {

/// Types of values in a GGUF file, numbered as there.
enum class GgufType : std::uint32_t {
  u8,
  i8,
  u16,
  i16,
  u32,
  i32,
  f32,
  boolean,
  string,
  array,
  u64,
  i64,
  f64
};

/// A value in a mapped GGUF file.
struct GgufValue {
  GgufType type = GgufType::u8;     ///< of the value, or of the elements of a list
  bool is_list = false;             ///< whether it is an array
  std::uint64_t count = 1;          ///< number of elements
  std::span<const std::byte> data;  ///< as in the file; strings with their lengths
};

/// The metadata of a GGUF file. It must not outlive the file's mapping. Reading functions throw
/// Error with a one-line message that names the file and the key.
class GgufMetadata {
 public:
  explicit GgufMetadata(std::string name) : name_(std::move(name)) {}

  /// Returns whether the key was new.
  bool add(std::string_view key, const GgufValue& value) {
    return values_.emplace(key, value).second;
  }
  /// The file's name, for messages.
  const std::string& name() const { return name_; }
  bool has(std::string_view key) const { return find(key) != nullptr; }

  /// Returns an integer of any type in [least, most], or `fallback` if it is missing.
  std::int64_t integer(std::string_view key, std::int64_t least, std::int64_t most,
                       std::optional<std::int64_t> fallback = std::nullopt) const;
  /// Returns a finite number of any type.
  double number(std::string_view key, std::optional<double> fallback = std::nullopt) const;
  bool flag(std::string_view key, bool fallback) const;
  /// Returns a string; std::nullopt if it is missing.
  std::optional<std::string_view> text(std::string_view key) const;
  /// Returns an array of strings, which point into the file.
  std::vector<std::string_view> texts(std::string_view key) const;
  /// Returns an array of numbers, which may be infinite or NaN.
  std::vector<double> numbers(std::string_view key) const;

  /// Throws Error: "NAME: KEY WHAT".
  [[noreturn]] void refuse(std::string_view key, const std::string& what) const;

 private:
  const GgufValue* find(std::string_view key) const;
  /// Returns a value that exists and is a list or not. Throws Error.
  const GgufValue& value(std::string_view key, bool list) const;

  std::string name_;
  std::map<std::string_view, GgufValue> values_;
};

/// Returns the size of a value in bytes, or 0 for strings and arrays.
std::size_t gguf_size(GgufType type);

}  // namespace greta::runtime
