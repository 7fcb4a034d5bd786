#include <fmt/format.h>

#include <cstring>
#include <limits>
#include <optional>

#include "runtime/device/result.hpp"
#include "runtime/pipeline/models/formats/packed_weights.hpp"

namespace greta::runtime {
namespace {

using kernels::PackedMatrix;
using kernels::WeightPacking;

/// Reads the weights of one of config_groups.
PackedWeights read_group(const JsonFields& fields) {
  refuse_activations(fields, "pack-quantized");
  const JsonFields weights = fields.object("weights");
  PackedWeights packed;
  packed.packing = WeightPacking::rows;
  if (const std::string type = weights.text("type", "int"); type != "int") {
    weights.refuse(fmt::format("type is '{}'; allowed: int", type.substr(0, 40)));
  }
  constexpr std::int64_t any = std::numeric_limits<std::int32_t>::max();
  packed.bits = weights.integer("num_bits", 0, any);
  if (packed.bits != 4 && packed.bits != 8) {
    weights.refuse(fmt::format("num_bits is {}; allowed: 4, 8", packed.bits));
  }
  const std::int64_t size = weights.integer("group_size", -1, any, -1);
  const std::string strategy = weights.text("strategy", size > 0 ? "group" : "channel");
  if (strategy != "group" && strategy != "channel") {
    weights.refuse(
        fmt::format("strategy is '{}'; allowed: group, channel", strategy.substr(0, 40)));
  }
  packed.set_group(weights, strategy == "group" ? weights.integer("group_size", -1, any) : -1);
  packed.zeros = !weights.flag("symmetric", true);
  const std::string order = weights.text("actorder", "static");
  packed.reordered = order == "group" || order == "dynamic";
  return packed;
}

std::uint32_t word_at(const StoredTensor& tensor, std::int64_t index) {
  std::uint32_t word = 0;  // maybe unaligned
  std::memcpy(&word, tensor.data.data() + 4 * index, sizeof(word));
  return word;
}

/// Writes scales and zero points, for each group of `m` those of the stored group that it is a part
/// of. Returns whether a zero point isn't the implied one.
bool write_groups(const PackedMatrix& m, const PackedMatrix& stored, const StoredTensor& scales,
                  const StoredTensor* zeros, std::byte* to) {
  const PackedPlaces places(m);
  const std::int64_t groups = stored.groups(), of_word = m.of_word();
  bool others = false;
  for (std::int64_t row = 0; row < m.n; ++row) {
    for (std::int64_t g = 0; g < m.groups(); ++g) {
      const std::int64_t from = g * m.group / stored.group, at = row * m.groups() + g;
      std::memcpy(to + places.scales + 2 * at, scales.data.data() + 2 * (row * groups + from), 2);
      if (zeros == nullptr) continue;
      const std::uint32_t word = word_at(*zeros, row / of_word * groups + from);
      const auto zero = static_cast<int>(word >> m.bits * (row % of_word) & ((1U << m.bits) - 1));
      to[places.zeros + at] = static_cast<std::byte>(zero);
      others = others || zero != m.implied_zero();
    }
  }
  return others;
}

}  // namespace

void refuse_activations(const JsonFields& group, std::string_view format) {
  for (const char* activations : {"input_activations", "output_activations"}) {
    if (group.has(activations)) {
      group.refuse(fmt::format("has {}; allowed with {}: null", activations, format));
    }
  }
}

void refuse_transforms(const JsonFields& fields) {
  if (fields.has("transform_config") && !fields.at("transform_config").empty()) {
    fields.refuse("has a transform_config; allowed: none");
  }
  if (!fields.has("sparsity_config") || fields.at("sparsity_config").empty()) return;
  const std::string format = fields.object("sparsity_config").text("format", "dense");
  if (format != "dense") {
    fields.refuse(
        fmt::format("sparsity_config: format is '{}'; allowed: dense", format.substr(0, 40)));
  }
}

PackedWeights compressed_weights_of(const JsonFields& fields) {
  refuse_transforms(fields);
  const JsonFields groups = fields.object("config_groups");
  std::optional<PackedWeights> all;
  for (const nlohmann::json& group : fields.at("config_groups")) {
    const PackedWeights packed = read_group(JsonFields(group, groups.name()));
    if (all && !(*all == packed)) {
      groups.refuse("has groups of different weights; allowed: those of one kind");
    }
    all = packed;
  }
  if (!all) groups.refuse("is empty");
  return *all;
}

WeightView WeightUnpacker::take_rows(const std::string& name,
                                     const std::vector<std::int64_t>& shape) {
  const PackedMatrix m{packed_.packing, packed_.bits, shape[0], shape[1], packed_.group};
  PackedMatrix stored = m;
  stored.group = packed_.stored_group == 0 ? m.k : packed_.stored_group;
  if (m.k % m.group != 0 || m.k % stored.group != 0) {
    throw Error(fmt::format("{}: '{}_packed' has rows of {} weights; allowed: whole groups of {}",
                            name_, name, m.k, std::max(m.group, packed_.stored_group)));
  }
  const StoredTensor& size = tensors_.take_any(name + "_shape");
  const bool known =
      (size.type == "I64" || size.type == "I32") && size.shape == std::vector<std::int64_t>{2};
  const std::int64_t words = size.type == "I64" ? 2 : 1;  // of an extent
  if (!known || word_at(size, 0) != m.n || word_at(size, words) != m.k ||
      (words == 2 && (word_at(size, 1) != 0 || word_at(size, 3) != 0))) {
    throw Error(fmt::format("{}: tensor '{}_shape' isn't [{}, {}]", name_, name, m.n, m.k));
  }
  const StoredTensor& integers =
      take_typed(name + "_packed", "I32", {m.weight_rows(), m.weight_cols()});
  const StoredTensor& scales = take_typed(name + "_scale", "F16,BF16", {m.n, stored.groups()});
  const StoredTensor* const zeros =
      packed_.zeros ? &take_typed(name + "_zero_point", "I32",
                                  {(m.n + m.of_word() - 1) / m.of_word(), stored.groups()})
                    : nullptr;
  const std::vector<std::int32_t> order = order_of(name + "_g_idx", stored);
  WeightView view{*scales.dtype, m.n, m.k, integers.data.data()};
  view.groups = GroupedWeights{*packed_.format().quantised, m.group, *scales.dtype,
                               scales.data.data(), nullptr};
  if (m.bits == 4 && zeros == nullptr && order.empty() && m.group == stored.group) {
    return view;  // as it lies in the file
  }
  const PackedPlaces places(m);
  auto memory = std::make_shared<std::vector<std::byte>>(static_cast<std::size_t>(places.bytes) +
                                                         4 * order.size());
  std::byte* const to = memory->data();
  kernels::repack_integers(m, integers.data.data(), order.empty() ? nullptr : order.data(), to);
  const bool others = write_groups(m, stored, scales, zeros, to);
  if (m.bits == 8 && !others) kernels::make_signed(to, m.n * m.k);
  view.data = to;
  view.groups->scales = to + places.scales;
  if (others) view.groups->zeros = to + places.zeros;
  if (!order.empty()) {
    std::memcpy(to + places.bytes, order.data(), 4 * order.size());
    view.order = reinterpret_cast<const std::int32_t*>(to + places.bytes);
  }
  memory_.push_back(std::move(memory));
  return view;
}

}  // namespace greta::runtime
