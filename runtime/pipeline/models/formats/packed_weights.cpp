#include "runtime/pipeline/models/formats/packed_weights.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <optional>

#include "kernels/model/parallel.hpp"
#include "runtime/device/result.hpp"

namespace greta::runtime {
namespace {

constexpr std::int64_t nibbles = 8;         // of a word, with 4 bits
constexpr std::int64_t words_of_tile = 16;  // that are repacked together

/// Little-endian words, which may be unaligned.
class Words {
 public:
  explicit Words(const StoredTensor& tensor) : data_(tensor.data.data()) {}
  std::uint32_t operator[](std::int64_t index) const {
    std::uint32_t word = 0;
    std::memcpy(&word, data_ + 4 * index, sizeof(word));
    return word;
  }

 private:
  const std::byte* data_;
};

/// Returns the nibble of a word that has column `col` of 8.
int place_of(PackedWeights::Kind kind, std::int64_t col) {
  if (kind == PackedWeights::Kind::gptq) return static_cast<int>(col);
  return static_cast<int>(col / 2 + (col % 2) * 4);
}

int nibble(std::uint32_t word, int place) {
  return static_cast<int>(word >> (4 * place) & 15U);
}

/// The extents of a matrix [n, k], and where its parts are in memory.
struct Matrix {
  std::int64_t n, k, group, bits;
  std::int64_t groups() const { return k / group; }
  std::int64_t of_word() const { return 32 / bits; }
  std::int64_t scales_at() const { return n * k * bits / 8; }
  std::int64_t zeros_at() const { return scales_at() + 2 * n * groups(); }
  std::int64_t bytes() const { return zeros_at() + n * groups(); }
};

/// Writes the integers of 16 words of columns: rows of AWQ have 8 columns a word.
void unpack_awq(const Words& words, const Matrix& m, std::int64_t first, std::byte* to) {
  const std::int64_t width = m.n / nibbles, last = std::min(first + words_of_tile, width);
  for (std::int64_t k = 0; k < m.k; k += 2) {
    for (std::int64_t c = first; c < last; ++c) {
      const std::uint32_t even = words[k * width + c], odd = words[(k + 1) * width + c];
      for (std::int64_t j = 0; j < nibbles; ++j) {
        const int place = place_of(PackedWeights::Kind::awq, j);
        to[((c * nibbles + j) * m.k + k) / 2] =
            static_cast<std::byte>(nibble(even, place) | nibble(odd, place) << 4);
      }
    }
  }
}

/// Writes the integers of 16 columns: a word of GPTQ has 8 or 4 integers of a column in order, as
/// rows of int4 and int8 have them.
void unpack_gptq(const Words& words, const Matrix& m, std::int64_t first, std::byte* to) {
  const std::int64_t last = std::min(first + words_of_tile, m.n);
  for (std::int64_t row = 0; row < m.k / m.of_word(); ++row) {
    for (std::int64_t col = first; col < last; ++col) {
      const std::uint32_t word = words[row * m.n + col];
      std::memcpy(to + col * m.k * m.bits / 8 + row * 4, &word, sizeof(word));
    }
  }
}

/// Puts the integers of each row into another order.
void reorder_integers(const Matrix& m, const std::vector<std::int32_t>& order,
                      std::byte* integers) {
  const auto bytes = static_cast<std::size_t>(m.k * m.bits / 8);
  parallel_parts(m.n, [&](std::int64_t begin, std::int64_t end) {
    std::vector<std::byte> stored(bytes);
    for (std::int64_t row = begin; row < end; ++row) {
      std::byte* const to = integers + static_cast<std::size_t>(row) * bytes;
      std::memcpy(stored.data(), to, bytes);
      const auto four = [&](std::size_t i) {
        const auto at = static_cast<std::size_t>(order[i]);
        return stored[at / 2] >> (at % 2 * 4) & std::byte{15};
      };
      for (std::size_t i = 0; i < bytes; ++i) {
        to[i] = m.bits == 8 ? stored[static_cast<std::size_t>(order[i])]
                            : four(2 * i) | four(2 * i + 1) << 4;
      }
    }
  });
}

/// Makes unsigned integers of 8 bits, whose zero points are all 128, signed ones.
void make_signed(const Matrix& m, std::byte* integers) {
  std::for_each(integers, integers + m.n * m.k, [](std::byte& byte) { byte ^= std::byte{0x80}; });
}

void unpack_integers(PackedWeights::Kind kind, const StoredTensor& stored, const Matrix& m,
                     std::byte* to) {
  const Words words(stored);
  const bool awq = kind == PackedWeights::Kind::awq;
  const std::int64_t width = awq ? m.n / nibbles : m.n;
  parallel_parts((width + words_of_tile - 1) / words_of_tile,
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t tile = begin; tile < end; ++tile) {
                     (awq ? unpack_awq : unpack_gptq)(words, m, tile * words_of_tile, to);
                   }
                 });
}

