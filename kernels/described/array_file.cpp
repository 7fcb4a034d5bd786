#include "kernels/described/array_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace greta::kernels::described {
namespace {

/// What the header of a .npy file says.
struct Header {
  std::string_view type;  ///< <f4
  bool columns_first = false;
  std::vector<std::int64_t> shape;
  std::string_view elements;
};

/// Returns what follows a key of the header, which is a dictionary of Python.
std::optional<std::string_view> value_of_key(std::string_view header, std::string_view key) {
  const std::size_t found = header.find(fmt::format("'{}':", key));
  if (found == std::string_view::npos) return std::nullopt;
  header.remove_prefix(found + key.size() + 3);
  header.remove_prefix(std::min(header.find_first_not_of(' '), header.size()));
  return header;
}

std::optional<std::vector<std::int64_t>> read_shape(std::string_view text) {
  std::vector<std::int64_t> shape;
  const std::size_t end = text.find(')');
  if (!text.starts_with('(') || end == std::string_view::npos) return std::nullopt;
  text = text.substr(1, end - 1);
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(" ,"), text.size()));
    if (text.empty()) return shape;
    std::int64_t extent = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), extent);
    if (error != std::errc() || extent < 0) return std::nullopt;
    shape.push_back(extent);
    text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
  }
}

/// Reads the header of a file that begins like a .npy file; nothing if it is not one.
std::optional<Header> read_header(std::string_view file) {
  constexpr std::size_t short_header = 10;  // magic, version, and two bytes of the header's length
  if (file.size() < short_header + 2) return std::nullopt;
  const auto byte = [&](std::size_t i) {
    return static_cast<std::size_t>(static_cast<unsigned char>(file[i]));
  };
  const bool wide = byte(6) > 1;
  const std::size_t length =
      byte(8) + (byte(9) << 8) + (wide ? (byte(10) << 16) + (byte(11) << 24) : 0);
  file.remove_prefix(short_header + (wide ? 2 : 0));
  if (length > file.size()) return std::nullopt;
  const std::string_view text = file.substr(0, length);
  const auto type = value_of_key(text, "descr"), order = value_of_key(text, "fortran_order"),
             extents = value_of_key(text, "shape");
  if (!type || !order || !extents || !type->starts_with('\'')) return std::nullopt;
  auto shape = read_shape(*extents);
  const std::size_t end = type->find('\'', 1);
  if (!shape || end == std::string_view::npos) return std::nullopt;
  return Header{type->substr(1, end - 1), order->starts_with("True"), *std::move(shape),
                file.substr(length)};
}

/// The words of numpy for a type, in little-endian order. It has none for bf16, whose elements are
/// stored as two bytes of any kind.
std::vector<std::string_view> numpy_types(DType type) {
  if (type == DType::bf16) return {"<V2", "|V2", "<u2", "<i2"};
  if (type == DType::u8) return {"|u1", "|b1"};
  if (type == DType::i8) return {"|i1"};
  if (type == DType::i32) return {"<i4"};
  if (type == DType::i64) return {"<i8"};
  if (type == DType::u32) return {"<u4"};
  if (type == DType::f16) return {"<f2"};
  return {type == DType::f64 ? "<f8" : "<f4"};
}

std::vector<std::int64_t> without_ones(std::vector<std::int64_t> shape) {
  std::erase(shape, 1);
  return shape;
}

}  // namespace

Result<std::string_view> elements_of(const std::string& name, std::string_view file,
                                     const TensorSpec& spec,
                                     const std::vector<std::int64_t>& shape) {
  const auto fail = [&](const std::string& what) {
    return invalid_argument(fmt::format("the file {} {}", name, what));
  };
  if (file.starts_with("\x93NUMPY")) {
    const auto header = read_header(file);
    if (!header) return fail("begins like a .npy file, and its header can't be read");
    const auto types = numpy_types(spec.dtype);
    if (std::find(types.begin(), types.end(), header->type) == types.end()) {
      return fail(fmt::format("has elements {}, and the operand {} is {}, {} in a .npy file",
                              header->type, spec.name, to_string(spec.dtype), types.front()));
    }
    const auto extents = without_ones(header->shape);
    if (header->columns_first && extents.size() > 1) {
      return fail("has its elements in Fortran's order, not in C's");
    }
    const auto wanted = without_ones(shape);
    if (shape.size() > 1 && extents != wanted) {
      return fail(fmt::format("has the shape ({}), and the operand {} has ({})",
                              fmt::join(header->shape, ", "), spec.name, fmt::join(shape, ", ")));
    }
    file = header->elements;
  }
  if (file.size() != spec.bytes()) {
    return fail(fmt::format("has {} bytes of elements, and the operand {} {}", file.size(),
                            spec.name, spec.bytes()));
  }
  return file;
}

}  // namespace greta::kernels::described
