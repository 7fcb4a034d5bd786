#include "runtime/pipeline/models/formats/packed_weights.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "runtime/device/result.hpp"

namespace greta::runtime {
namespace {

using kernels::PackedMatrix;

/// Writes scales and zero points, transposed, for each group of `m` those of the stored group that
/// it is a part of. Returns the largest zero point if one isn't the
/// implied one.
std::optional<int> repack_groups(const PackedMatrix& m, const PackedMatrix& stored,
                                 const StoredTensor& scales, const StoredTensor& zeros,
                                 std::byte* to) {
  const PackedPlaces places(m);
  bool others = false;
  int largest = 0;
  for (std::int64_t g = 0; g < m.groups(); ++g) {
    const std::int64_t from = g * m.group / stored.group;
    for (std::int64_t row = 0; row < m.n; ++row) {
      std::memcpy(to + places.scales + 2 * (row * m.groups() + g),
                  scales.data.data() + 2 * (from * m.n + row), 2);
      const int zero = kernels::packed_zero_point(stored, zeros.data.data(), row, from);
      to[places.zeros + row * m.groups() + g] = static_cast<std::byte>(zero);
      others = others || zero != m.implied_zero();
      largest = std::max(largest, zero);
    }
  }
  return others ? std::optional(largest) : std::nullopt;
}

/// Reads what AWQ adds. Newer files call the version a format.
void read_awq(const JsonFields& fields) {
  const char* const key = fields.has("version") ? "version" : "format";
  const std::string version = fields.text(key, "gemm");
  if (version != "gemm" && version != "GEMM") {
    fields.refuse(fmt::format("{} is '{}'; allowed: gemm", key, version.substr(0, 40)));
  }
}

/// Reads what GPTQ adds.
void read_gptq(const JsonFields& fields, PackedWeights& packed) {
  if (fields.flag("is_marlin_format", false)) {
    fields.refuse("is_marlin_format is true; allowed: false");
  }
  // With static groups, weights are quantised in another order, but groups are consecutive.
  packed.reordered = fields.flag("desc_act", false) && !fields.flag("static_groups", false) &&
                     packed.stored_group > 0;
  if (fields.has("dynamic") && !fields.at("dynamic").empty()) {
    fields.refuse("has settings of single layers ('dynamic'); allowed: none");
  }
  const char* const key = fields.has("checkpoint_format") ? "checkpoint_format" : "format";
  const std::string format = fields.text(key, "gptq");
  if (format != "gptq" && format != "gptq_v2") {
    fields.refuse(fmt::format("{} is '{}'; allowed: gptq, gptq_v2", key, format.substr(0, 40)));
  }
  packed.packing = *kernels::weight_packing_from_string(format);
  packed.zeros = !fields.flag("sym", true);
}

}  // namespace

void PackedWeights::set_group(const JsonFields& fields, std::int64_t size) {
  stored_group = std::max<std::int64_t>(size, 0);
  // Larger groups are several with the same scale.
  group = size == 32 || size == 64 ? size : 128;
  if (size == 0 || size < -1 || stored_group % group != 0) {
    fields.refuse(fmt::format("group_size is {}; allowed: 32, 64, multiples of 128, -1", size));
  }
}

std::optional<JsonFields> quantisation_of(const JsonFields& config) {
  for (const char* key : {"quantization_config", "compression_config"}) {
    if (config.has(key)) return config.object(key);
  }
  return std::nullopt;
}

std::optional<PackedWeights> packed_weights_of(const JsonFields& config) {
  const auto fields = quantisation_of(config);
  if (!fields) return std::nullopt;
  return packed_weights_in(*fields);
}

PackedWeights packed_weights_in(const JsonFields& fields) {
  PackedWeights packed;
  const std::string method = fields.text("quant_method", "");
  if (method == "compressed-tensors") return compressed_weights_of(fields);
  if (method != "awq" && method != "gptq") {
    fields.refuse(
        fmt::format("quant_method is '{}'; allowed: awq, gptq, fp8, "
                    "fbgemm_fp8, modelopt, compressed-tensors",
                    method.substr(0, 40)));
  }
  constexpr std::int64_t any = std::numeric_limits<std::int32_t>::max();
  packed.bits = fields.integer("bits", 0, any);
  const bool gptq = method == "gptq";
  if (packed.bits != 4 && !(gptq && packed.bits == 8)) {
    fields.refuse(fmt::format("bits is {}; allowed: {}", packed.bits, gptq ? "4, 8" : "4"));
  }
  packed.set_group(fields, fields.integer("group_size", -1, any));
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
std::vector<std::int32_t> WeightUnpacker::order_of(const std::string& name,
                                                   const PackedMatrix& stored_as) {
  const std::int64_t k = stored_as.k, size = stored_as.group;
  if (!tensors_.has(name)) return {};
  const StoredTensor& stored = take_typed(name, "I32", {k});
  const std::int64_t groups = stored_as.groups();
  std::vector<std::vector<std::int32_t>> members(static_cast<std::size_t>(groups));
  bool sorted = true;
  for (std::int64_t i = 0; i < k; ++i) {
    std::uint32_t group = 0;  // little-endian and maybe unaligned
    std::memcpy(&group, stored.data.data() + 4 * i, sizeof(group));
    if (group >= static_cast<std::uint64_t>(groups)) {
      throw Error(fmt::format("{}: tensor '{}' puts weight {} into group {}; allowed: 0 to {}",
                              name_, name, i, static_cast<std::int32_t>(group), groups - 1));
    }
    members[group].push_back(static_cast<std::int32_t>(i));
    sorted = sorted && group == static_cast<std::uint64_t>(i / size);
  }
  if (sorted) return {};
  std::vector<std::int32_t> order;
  for (std::size_t g = 0; g < members.size(); ++g) {
    if (members[g].size() != static_cast<std::size_t>(size)) {
      throw Error(fmt::format("{}: tensor '{}' puts {} weights into group {}; allowed: {}", name_,
                              name, members[g].size(), g, size));
    }
    order.insert(order.end(), members[g].begin(), members[g].end());
  }
  return order;
}

/// Checks that a bias which the model does not have is of zeros: exporters write one for every
/// projection.
void WeightUnpacker::check_bias(const std::string& prefix, std::int64_t n) {
  const std::string name = prefix + "bias";
  const auto is = [&](std::initializer_list<std::string_view> ends) {
    return std::any_of(ends.begin(), ends.end(),
                       [&](std::string_view end) { return prefix.ends_with(end); });
  };
  const bool of_model = (qkv_bias_ && is({"q_proj.", "k_proj.", "v_proj."})) ||
                        (out_bias_ && is({"o_proj."})) ||
                        (mlp_bias_ && is({"mlp.gate_proj.", "mlp.up_proj.", "mlp.down_proj."}));
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
  if (packed_.packing == kernels::WeightPacking::rows) return take_rows(name, shape);
  const std::string prefix = name.substr(0, name.size() - word.size());
  const PackedMatrix m{packed_.packing, packed_.bits, shape[0], shape[1], packed_.group};
  PackedMatrix stored = m;
  stored.group = packed_.stored_group == 0 ? m.k : packed_.stored_group;
  if (m.k % m.group != 0 || m.k % stored.group != 0 || m.n % kernels::packed_rows != 0) {
    throw Error(
        fmt::format("{}: '{}qweight' of {} weights for each of {} outputs; allowed: whole "
                    "groups of {} weights, multiples of 8 outputs",
                    name_, prefix, m.k, m.n, std::max(m.group, packed_.stored_group)));
  }
  const StoredTensor& integers =
      take_typed(prefix + "qweight", "I32", {m.weight_rows(), m.weight_cols()});
  const StoredTensor& zeros =
      take_typed(prefix + "qzeros", "I32", {stored.groups(), stored.zero_cols()});
  const StoredTensor& scales = take_typed(prefix + "scales", "F16,BF16", {stored.groups(), m.n});
  const std::vector<std::int32_t> order = order_of(prefix + "g_idx", stored);
  check_bias(prefix, m.n);
  const PackedPlaces places(m);
  auto memory = std::make_shared<std::vector<std::byte>>(static_cast<std::size_t>(places.bytes) +
                                                         4 * order.size());
  kernels::repack_integers(m, integers.data.data(), order.empty() ? nullptr : order.data(),
                           memory->data());
  const std::optional<int> largest = repack_groups(m, stored, scales, zeros, memory->data());
  if (largest.value_or(0) > 255) {
    throw Error(fmt::format("{}: tensor '{}qzeros' has a zero point of {}; allowed: at most 255",
                            name_, prefix, *largest));
  }
  if (m.bits == 8 && !largest) kernels::make_signed(memory->data(), m.n * m.k);
  WeightView view{*scales.dtype, m.n, m.k, memory->data()};
  view.groups = GroupedWeights{*packed_.format().quantised, m.group, *scales.dtype,
                               memory->data() + places.scales,
                               largest ? memory->data() + places.zeros : nullptr};
  if (!order.empty()) {
    std::byte* const to = memory->data() + places.bytes;
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
    for (WeightView* bias : {&layer.b_gate, &layer.b_up}) {
      if (bias->data == nullptr) continue;
      WeightView column = *bias;
      std::swap(column.rows, column.cols);
      move_rows(column, layer.down.order);
      bias->data = column.data;
    }
    layer.down.order = nullptr;
  }
}

}  // namespace greta::runtime