/// Returns the zero point that a format without zero points implies.
int implied_zero(const Matrix& m) {
  return m.bits == 4 ? 8 : 128;
}

/// Writes scales and zero points, transposed. Returns the largest zero point if one isn't the
/// implied one.
std::optional<int> unpack_groups(const PackedWeights& packed, const StoredTensor& scales,
                                 const StoredTensor& zeros, const Matrix& m, std::byte* to) {
  const Words words(zeros);
  bool others = false;
  int largest = 0;
  for (std::int64_t g = 0; g < m.groups(); ++g) {
    for (std::int64_t col = 0; col < m.n; ++col) {
      std::memcpy(to + m.scales_at() + 2 * (col * m.groups() + g),
                  scales.data.data() + 2 * (g * m.n + col), 2);
      const std::uint32_t word = words[g * (m.n / m.of_word()) + col / m.of_word()];
      const int stored = m.bits == 4 ? nibble(word, place_of(packed.kind, col % nibbles))
                                     : static_cast<int>(word >> (8 * (col % 4)) & 255U);
      const int zero = stored + packed.zero_offset;
      to[m.zeros_at() + col * m.groups() + g] = static_cast<std::byte>(zero);
      others = others || zero != implied_zero(m);
      largest = std::max(largest, zero);
    }
  }
  return others ? std::optional(largest) : std::nullopt;
}

/// Reads what AWQ adds.
void read_awq(const JsonFields& fields) {
  const std::string version = fields.text("version", "gemm");
  if (version != "gemm" && version != "GEMM") {
    fields.refuse(fmt::format("version is '{}'; allowed: gemm", version.substr(0, 40)));
  }
}

/// Reads what GPTQ adds.
void read_gptq(const JsonFields& fields, PackedWeights& packed) {
  // With static groups, weights are quantised in another order, but groups are consecutive.
  packed.reordered = fields.flag("desc_act", false) && !fields.flag("static_groups", false);
  if (fields.has("dynamic") && !fields.at("dynamic").empty()) {
    fields.refuse("has settings of single layers ('dynamic'); allowed: none");
  }
  const std::string format = fields.text("checkpoint_format", "gptq");
  if (format != "gptq" && format != "gptq_v2") {
    fields.refuse(
        fmt::format("checkpoint_format is '{}'; allowed: gptq, gptq_v2", format.substr(0, 40)));
  }
  packed.kind = PackedWeights::Kind::gptq;
  packed.zero_offset = format == "gptq" ? 1 : 0;
  packed.zeros = !fields.flag("sym", true);
}

}  // namespace

std::optional<PackedWeights> packed_weights_of(const JsonFields& config) {
  if (!config.has("quantization_config")) return std::nullopt;
  const JsonFields fields = config.object("quantization_config");
  PackedWeights packed;
  const std::string method = fields.text("quant_method", "");
  if (method != "awq" && method != "gptq") {
    fields.refuse(fmt::format("quant_method is '{}'; allowed: awq, gptq, fp8, compressed-tensors",
                              method.substr(0, 40)));
  }
  constexpr std::int64_t any = std::numeric_limits<std::int32_t>::max();
  packed.bits = fields.integer("bits", 0, any);
  const bool gptq = method == "gptq";
  if (packed.bits != 4 && !(gptq && packed.bits == 8)) {
    fields.refuse(fmt::format("bits is {}; allowed: {}", packed.bits, gptq ? "4, 8" : "4"));
  }
  packed.group = fields.integer("group_size", -1, any);
  if (packed.group != 32 && packed.group != 64 && packed.group != 128) {
    fields.refuse(fmt::format("group_size is {}; allowed: 32, 64, 128", packed.group));
  }
  if (method == "awq") {
    read_awq(fields);
  } else {
    read_gptq(fields, packed);
  }
  return packed;
}

