#pragma once

#include <nlohmann/json.hpp>

#include "runtime/device/layers.hpp"

namespace greta::device {

/// Reads JSON, or a binary form of it, for its objects, lists and keys alone: accepts all values.
class JsonStructure : public nlohmann::json::json_sax_t {
 public:
  bool null() final { return true; }
  bool boolean(bool) final { return true; }
  bool number_integer(number_integer_t) final { return true; }
  bool number_unsigned(number_unsigned_t) final { return true; }
  bool number_float(number_float_t, const string_t&) final { return true; }
  bool string(string_t&) final { return true; }
  bool binary(binary_t&) final { return true; }
  bool key(string_t&) override { return true; }
  bool start_array(std::size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) final {
    return false;
  }
};

}  // namespace greta::device
