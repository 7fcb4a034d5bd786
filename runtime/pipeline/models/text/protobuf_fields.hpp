#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/device/layers.hpp"

namespace greta::runtime {

/// A field of a message in the wire format of Protocol Buffers.
struct ProtobufField {
  std::uint32_t number = 0;
  std::uint32_t type = 0;    ///< 0: varint, 1: of 64 bits, 2: bytes, 5: of 32 bits
  std::uint64_t value = 0;   ///< of a varint, or the bits of a number
  std::string_view bytes{};  ///< of type 2: a string, or a message

  bool flag() const { return value != 0; }
  float number32() const;  ///< of type 5
};

/// Reads the fields of a message one after the other. Throws Error, which begins with `name`, where
/// the message ends within a field, or has what no message has.
class ProtobufReader {
 public:
  ProtobufReader(std::string_view message, std::string name)
      : rest_(message), name_(std::move(name)) {}

  std::optional<ProtobufField> next();

 private:
  std::uint64_t varint();
  std::string_view take(std::uint64_t count);
  [[noreturn]] void refuse(const char* what) const;

  std::string_view rest_;
  std::string name_;
};

}  // namespace greta::runtime