/// Returns a tensor of one of the types and of this shape.
const StoredTensor& WeightUnpacker::take_typed(const std::string& name, std::string_view types,
                                               const std::vector<std::int64_t>& shape) {
  const StoredTensor& tensor = tensors_.take_stored(name, shape);
  const std::string word = tensor.type + ",";
  if ((std::string(types) + ",").find(word) == std::string::npos) {
    throw Error(
        fmt::format("{}: tensor '{}' is of type {}; allowed: {}", name_, name, tensor.type, types));
  }
  return tensor;
}

/// Returns the weights of a row by their groups; nothing if they are stored so.
std::vector<std::int32_t> WeightUnpacker::order_of(const std::string& prefix, std::int64_t k) {
  const std::string name = prefix + "g_idx";
  if (!tensors_.has(name)) return {};
  const Words words(take_typed(name, "I32", {k}));
  const std::int64_t groups = k / packed_.group;
  std::vector<std::vector<std::int32_t>> members(static_cast<std::size_t>(groups));
  bool sorted = true;
  for (std::int64_t i = 0; i < k; ++i) {
    const std::uint32_t group = words[i];
    if (group >= static_cast<std::uint64_t>(groups)) {
      throw Error(fmt::format("{}: tensor '{}' puts weight {} into group {}; allowed: 0 to {}",
                              name_, name, i, static_cast<std::int32_t>(group), groups - 1));
    }
    members[group].push_back(static_cast<std::int32_t>(i));
    sorted = sorted && group == static_cast<std::uint64_t>(i / packed_.group);
  }
  if (sorted) return {};
  std::vector<std::int32_t> order;
  for (std::size_t g = 0; g < members.size(); ++g) {
    if (members[g].size() != static_cast<std::size_t>(packed_.group)) {
      throw Error(fmt::format("{}: tensor '{}' puts {} weights into group {}; allowed: {}", name_,
                              name, members[g].size(), g, packed_.group));
    }
    order.insert(order.end(), members[g].begin(), members[g].end());
  }
  return order;
}

/// Checks that a bias, which exporters write for every projection, is of zeros.
void WeightUnpacker::check_bias(const std::string& prefix, std::int64_t n) {
  const std::string name = prefix + "bias";
  const bool of_model = qkv_bias_ && (prefix.ends_with("q_proj.") || prefix.ends_with("k_proj.") ||
                                      prefix.ends_with("v_proj."));
  if (of_model || !tensors_.has(name)) return;
  const StoredTensor& bias = take_typed(name, "F16,BF16,F32", {n});
  for (std::int64_t i = 0; i < n; ++i) {
    if (load_element(*bias.dtype, bias.data.data(), static_cast<std::size_t>(i)) == 0) continue;
    throw Error(fmt::format("{}: tensor '{}' isn't zero; allowed: no bias", name_, name));
  }
}

