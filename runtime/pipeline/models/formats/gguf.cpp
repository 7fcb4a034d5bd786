#include "runtime/pipeline/models/formats/gguf.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "runtime/device/result.hpp"
#include "runtime/device/text/printable.hpp"
#include "runtime/pipeline/models/formats/llama_files.hpp"

namespace greta::runtime {
namespace {

constexpr std::string_view magic = "GGUF";
constexpr std::int64_t most_entries = 1 << 17;  ///< of metadata, and of tensors
constexpr std::uint64_t longest_key = 65535;
constexpr std::uint64_t longest_tensor_name = 255;
constexpr std::uint32_t most_extents = 4;
constexpr std::int64_t most_parts = 1024;  ///< of a split model

/// A type of tensors. Those that GRETA doesn't compute with have sizes, too, so that files in which
/// nothing uses them can be read.
struct TensorType {
  std::uint32_t number;
  std::string_view name;
  std::uint64_t elements, bytes;  ///< of a block
  std::optional<DType> dtype{};
  std::optional<BlockFormat> blocks{};
};

constexpr TensorType plain(std::uint32_t number, std::string_view name, DType type) {
  return {number, name, 1, bytes_of(type, std::uint64_t{1}), type, std::nullopt};
}
constexpr TensorType quantised(std::uint32_t number, std::string_view name, BlockFormat format) {
  const BlockFormatTraits& block = block_traits(format);
  return {number, name, block.elements, block.bytes, std::nullopt, format};
}
constexpr TensorType tensor_types[] = {
    plain(0, "F32", DType::f32),
    plain(1, "F16", DType::f16),
    plain(30, "BF16", DType::bf16),
    quantised(2, "Q4_0", BlockFormat::q4_0),
    quantised(8, "Q8_0", BlockFormat::q8_0),
    quantised(12, "Q4_K", BlockFormat::q4_k),
    quantised(14, "Q6_K", BlockFormat::q6_k),
    quantised(6, "Q5_0", BlockFormat::q5_0),
    quantised(20, "IQ4_NL", BlockFormat::iq4_nl),
    quantised(11, "Q3_K", BlockFormat::q3_k),
    quantised(3, "Q4_1", BlockFormat::q4_1),
    quantised(7, "Q5_1", BlockFormat::q5_1),
    quantised(13, "Q5_K", BlockFormat::q5_k),
    quantised(10, "Q2_K", BlockFormat::q2_k),
    quantised(23, "IQ4_XS", BlockFormat::iq4_xs),
    quantised(39, "MXFP4", BlockFormat::mxfp4),
    quantised(34, "TQ1_0", BlockFormat::tq1_0),
    quantised(35, "TQ2_0", BlockFormat::tq2_0),
    {16, "IQ2_XXS", 256, 66},
    {17, "IQ2_XS", 256, 74},
    {22, "IQ2_S", 256, 82},
    {18, "IQ3_XXS", 256, 98},
    {21, "IQ3_S", 256, 110},
    {19, "IQ1_S", 256, 50},
    {29, "IQ1_M", 256, 56},
    {40, "NVFP4", 64, 36},
    {9, "Q8_1", 32, 36},
    {15, "Q8_K", 256, 292},
    {24, "I8", 1, 1},
    {25, "I16", 1, 2},
    {26, "I32", 1, 4},
    {27, "I64", 1, 8},
    {28, "F64", 1, 8},
};

bool usable(const TensorType& type) {
  return type.blocks || (type.dtype && kernels_convert(*type.dtype));
}

/// Reads numbers and strings of a file that may end anywhere.
class GgufReader {
 public:
  GgufReader(std::span<const std::byte> bytes, const std::string& name)
      : bytes_(bytes), name_(name) {}

