#include "runtime/pipeline/models/formats/scaled_weights.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "runtime/device/result.hpp"
#include "runtime/pipeline/models/formats/packed_weights.hpp"

namespace greta::runtime {
namespace {

using StoredShape = std::vector<std::int64_t>;

/// Returns whether the config names blocks, which must be those of scaled_gemm.
bool has_blocks(const JsonFields& fields) {
  if (!fields.has("weight_block_size") || fields.at("weight_block_size").is_null()) return false;
  const nlohmann::json& size = fields.at("weight_block_size");
  if (size == nlohmann::json{ScaledFormat::block, ScaledFormat::block}) return true;
  fields.refuse(
      fmt::format("weight_block_size is {}; allowed: [128, 128]", size.dump().substr(0, 40)));
}

std::optional<ByteFormat> numbers_of(const std::string& type) {
  if (type == "F8_E4M3") return ByteFormat::e4m3;
  if (type == "F8_E5M2") return ByteFormat::e5m2;
  return std::nullopt;
}

}  // namespace

std::optional<ScaledFormat> scaled_weights_of(const JsonFields& config) {
  if (!config.has("quantization_config")) return std::nullopt;
  const JsonFields fields = config.object("quantization_config");
  const std::string method = fields.text("quant_method", "");
  if (method == "fp8") return ScaledFormat{.blocks = has_blocks(fields)};
  if (method != "compressed-tensors") return std::nullopt;
  const std::string format = fields.text("format", "");
  if (format == "pack-quantized") return std::nullopt;
  refuse_transforms(fields);
  if (format != "float-quantized" && format != "naive-quantized") {
    fields.refuse(
        fmt::format("format is '{}'; allowed with compressed-tensors: float-quantized, "
                    "naive-quantized, pack-quantized",
                    format.substr(0, 40)));
  }
  return ScaledFormat{};
}

std::shared_ptr<const std::vector<std::byte>> ScaledReader::scales_of(const std::string& name,
                                                                      std::int64_t n,
                                                                      std::int64_t k,
                                                                      ScaledFormat& format) {
  const std::string inverse = name + "_scale_inv", plain = name + "_scale";
  const std::string& used = tensors_.has(inverse) ? inverse : plain;
  const StoredTensor& stored = tensors_.take_any(used);
  if (!stored.dtype || !kernels_convert(*stored.dtype)) {
    throw Error(fmt::format("{}: tensor '{}' is of type {}; allowed: F32, F16, BF16", name_, used,
                            stored.type));
  }
  format.blocks = true;
  const StoredShape of_blocks{format.scale_rows(n), format.scale_cols(k)};
  const bool one =
      stored.shape.empty() || stored.shape == StoredShape{1} || stored.shape == StoredShape{1, 1};
  const bool rows = stored.shape == StoredShape{n, 1} || stored.shape == StoredShape{n};
  format.blocks = stored.shape == of_blocks && !one && !rows;
  if (!format.blocks && !one && !rows) {
    throw Error(
        fmt::format("{}: tensor '{}' is [{}]; allowed: [{}] of blocks, "
                    "[{}, 1] of rows, or [1]",
                    name_, used, fmt::join(stored.shape, ", "), fmt::join(of_blocks, ", "), n));
  }
  const std::size_t count = static_cast<std::size_t>(format.scale_rows(n) * format.scale_cols(k));
  auto scales = std::make_shared<std::vector<std::byte>>(4 * count);
  for (std::size_t i = 0; i < count; ++i) {
    const double scale = load_element(*stored.dtype, stored.data.data(), one ? 0 : i);
    if (!std::isfinite(scale)) {
      throw Error(
          fmt::format("{}: tensor '{}' holds {}; allowed: finite scales", name_, used, scale));
    }
    store_element(DType::f32, scales->data(), i, scale);
  }
  return scales;
}

bool ScaledReader::ignored(std::string_view name) {
  constexpr std::string_view unused[] = {".input_scale",      ".output_scale", ".k_scale",
                                         ".v_scale",          ".kv_scale",     ".q_scale",
                                         ".prob_output_scale"};
  return std::any_of(std::begin(unused), std::end(unused),
                     [&](std::string_view end) { return name.ends_with(end); });
}

WeightView ScaledReader::take(const std::string& name, const std::vector<std::int64_t>& shape) {
  const StoredTensor& stored = tensors_.take_stored(name, shape);
  const auto numbers = numbers_of(stored.type);
  if (!numbers) return tensors_.take(name, shape);
  const std::int64_t n = shape[0], k = shape[1];
  if (k % MatrixFormat{.scaled = ScaledFormat{}}.unit() != 0) {
    throw Error(fmt::format("{}: tensor '{}' has rows of {} weights; allowed: multiples of 16",
                            name_, name, k));
  }
  ScaledFormat format{*numbers, false};
  memory_.push_back(scales_of(name, n, k, format));
  WeightView view{DType::bf16, n, k, stored.data.data()};
  view.scaled = ScaledWeights{format, memory_.back()->data()};
  return view;
}

}  // namespace greta::runtime