WeightView WeightUnpacker::take(const std::string& name, const std::vector<std::int64_t>& shape) {
  constexpr std::string_view word = "weight";
  if (tensors_.has(name) || !name.ends_with(word)) return tensors_.take(name, shape);
  const std::string prefix = name.substr(0, name.size() - word.size());
  const Matrix m{shape[0], shape[1], packed_.group, packed_.bits};
  if (m.k % m.group != 0 || m.n % nibbles != 0) {
    throw Error(
        fmt::format("{}: '{}qweight' of {} weights for each of {} outputs; allowed: whole "
                    "groups of {} weights, multiples of 8 outputs",
                    name_, prefix, m.k, m.n, m.group));
  }
  const bool awq = packed_.kind == PackedWeights::Kind::awq;
  const StoredTensor& integers =
      take_typed(prefix + "qweight", "I32",
                 awq ? std::vector{m.k, m.n / nibbles} : std::vector{m.k / m.of_word(), m.n});
  const StoredTensor& zeros = take_typed(prefix + "qzeros", "I32", {m.groups(), m.n / m.of_word()});
  const StoredTensor& scales = take_typed(prefix + "scales", "F16,BF16", {m.groups(), m.n});
  const std::vector<std::int32_t> order = order_of(prefix, m.k);
  check_bias(prefix, m.n);
  auto memory = std::make_shared<std::vector<std::byte>>(static_cast<std::size_t>(m.bytes()) +
                                                         4 * order.size());
  unpack_integers(packed_.kind, integers, m, memory->data());
  if (!order.empty()) reorder_integers(m, order, memory->data());
  const std::optional<int> largest = unpack_groups(packed_, scales, zeros, m, memory->data());
  if (largest.value_or(0) > 255) {
    throw Error(fmt::format("{}: tensor '{}qzeros' has a zero point of {}; allowed: at most 255",
                            name_, prefix, *largest));
  }
  if (m.bits == 8 && !largest) make_signed(m, memory->data());
  WeightView view{*scales.dtype, m.n, m.k, memory->data()};
  view.groups = GroupedWeights{*packed_.format().quantised, m.group, *scales.dtype,
                               memory->data() + m.scales_at(),
                               largest ? memory->data() + m.zeros_at() : nullptr};
  if (!order.empty()) {  // after weights whose size is a multiple of 8
    std::byte* const to = memory->data() + m.bytes();
    std::memcpy(to, order.data(), 4 * order.size());
    view.order = reinterpret_cast<const std::int32_t*>(to);
  }
  memory_.push_back(std::move(memory));
  return view;
}

/// Makes row i of a matrix what row order[i] was.
void WeightUnpacker::move_rows(WeightView& view, const std::int32_t* order) {
  const auto rows = static_cast<std::size_t>(view.rows), cols = static_cast<std::size_t>(view.cols);
  const std::size_t row_bytes = view.offset(cols);
  const std::size_t groups =
      view.groups ? cols / static_cast<std::size_t>(view.groups->group) : std::size_t{0};
  const bool zeros = view.groups && view.groups->zeros != nullptr;
  auto memory = std::make_shared<std::vector<std::byte>>(
      (view.order != nullptr ? 4 * cols : 0) + rows * (row_bytes + groups * (zeros ? 3 : 2)));
  std::byte* to = memory->data();
  const auto moved = [&](const std::byte* from, std::size_t bytes) {
    const std::byte* const first = to;
    for (std::size_t row = 0; row < rows; ++row, to += bytes) {
      std::memcpy(to, from + static_cast<std::size_t>(order[row]) * bytes, bytes);
    }
    return first;
  };
  const std::byte* const old = view.data;
  if (view.order != nullptr) {
    std::memcpy(to, view.order, 4 * cols);
    view.order = reinterpret_cast<const std::int32_t*>(to);
    to += 4 * cols;
  }
  view.data = moved(view.data, row_bytes);
  if (view.groups) view.groups->scales = moved(view.groups->scales, 2 * groups);
  if (zeros) view.groups->zeros = moved(view.groups->zeros, groups);
  const auto own = std::find_if(memory_.begin(), memory_.end(),
                                [&](const auto& each) { return each->data() == old; });
  if (own != memory_.end()) {
    *own = std::move(memory);
  } else {
    memory_.push_back(std::move(memory));  // of numbers in a file
  }
}

void WeightUnpacker::renumber_hidden(LlamaWeights& weights) {
  for (LlamaLayer& layer : weights.layers) {
    if (layer.down.order == nullptr) continue;
    move_rows(layer.gate, layer.down.order);
    move_rows(layer.up, layer.down.order);
    layer.down.order = nullptr;
  }
}

}  // namespace greta::runtime
