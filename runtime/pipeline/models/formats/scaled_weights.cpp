#include "runtime/pipeline/models/formats/scaled_weights.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

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

/// Reads one of compressed-tensors' input_activations: returns whether they are static.
bool has_static_inputs(const JsonFields& fields, const ScaledFormat& format) {
  if (fields.flag("dynamic", false)) return false;
  check_word(fields, "strategy", "tensor", {"tensor"});
  if (format.blocks) fields.refuse("dynamic is false; allowed with weights in blocks: true");
  return true;
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
  if (read.weights_only) return read;
  const JsonFields inputs = fields.object("input_activations");
  check_numbers(inputs, type, false);
  read.format.given_input = has_static_inputs(inputs, read.format);
  return read;
}

/// Reads a format of compressed-tensors.
ScaledCheckpoint read_compressed(const JsonFields& fields) {
  refuse_transforms(fields);
  const std::string format = fields.text("format", "");
  if (format != "float-quantized" && format != "int-quantized" && format != "naive-quantized") {
    fields.refuse(
        fmt::format("format is '{}'; allowed with compressed-tensors: float-quantized, "
                    "int-quantized, mxfp4-pack-quantized, naive-quantized, "
                    "nvfp4-pack-quantized, pack-quantized",
                    format.substr(0, 40)));
  }
  std::optional<ScaledCheckpoint> all;
  if (!fields.has("config_groups")) {
    const bool integers = format == "int-quantized";
    return {{.numbers = integers ? ByteFormat::int8 : ByteFormat::e4m3}, false, true};
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
  if (method == "fp8") {
    const bool blocks = has_blocks(fields, "weight_block_size");
    check_word(fields, "activation_scheme", "dynamic", {"dynamic", "static"});
    const bool given = fields.text("activation_scheme", "dynamic") == "static";
    if (given && blocks) {
      fields.refuse("activation_scheme is 'static'; allowed with weight_block_size: dynamic");
    }
    return ScaledCheckpoint{{.blocks = blocks, .given_input = given}};
  }
  if (method == "fbgemm_fp8") return ScaledCheckpoint{};
  if (method == "modelopt") {
    check_word(fields, "quant_algo", "", {"FP8"});
    return ScaledCheckpoint{{}, false, true};
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
  throw Error(fmt::format("{}: tensor '{}' isn't zero; allowed: symmetric weights and activations",
                          name_, name));
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

std::optional<float> ScaledReader::input_scale_of(const std::string& prefix) {
  std::string name = prefix + "input_scale";
  if (!tensors_.has(name)) name = prefix + "activation_scale";
  if (!tensors_.has(name)) {
    if (checkpoint_.inputs_if_stored) return std::nullopt;
    throw Error(
        fmt::format("{}: there is no tensor '{}input_scale' of static activations", name_, prefix));
  }
  const StoredTensor& stored = tensors_.take_any(name);
  const std::int64_t count =
      std::accumulate(stored.shape.begin(), stored.shape.end(), std::int64_t{1}, std::multiplies{});
  if (!stored.dtype || !kernels_convert(*stored.dtype) || count != 1) {
    throw Error(fmt::format("{}: tensor '{}' is {} [{}]; allowed: one of F32, F16, BF16", name_,
                            name, stored.type, fmt::join(stored.shape, ", ")));
  }
  const double scale = load_element(*stored.dtype, stored.data.data(), 0);
  constexpr double least = std::numeric_limits<float>::min();
  if (!std::isfinite(scale) || scale < least) {
    throw Error(fmt::format("{}: tensor '{}' holds {}; allowed: finite scales of at least {:.2g}",
                            name_, name, scale, least));
  }
  check_zero_points(prefix + "input_zero_point");
  return static_cast<float>(scale);
}

bool ScaledReader::ignored(std::string_view name) {
  constexpr std::string_view unused[] = {".input_scale", ".input_scale_ub", ".input_zero_point",
                                         ".activation_scale", ".output_scale"};
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
  if (format.blocks || view.decoded) return view;
  if (!checkpoint_.format.given_input && !checkpoint_.inputs_if_stored) return view;
  const std::string prefix = name.substr(0, name.size() - std::string_view("weight").size());
  if (const auto scale = input_scale_of(prefix)) {
    view.scaled->format.given_input = true;
    view.scaled->input_scale = *scale;
  }
  return view;
}

namespace {

void share_input_scale(const std::vector<WeightView*>& matrices) {
  float greatest = 0;
  for (const WeightView* view : matrices) {
    if (view->scaled && view->scaled->format.given_input) {
      greatest = std::max(greatest, view->scaled->input_scale);
    }
  }
  for (WeightView* view : matrices) {
    if (view->scaled && view->scaled->format.given_input) view->scaled->input_scale = greatest;
  }
}

}  // namespace

void share_input_scales(LlamaWeights& weights) {
  for (LlamaLayer& layer : weights.layers) {
    share_input_scale({&layer.wq, &layer.wk, &layer.wv});
    share_input_scale({&layer.gate, &layer.up});
    std::vector<WeightView*> gate_up, down;
    for (LlamaExpert& expert : layer.experts) {
      gate_up.insert(gate_up.end(), {&expert.gate, &expert.up});
      down.push_back(&expert.down);
    }
    share_input_scale(gate_up);
    share_input_scale(down);
  }
}

}  // namespace greta::runtime