  template <typename T>
  T read() {
    const auto from = take(sizeof(T));
    T value;
    std::memcpy(&value, from.data(), sizeof(T));
    return value;
  }
  std::string_view text(std::uint64_t longest = std::numeric_limits<std::uint64_t>::max()) {
    const auto length = read<std::uint64_t>();
    if (length > longest) refuse(fmt::format("a name has {} bytes; allowed: {}", length, longest));
    const auto from = take(length);
    return {reinterpret_cast<const char*>(from.data()), from.size()};
  }
  std::span<const std::byte> take(std::uint64_t count) {
    if (count > left()) {
      refuse(fmt::format("it ends at byte {}, where {} more are needed at byte {}", bytes_.size(),
                         count, at_));
    }
    const auto from = bytes_.subspan(at_, count);
    at_ += count;
    return from;
  }
  /// Reads a number of entries that have at least `bytes` bytes each.
  std::uint64_t count(std::uint64_t bytes, std::uint64_t most, const char* of) {
    const auto number = read<std::uint64_t>();
    counted(number, bytes, most, of);
    return number;
  }
  void counted(std::uint64_t number, std::uint64_t bytes, std::uint64_t most,
               const char* of) const {
    if (number > most || number > left() / bytes) {
      refuse(fmt::format("it has {} {}, for which there are {} bytes (and at most {})", number, of,
                         left(), most));
    }
  }
  /// Reads a name of printable ASCII, which is safe in messages.
  std::string_view name(std::uint64_t longest) {
    const std::string_view name = text(longest);
    const bool printable =
        std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c <= '~'; });
    if (name.empty() || !printable) {
      refuse(fmt::format("the name before byte {} is empty or not printable", at_));
    }
    return name;
  }
  std::uint64_t left() const { return bytes_.size() - at_; }
  std::uint64_t at() const { return at_; }
  std::span<const std::byte> since(std::uint64_t begin) const {
    return bytes_.subspan(begin, at_ - begin);
  }
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(fmt::format("{}: is not a GGUF file that can be read: {}", name_, what));
  }

 private:
  std::span<const std::byte> bytes_;
  std::uint64_t at_ = 0;
  const std::string& name_;
};

GgufType read_type(GgufReader& reader) {
  const auto number = reader.read<std::uint32_t>();
  if (number > static_cast<std::uint32_t>(GgufType::f64)) {
    reader.refuse(fmt::format("type {} of a value isn't known", number));
  }
  return static_cast<GgufType>(number);
}

GgufValue read_value(GgufReader& reader, std::string_view key) {
  GgufValue value;
  value.type = read_type(reader);
  value.is_list = value.type == GgufType::array;
  if (value.is_list) {
    value.type = read_type(reader);
    if (value.type == GgufType::array) {
      reader.refuse(fmt::format("{} is an array of arrays", key.substr(0, 100)));
    }
    value.count = reader.read<std::uint64_t>();
  }
  const std::size_t size = gguf_size(value.type);
  // A string has 8 bytes at least, those of its length.
  reader.counted(value.count, size == 0 ? 8 : size, std::numeric_limits<std::uint64_t>::max(),
                 "elements of an array");
  const std::uint64_t begin = reader.at();
  if (size > 0) reader.take(value.count * size);
  for (std::uint64_t i = 0; size == 0 && i < value.count; ++i) reader.text();
  value.data = reader.since(begin);
  return value;
}

void read_metadata(GgufReader& reader, std::uint64_t count, GgufMetadata& metadata) {
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::string_view key = reader.name(longest_key);
    if (!metadata.add(key, read_value(reader, key))) {
      reader.refuse(fmt::format("key {} occurs twice", key.substr(0, 100)));
    }
  }
}

struct TensorEntry {
  std::string name;
  StoredTensor tensor;
  std::uint64_t bytes = 0, offset = 0;
};

