#include "runtime/pipeline/models/formats/scaled_weights.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/device/result.hpp"
#include "runtime/pipeline/models/formats/packed_weights.hpp"

namespace greta::runtime {
namespace {

using StoredShape = std::vector<std::int64_t>;

/// The longest rows whose sums of products of integers fit 32 bits.
constexpr std::int64_t most_integers = 131056;

/// Returns whether the config names blocks, which must be those of scaled_gemm.
bool has_blocks(const JsonFields& fields, const char* key) {
  if (!fields.has(key)) return false;
  const nlohmann::json& size = fields.at(key);
  if (size == nlohmann::json{ScaledFormat::block, ScaledFormat::block}) return true;
  fields.refuse(fmt::format("{} is {}; allowed: [128, 128]", key, size.dump().substr(0, 40)));
}

void check_word(const JsonFields& fields, const char* key, const std::string& fallback,
                std::initializer_list<std::string_view> allowed) {
  const std::string word = fields.text(key, fallback);
  if (std::find(allowed.begin(), allowed.end(), word) != allowed.end()) return;
  fields.refuse(
      fmt::format("{} is '{}'; allowed: {}", key, word.substr(0, 40), fmt::join(allowed, ", ")));
}

/// Checks the numbers of weights or activations.
void check_numbers(const JsonFields& fields, std::string_view type, bool may_have_four_bits) {
  check_word(fields, "type", std::string(type), {type});
  constexpr std::int64_t any = std::numeric_limits<std::int32_t>::max();
  const std::int64_t bits = fields.integer("num_bits", 0, any, 8);
  if (bits != 8 && !(may_have_four_bits && bits == 4)) {
    fields.refuse(
        fmt::format("num_bits is {}; allowed: {}8", bits, may_have_four_bits ? "4, " : ""));
  }
  if (!fields.flag("symmetric", true)) fields.refuse("symmetric is false; allowed: true");
}

/// Reads one of compressed-tensors' config_groups.
ScaledCheckpoint read_group(const JsonFields& fields, std::string_view format) {
  const JsonFields weights = fields.object("weights");
  const bool either = format == "naive-quantized";
  const bool integers = either ? weights.text("type", "float") == "int" : format == "int-quantized";
  const std::string_view type = integers ? "int" : "float";
  check_numbers(weights, type, integers);  // those of four bits have eight in files, too
  ScaledCheckpoint read;
  read.weights_only = !fields.has("input_activations");
  if (integers) {
    read.format.numbers = ByteFormat::int8;
    check_word(weights, "strategy", "tensor", {"tensor", "channel"});
  } else {
    check_word(weights, "strategy", "tensor", {"tensor", "channel", "block"});
    read.format.blocks =
        weights.text("strategy", "") == "block" && has_blocks(weights, "block_structure");
  }
  if (!read.weights_only) check_numbers(fields.object("input_activations"), type, false);
  return read;
}

/// Reads a format of compressed-tensors.
ScaledCheckpoint read_compressed(const JsonFields& fields) {
  refuse_transforms(fields);
  const std::string format = fields.text("format", "");
  if (format != "float-quantized" && format != "int-quantized" && format != "naive-quantized") {
    fields.refuse(
        fmt::format("format is '{}'; allowed with compressed-tensors: float-quantized, "
                    "int-quantized, naive-quantized, pack-quantized",
                    format.substr(0, 40)));
  }
  std::optional<ScaledCheckpoint> all;
  if (!fields.has("config_groups")) {
    const bool integers = format == "int-quantized";
    return {{.numbers = integers ? ByteFormat::int8 : ByteFormat::e4m3}};
  }
  const JsonFields groups = fields.object("config_groups");
  for (const nlohmann::json& group : fields.at("config_groups")) {
    const ScaledCheckpoint read = read_group(JsonFields(group, groups.name()), format);
    if (all && !(*all == read)) {
      groups.refuse("has groups of different weights; allowed: those of one kind");
    }
    all = read;
  }
  if (!all) groups.refuse("is empty");
  return *all;
}

}  // namespace

std::optional<ScaledCheckpoint> scaled_weights_of(const JsonFields& config) {
  const auto found = quantisation_of(config);
  if (!found) return std::nullopt;
  const JsonFields& fields = *found;
  const std::string method = fields.text("quant_method", "");
  if (method == "fp8") return ScaledCheckpoint{{.blocks = has_blocks(fields, "weight_block_size")}};
  if (method == "fbgemm_fp8") return ScaledCheckpoint{};
  if (method == "modelopt") {
    check_word(fields, "quant_algo", "", {"FP8"});
    return ScaledCheckpoint{};
  }
  if (method != "compressed-tensors") return std::nullopt;
  if (fields.text("format", "") == "pack-quantized") return std::nullopt;
  return read_compressed(fields);
}

std::optional<ByteFormat> ScaledReader::numbers_of(const std::string& type) const {
  const bool integers = checkpoint_.format.numbers == ByteFormat::int8;
  if (integers && type == "I8") return ByteFormat::int8;
  if (!integers && type == "F8_E4M3") return ByteFormat::e4m3;
  if (!integers && type == "F8_E5M2") return ByteFormat::e5m2;
  return std::nullopt;
}

void ScaledReader::check_zero_points(const std::string& name) {
  if (!tensors_.has(name)) return;
  const StoredTensor& zeros = tensors_.take_any(name);
  if (std::all_of(zeros.data.begin(), zeros.data.end(),
                  [](std::byte b) { return b == std::byte{}; }))
    return;
  throw Error(fmt::format("{}: tensor '{}' isn't zero; allowed: symmetric weights", name_, name));
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
  format.blocks = stored.shape == of_blocks && !one && !rows && format.numbers != ByteFormat::int8;
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
  constexpr std::string_view unused[] = {".input_scale",  ".input_scale_ub", ".input_zero_point",
                                         ".output_scale", ".k_scale",        ".v_scale",
                                         ".kv_scale",     ".q_scale",        ".prob_output_scale"};
  return std::any_of(std::begin(unused), std::end(unused),
                     [&](std::string_view end) { return name.ends_with(end); });
}

WeightView ScaledReader::take(const std::string& name, const std::vector<std::int64_t>& shape) {
  const StoredTensor& stored = tensors_.take_stored(name, shape);
  const auto numbers = numbers_of(stored.type);
  if (!numbers) return tensors_.take(name, shape);
  const std::int64_t n = shape[0], k = shape[1];
  const bool integers = *numbers == ByteFormat::int8;
  if (k % MatrixFormat{.scaled = ScaledFormat{}}.unit() != 0 || (integers && k > most_integers)) {
    throw Error(fmt::format("{}: tensor '{}' has rows of {} weights; allowed: multiples of 16{}",
                            name_, name, k,
                            integers ? fmt::format(" up to {}", most_integers) : ""));
  }
  ScaledFormat format{*numbers, false};
  memory_.push_back(scales_of(name, n, k, format));
  check_zero_points(name + "_zero_point");
  WeightView view{DType::bf16, n, k, stored.data.data()};
  view.decoded = checkpoint_.weights_only;
  view.scaled = ScaledWeights{format, memory_.back()->data()};
  return view;
}

}  // namespace greta::runtime
