#include "runtime/pipeline/models/formats/fp4_weights.hpp"

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <string_view>

#include "runtime/device/result.hpp"
#include "runtime/pipeline/models/formats/packed_weights.hpp"

namespace greta::runtime {
namespace {

constexpr std::int64_t group_of(Fp4Kind kind) {
  return kind == Fp4Kind::nvfp4 ? 16 : 32;
}

/// Checks one of config_groups.
void check_group(const JsonFields& fields, Fp4Kind kind, const std::string& format) {
  refuse_activations(fields, format);
  const JsonFields weights = fields.object("weights");
  constexpr std::int64_t any = std::numeric_limits<std::int32_t>::max();
  if (const std::string type = weights.text("type", "float"); type != "float") {
    weights.refuse(fmt::format("type is '{}'; allowed: float", type.substr(0, 40)));
  }
  if (const std::int64_t bits = weights.integer("num_bits", 0, any, 4); bits != 4) {
    weights.refuse(fmt::format("num_bits is {}; allowed: 4", bits));
  }
  const bool nvfp4 = kind == Fp4Kind::nvfp4;
  const std::string strategy = weights.text("strategy", "group");
  if (strategy != "group" && !(nvfp4 && strategy == "tensor_group")) {
    weights.refuse(fmt::format("strategy is '{}'; allowed: group{}", strategy.substr(0, 40),
                               nvfp4 ? ", tensor_group" : ""));
  }
  const std::string order = weights.text("actorder", "static");
  if (order != "static" && order != "weight") {
    weights.refuse(fmt::format("actorder is '{}'; allowed: static, weight", order.substr(0, 40)));
  }
  const std::int64_t size = weights.integer("group_size", -1, any, group_of(kind));
  if (size != group_of(kind)) {
    weights.refuse(fmt::format("group_size is {}; allowed: {}", size, group_of(kind)));
  }
  if (!weights.flag("symmetric", true)) weights.refuse("symmetric is false; allowed: true");
}

}  // namespace

std::optional<Fp4Kind> fp4_weights_of(const JsonFields& config) {
  const auto found = quantisation_of(config);
  if (!found || found->text("quant_method", "") != "compressed-tensors") return std::nullopt;
  const std::string format = found->text("format", "");
  if (format != "nvfp4-pack-quantized" && format != "mxfp4-pack-quantized") return std::nullopt;
  const Fp4Kind kind = format.starts_with("nv") ? Fp4Kind::nvfp4 : Fp4Kind::mxfp4;
  refuse_transforms(*found);
  const JsonFields groups = found->object("config_groups");
  const nlohmann::json& list = found->at("config_groups");
  if (list.empty()) groups.refuse("is empty");
  for (const nlohmann::json& group : list) {
    check_group(JsonFields(group, groups.name()), kind, format);
  }
  return kind;
}

const std::byte* Fp4Reader::scales_of(const std::string& name, const StoredTensor& stored) {
  const std::string global_name = name + "_global_scale";
  const StoredTensor& global = tensors_.take_any(global_name);
  const std::int64_t count =
      std::accumulate(global.shape.begin(), global.shape.end(), std::int64_t{1}, std::multiplies{});
  if (global.type != "F32" || count != 1) {
    throw Error(fmt::format("{}: tensor '{}' is of type {} with {} elements; allowed: one of F32",
                            name_, global_name, global.type, count));
  }
  const auto divisor = static_cast<float>(load_element(DType::f32, global.data.data(), 0));
  if (!std::isnormal(divisor) || divisor < 0) {
    throw Error(fmt::format("{}: tensor '{}' holds {}; allowed: normal numbers above 0", name_,
                            global_name, divisor));
  }
  auto scales = std::make_shared<std::vector<std::byte>>(4 * stored.data.size());
  for (std::size_t i = 0; i < stored.data.size(); ++i) {
    const float code =
        kernels::decode_byte(ByteFormat::e4m3, std::to_integer<std::uint8_t>(stored.data[i]));
    const float scale = code / divisor;
    if (!std::isfinite(scale)) {
      throw Error(fmt::format("{}: tensor '{}_scale' holds {}, divided by '{}' {}; allowed: finite",
                              name_, name, code, global_name, divisor));
    }
    store_element(DType::f32, scales->data(), i, scale);
  }
  memory_.push_back(std::move(scales));
  return memory_.back()->data();
}

WeightView Fp4Reader::take(const std::string& name, const std::vector<std::int64_t>& shape) {
  if (tensors_.has(name)) return tensors_.take(name, shape);
  const std::int64_t n = shape[0], k = shape[1], group = group_of(kind_);
  if (k % group != 0) {
    throw Error(fmt::format("{}: '{}_packed' has rows of {} weights; allowed: whole groups of {}",
                            name_, name, k, group));
  }
  const auto typed = [&](const std::string& tensor, std::int64_t cols, std::string_view types) {
    const StoredTensor& stored = tensors_.take_stored(tensor, {n, cols});
    if (types.find(stored.type) == std::string_view::npos) {
      throw Error(fmt::format("{}: tensor '{}' is of type {}; allowed: {}", name_, tensor,
                              stored.type, types));
    }
    return stored;
  };
  const bool nvfp4 = kind_ == Fp4Kind::nvfp4;
  const StoredTensor codes = typed(name + "_packed", k / 2, "U8");
  const StoredTensor scales = typed(name + "_scale", k / group, nvfp4 ? "F8_E4M3" : "U8, F8_E8M0");
  WeightView view{DType::bf16, n, k, codes.data.data()};
  view.decoded = nvfp4;
  view.groups = GroupedWeights{WeightFormat::mxfp4, group, nvfp4 ? DType::f32 : DType::u8,
                               nvfp4 ? scales_of(name, scales) : scales.data.data(), nullptr};
  return view;
}

}  // namespace greta::runtime
