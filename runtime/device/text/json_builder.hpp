#pragma once

#include <cstddef>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::device {

/// Builds the value of JSON, or of a binary form of it, for nlohmann::json::sax_parse. Refuses what
/// the library's own parser accepts: a key that an object has twice, and nesting beyond a limit.
class JsonBuilder final : public nlohmann::json::json_sax_t {
 public:
  explicit JsonBuilder(std::size_t most_levels = std::numeric_limits<std::size_t>::max())
      : most_levels_(most_levels) {}

  /// Returns the value, which is whole only if the parser succeeded.
  nlohmann::json& value() { return value_; }
  /// Returns the key that an object has twice.
  const std::optional<std::string>& repeated_key() const { return repeated_key_; }
  /// Returns whether the parser found a number beyond those of double.
  bool number_too_large() const { return number_too_large_; }
  /// Returns the byte at which the parser failed.
  std::size_t failed_at() const { return failed_at_; }

  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(number_integer_t value) override { return put(value); }
  bool number_unsigned(number_unsigned_t value) override { return put(value); }
  bool number_float(number_float_t value, const string_t& /*text*/) override { return put(value); }
  bool string(string_t& value) override { return put(std::move(value)); }
  bool binary(binary_t& value) override { return put(std::move(value)); }
  bool start_object(std::size_t /*count*/) override { return open(nlohmann::json::object()); }
  bool start_array(std::size_t /*count*/) override { return open(nlohmann::json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    auto& members = open_.back()->get_ref<nlohmann::json::object_t&>();
    const auto [member, is_new] = members.try_emplace(name);
    member_ = &member->second;
    if (!is_new) repeated_key_ = std::move(name);
    return is_new;
  }

  bool parse_error(std::size_t byte, const std::string& /*token*/,
                   const nlohmann::json::exception& error) override {
    constexpr int out_of_range = 406;  // the library's id
    number_too_large_ = error.id == out_of_range;
    failed_at_ = byte;
    return false;
  }

 private:
  /// Returns the place of the next value.
  nlohmann::json& next() {
    if (open_.empty()) return value_;
    return open_.back()->is_array() ? open_.back()->emplace_back() : *member_;
  }
  bool put(nlohmann::json value) {
    next() = std::move(value);
    return true;
  }
  bool open(nlohmann::json empty) {
    nlohmann::json& at = next();
    at = std::move(empty);
    open_.push_back(&at);
    return open_.size() <= most_levels_;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  const std::size_t most_levels_;
  nlohmann::json value_;
  std::vector<nlohmann::json*> open_;  ///< objects and lists that have begun
  nlohmann::json* member_ = nullptr;   ///< of the innermost object, by the last key
  std::optional<std::string> repeated_key_;
  bool number_too_large_ = false;
  std::size_t failed_at_ = 0;
};

}  // namespace greta::device
