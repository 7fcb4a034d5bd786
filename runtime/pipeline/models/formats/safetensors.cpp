#include "runtime/pipeline/models/formats/safetensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "runtime/device/result.hpp"
#include "runtime/pipeline/models/formats/json_fields.hpp"

namespace greta::runtime {
namespace {

constexpr std::uint64_t longest_header = 100'000'000;
constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();

std::optional<DType> dtype_of(const std::string& type) {
  for (const DTypeTraits& known : dtype_table) {
    if (!type.empty() && type == known.safetensors) return known.type;
  }
  return std::nullopt;
}

/// Returns the bits per element, also for types that GRETA does not support.
std::optional<std::int64_t> bits_of_type(const std::string& type) {
  if (const auto known = dtype_of(type)) return bits_of(*known);
  static const std::map<std::string, std::int64_t> others{
      {"BOOL", 8}, {"U8", 8},   {"I8", 8},   {"F8_E4M3", 8}, {"F8_E5M2", 8}, {"F8_E8M0", 8},
      {"U16", 16}, {"I16", 16}, {"U32", 32}, {"U64", 64},    {"I64", 64},    {"F64", 64}};
  const auto found = others.find(type);
  if (found == others.end()) return std::nullopt;
  return found->second;
}

/// Returns a list of non-negative integers.
std::vector<std::int64_t> numbers(const JsonFields& fields, const char* key) {
  const nlohmann::json& list = fields.at(key);
  if (!list.is_array()) fields.refuse(fmt::format("{} is not a list", key));
  std::vector<std::int64_t> values;
  for (const nlohmann::json& value : list) {
    if (!value.is_number_unsigned() ||
        value.get<std::uint64_t>() > static_cast<std::uint64_t>(most)) {
      fields.refuse(fmt::format("{} holds an element that is not a number of at least 0", key));
    }
    values.push_back(value.get<std::int64_t>());
  }
  return values;
}

/// Reads one entry of the header. `data` contains the bytes of all tensors.
StoredTensor tensor_of(const JsonFields& fields, std::span<const std::byte> data) {
  StoredTensor tensor;
  tensor.type = fields.text("dtype");
  tensor.dtype = dtype_of(tensor.type);
  const auto bits = bits_of_type(tensor.type);
  if (!bits) fields.refuse(fmt::format("dtype '{}' isn't known", tensor.type.substr(0, 40)));
  tensor.shape = numbers(fields, "shape");
  const std::vector<std::int64_t> offsets = numbers(fields, "data_offsets");
  if (offsets.size() != 2 || offsets[0] > offsets[1] ||
      static_cast<std::uint64_t>(offsets[1]) > data.size()) {
    fields.refuse(fmt::format("data_offsets aren't two offsets of the {} bytes that the file has",
                              data.size()));
  }
  std::int64_t total = *bits;
  for (const std::int64_t extent : tensor.shape) {
    if (__builtin_mul_overflow(total, extent, &total)) fields.refuse("its shape is too large");
  }
  const std::int64_t bytes = total / 8 + (total % 8 != 0);
  if (bytes != offsets[1] - offsets[0]) {
    fields.refuse(fmt::format("its shape takes {} bytes, its data_offsets {}", bytes,
                              offsets[1] - offsets[0]));
  }
  tensor.data = data.subspan(static_cast<std::size_t>(offsets[0]), static_cast<std::size_t>(bytes));
  return tensor;
}

/// Checks that every byte belongs to exactly one tensor.
void check_cover(const std::map<std::string, StoredTensor>& tensors,
                 std::span<const std::byte> data, const std::string& name) {
  std::vector<std::pair<const StoredTensor*, const std::string*>> order;
  for (const auto& [key, tensor] : tensors) order.emplace_back(&tensor, &key);
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return std::pair(a.first->data.data(), a.first->data.size()) <
           std::pair(b.first->data.data(), b.first->data.size());
  });
  const std::byte* end = data.data();
  for (const auto& [tensor, key] : order) {
    if (tensor->data.data() != end) {
      throw Error(fmt::format("{}: tensor '{}' {} the one before it", name, *key,
                              tensor->data.data() < end ? "overlaps" : "leaves a gap after"));
    }
    end += tensor->data.size();
  }
  if (end != data.data() + data.size()) {
    throw Error(
        fmt::format("{}: {} bytes after the last tensor", name, data.data() + data.size() - end));
  }
}

}  // namespace

SafeTensors SafeTensors::open(const std::filesystem::path& path) {
  SafeTensors result;
  result.file_ = MappedFile::open(path);
  const std::string name = path.string();
  const std::span<const std::byte> bytes = result.file_->bytes();
  constexpr std::size_t prefix = 8;
  if (bytes.size() < prefix)
    throw Error(fmt::format("{}: is not a safetensors file: too short", name));
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < prefix; ++i) {
    length |= static_cast<std::uint64_t>(bytes[i]) << (8 * i);
  }
  if (length > longest_header || length > bytes.size() - prefix) {
    throw Error(fmt::format("{}: its header has {} bytes, of {} in the file (and {} at most)", name,
                            length, bytes.size() - prefix, longest_header));
  }
  const nlohmann::json header = parse_json(result.file_->text().substr(prefix, length), name);
  const JsonFields fields(header, name);
  const auto data = bytes.subspan(prefix + length);
  for (const auto& [key, entry] : header.items()) {
    if (key == "__metadata__") continue;
    const JsonFields one(entry, fmt::format("{}: tensor '{}'", name, key.substr(0, 100)));
    result.tensors_.emplace(key, tensor_of(one, data));
  }
  check_cover(result.tensors_, data, name);
  return result;
}

}  // namespace greta::runtime
