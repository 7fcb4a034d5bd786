#include "tuner/compile/element.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "kernels/model/dtype.hpp"
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

template <DType type>
double load_tensor_element(const std::byte* data, std::size_t index) {
  return load_element(type, data, index);
}

struct ElementType {
  std::string_view name;
  std::size_t bytes;
  Load load;
};

constexpr std::array element_types{
    ElementType{"f32", 4, load_tensor_element<DType::f32>},
    ElementType{"f16", 2, load_tensor_element<DType::f16>},
    ElementType{"bf16", 2, load_tensor_element<DType::bf16>},
    ElementType{"f64", 8, load<double>},
    ElementType{"i32", 4, load<std::int32_t>},
    ElementType{"u32", 4, load<std::uint32_t>},
    ElementType{"i8", 1, load<std::int8_t>},
    ElementType{"u8", 1, load<std::uint8_t>},
};

const ElementType* find(std::string_view dtype) {
  const auto* const found = std::find_if(element_types.begin(), element_types.end(),
                                         [&](const auto& type) { return type.name == dtype; });
  return found == element_types.end() ? nullptr : found;
}

}  // namespace

std::size_t element_bytes(std::string_view dtype) {
  const ElementType* const type = find(dtype);
  return type != nullptr ? type->bytes : 0;
}

double load_element(std::string_view dtype, const std::byte* data, std::size_t index) {
  const ElementType* const type = find(dtype);
  if (type == nullptr) throw Error("no element type " + std::string(dtype));
  return type->load(data, index);
}

}  // namespace greta::tuner
