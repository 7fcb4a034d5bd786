#include "tuner/compile/element.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "runtime/device/dtype.hpp"
#include "runtime/device/result.hpp"

namespace greta::tuner {
namespace {

using Load = double (*)(const std::byte* data, std::size_t index);

template <typename T>
double load(const std::byte* data, std::size_t index) {
  T value;
  std::memcpy(&value, data + index * sizeof(T), sizeof(T));
  return static_cast<double>(value);
}

/// An element type of cases that tensors don't have.
struct OtherType {
  std::string_view name;
  std::size_t bytes;
  Load load;
};

constexpr std::array other_types{
    OtherType{"f64", 8, load<double>},
    OtherType{"u32", 4, load<std::uint32_t>},
    OtherType{"i8", 1, load<std::int8_t>},
    OtherType{"u8", 1, load<std::uint8_t>},
};

const OtherType* find_other(std::string_view name) {
  const auto* const found = std::find_if(other_types.begin(), other_types.end(),
                                         [&](const auto& type) { return type.name == name; });
  return found == other_types.end() ? nullptr : found;
}

}  // namespace

std::size_t element_bytes(std::string_view dtype) {
  if (const auto type = dtype_from_string(dtype)) return bytes_of(*type, std::size_t{1});
  const OtherType* const other = find_other(dtype);
  return other != nullptr ? other->bytes : 0;
}

double load_element(std::string_view dtype, const std::byte* data, std::size_t index) {
  if (const auto type = dtype_from_string(dtype)) return load_element(*type, data, index);
  const OtherType* const other = find_other(dtype);
  if (other == nullptr) throw Error("no element type " + std::string(dtype));
  return other->load(data, index);
}

}  // namespace greta::tuner
