#include "runtime/pipeline/models/text/protobuf_fields.hpp"

#include <fmt/format.h>

#include <bit>

#include "runtime/device/result.hpp"

namespace greta::runtime {

float ProtobufField::number32() const {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value));
}

void ProtobufReader::refuse(const char* what) const {
  throw Error(fmt::format("{}: {}", name_, what));
}

std::string_view ProtobufReader::take(std::uint64_t count) {
  if (count > rest_.size()) refuse("it ends within a field");
  const std::string_view bytes = rest_.substr(0, static_cast<std::size_t>(count));
  rest_.remove_prefix(bytes.size());
  return bytes;
}

/// Groups of seven bits, the lowest ones first.
std::uint64_t ProtobufReader::varint() {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    const auto byte = static_cast<unsigned char>(take(1)[0]);
    value |= std::uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) return value;
  }
  refuse("it has an integer of more than 64 bits");
}

std::optional<ProtobufField> ProtobufReader::next() {
  if (rest_.empty()) return std::nullopt;
  const std::uint64_t key = varint();
  ProtobufField field{static_cast<std::uint32_t>(key >> 3U), static_cast<std::uint32_t>(key & 7U)};
  if (key > 0xffffffffU || field.number == 0) refuse("it has a field without a number");
  if (field.type == 0) {
    field.value = varint();
  } else if (field.type == 2) {
    field.bytes = take(varint());
  } else if (field.type == 1 || field.type == 5) {
    const std::string_view bytes = take(field.type == 1 ? 8 : 4);
    for (std::size_t i = bytes.size(); i > 0; --i) {
      field.value = field.value << 8U | static_cast<unsigned char>(bytes[i - 1]);
    }
  } else {
    refuse("it has a field of an unknown type");
  }
  return field;
}

}  // namespace greta::runtime