TensorEntry read_entry(GgufReader& reader) {
  TensorEntry entry;
  entry.name = reader.name(longest_tensor_name);
  const auto refuse = [&](const std::string& what) {
    reader.refuse(fmt::format("tensor '{}' {}", entry.name, what));
  };
  const auto extents = reader.read<std::uint32_t>();
  if (extents > most_extents) {
    refuse(fmt::format("has {} extents; allowed: {}", extents, most_extents));
  }
  std::uint64_t elements = 1;
  for (std::uint32_t i = 0; i < extents; ++i) {
    const auto extent = reader.read<std::uint64_t>();
    constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max();
    if (extent > most || __builtin_mul_overflow(elements, extent, &elements) || elements > most) {
      refuse("has a shape that is too large");
    }
    // The file has the innermost extent first.
    entry.tensor.shape.insert(entry.tensor.shape.begin(), static_cast<std::int64_t>(extent));
  }
  const auto number = reader.read<std::uint32_t>();
  entry.offset = reader.read<std::uint64_t>();
  const auto* const type =
      std::find_if(std::begin(tensor_types), std::end(tensor_types),
                   [&](const TensorType& known) { return known.number == number; });
  if (type == std::end(tensor_types))
    refuse(fmt::format("is of type {}, which isn't known", number));
  entry.tensor.type = type->name;
  entry.tensor.dtype = type->dtype;
  entry.tensor.blocks = type->blocks;
  const std::uint64_t row =
      extents == 0 ? 1 : static_cast<std::uint64_t>(entry.tensor.shape.back());
  if (row % type->elements != 0) {
    refuse(fmt::format("has rows of {}, which are no whole blocks of {}", row, type->elements));
  }
  if (__builtin_mul_overflow(elements / type->elements, type->bytes, &entry.bytes)) {
    refuse("has a shape that is too large");
  }
  return entry;
}

/// Gives tensors their bytes of `data`.
void place(std::vector<TensorEntry>& entries, std::span<const std::byte> data,
           std::uint64_t alignment, const GgufReader& reader) {
  std::sort(entries.begin(), entries.end(), [](const TensorEntry& a, const TensorEntry& b) {
    return std::pair(a.offset, a.bytes) < std::pair(b.offset, b.bytes);
  });
  std::uint64_t end = 0;
  for (TensorEntry& entry : entries) {
    const auto refuse = [&](const std::string& what) {
      reader.refuse(fmt::format("tensor '{}' {}", entry.name, what));
    };
    if (entry.offset % alignment != 0) {
      refuse(fmt::format("begins at {}, which is not aligned to {}", entry.offset, alignment));
    }
    if (entry.offset > data.size() || entry.bytes > data.size() - entry.offset) {
      refuse(fmt::format("has {} bytes from {} on, of {} that the file has", entry.bytes,
                         entry.offset, data.size()));
    }
    if (entry.offset < end) refuse("overlaps the one before it");
    end = entry.offset + entry.bytes;
    entry.tensor.data = data.subspan(entry.offset, entry.bytes);
  }
}

/// Which part of a model a file is.
struct Split {
  explicit Split(const GgufMetadata& metadata)
      : number(metadata.integer("split.no", 0, most_parts - 1, 0)),
        count(metadata.integer("split.count", 0, most_parts, 1)) {}

  /// Returns what the name of a part ends with.
  std::string end_of(std::int64_t part) const {
    return fmt::format("-{:05}-of-{:05}.gguf", part + 1, count);
  }
  std::int64_t number, count;
};

}  // namespace

bool is_gguf(const std::filesystem::path& path) {
  return MappedFile::open(path)->text().starts_with(magic);
}

std::string gguf_types_text() {
  std::vector<std::string_view> names;
  for (const TensorType& type : tensor_types) {
    if (usable(type)) names.push_back(type.name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

GgufFile GgufFile::open_part(const std::filesystem::path& path) {
  GgufFile result(path);
  result.files_.push_back(MappedFile::open(path));
  const MappedFile& file = *result.files_.front();
  const auto bytes = file.bytes();
  const std::string& name = result.metadata_.name();
  GgufReader reader(bytes, name);
  if (!file.text().starts_with(magic)) reader.refuse("it doesn't begin with GGUF");
  reader.take(magic.size());
  const auto version = reader.read<std::uint32_t>();
  if (version != 2 && version != 3) {
    const bool swapped = version == 2U << 24 || version == 3U << 24;
    reader.refuse(swapped ? std::string("it is big-endian")
                          : fmt::format("its version is {}; allowed: 2, 3", version));
  }
  constexpr std::uint64_t least_tensor = 24, least_value = 13;  // bytes
  const std::uint64_t tensors = reader.count(least_tensor, most_entries, "tensors");
  const std::uint64_t values = reader.count(least_value, most_entries, "values of metadata");
  read_metadata(reader, values, result.metadata_);
  constexpr std::int64_t largest_alignment = 1 << 30;
  const auto alignment = static_cast<std::uint64_t>(
      result.metadata_.integer("general.alignment", 8, largest_alignment, 32));
  if (alignment % 8 != 0) {
    result.metadata_.refuse("general.alignment",
                            fmt::format("is {}; allowed: multiples of 8", alignment));
  }
  std::vector<TensorEntry> entries;
  entries.reserve(std::min<std::uint64_t>(tensors, reader.left() / least_tensor));
  for (std::uint64_t i = 0; i < tensors; ++i) entries.push_back(read_entry(reader));
  const std::uint64_t begin = (reader.at() + alignment - 1) / alignment * alignment;
  const auto data = begin < bytes.size() ? bytes.subspan(begin) : std::span<const std::byte>();
  place(entries, data, alignment, reader);
  for (TensorEntry& entry : entries) {
    if (!result.tensors_.emplace(entry.name, std::move(entry.tensor)).second) {
      reader.refuse(fmt::format("tensor '{}' occurs twice", entry.name));
    }
  }
  return result;
}

void GgufFile::add_part(const std::filesystem::path& path, std::int64_t number,
                        std::int64_t count) {
  std::error_code none;
  if (!std::filesystem::exists(path, none)) {
    throw Error(fmt::format("{}: is missing, part {} of a model of {} files", path.string(),
                            number + 1, count));
  }
  if (!std::filesystem::is_regular_file(path, none)) {
    throw Error(fmt::format("{}: is not a file, as part {} of a model of {} must be", path.string(),
                            number + 1, count));
  }
  GgufFile part = open_part(path);
  const Split split(part.metadata_);
  if (split.number != number || split.count != count) {
    part.metadata_.refuse("split.no", fmt::format("is {} of {}; by its name it must be {} of {}",
                                                  split.number, split.count, number, count));
  }
  for (auto& [name, tensor] : part.tensors_) {
    if (tensors_.emplace(name, std::move(tensor)).second) continue;
    throw Error(fmt::format("{}: tensor '{}' is in another part, too", path.string(), name));
  }
  if (number == 0) metadata_ = std::move(part.metadata_);
  files_.push_back(part.files_.front());
}

GgufFile GgufFile::open(const std::filesystem::path& path) {
  GgufFile opened = open_part(path);
  const Split split(opened.metadata_);
  if (split.count <= 1) return opened;
  if (split.number >= split.count) {
    opened.metadata_.refuse("split.no", fmt::format("is {}; a model of {} files has 0 to {}",
                                                    split.number, split.count, split.count - 1));
  }
  const std::string name = path.filename().string(), end = split.end_of(split.number);
  if (!name.ends_with(end)) {
    opened.metadata_.refuse("split.no",
                            fmt::format("is {} of {}, but the file's name doesn't end with {}",
                                        split.number, split.count, end));
  }
  const auto path_of = [&](std::int64_t number) {
    return path.parent_path() / (name.substr(0, name.size() - end.size()) + split.end_of(number));
  };
  GgufFile all(path_of(0));
  for (std::int64_t i = 0; i < split.count; ++i) all.add_part(path_of(i), i, split.count);
  constexpr const char* total = "split.tensors.count";
  const auto found = static_cast<std::int64_t>(all.tensors_.size());
  const std::int64_t told = all.metadata_.integer(total, 0, most_entries * most_parts, found);
  if (told != found) {
    all.metadata_.refuse(total, fmt::format("is {}, but all parts have {} tensors", told, found));
  }
  return all;
}

}  // namespace greta::runtime
