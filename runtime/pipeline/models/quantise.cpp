#include "runtime/pipeline/models/quantise.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <span>

#include "kernels/model/parallel.hpp"
#include "runtime/device/result.hpp"

namespace greta::runtime {
namespace {

/// A scale as it is stored.
struct Scale {
  double value = 0;
  double inverse = 0;  ///< 0 of a scale of 0, whose integers are 0

  /// Returns the integer for a weight.
  int integer(double weight, int least, int most) const {
    if (std::isnan(value)) return 0;
    return static_cast<int>(std::clamp(std::nearbyint(weight * inverse), static_cast<double>(least),
                                       static_cast<double>(most)));
  }
};

/// Writes a scale.
Scale store_scale(DType type, std::byte* to, double scale) {
  store_element(type, to, 0, scale);
  const double stored = load_element(type, to, 0);
  return {stored, stored == 0 ? 0 : 1 / stored};
}

double largest_of(std::span<const double> weights) {
  double largest = 0;  // with its sign
  for (const double weight : weights) {
    if (!std::isfinite(weight)) return std::numeric_limits<double>::quiet_NaN();
    if (std::abs(weight) > std::abs(largest)) largest = weight;
  }
  return largest;
}

/// Returns the sum of squared errors of 4-bit integers with this scale.
double errors_of(std::span<const double> weights, const Scale& scale) {
  double sum = 0;
  for (const double weight : weights) {
    const double error = weight - scale.value * scale.integer(weight, -8, 7);
    sum += error * error;
  }
  return sum;
}

/// Writes the scale of 4-bit integers to `to`.
Scale store_scale4(DType type, std::byte* to, std::span<const double> weights) {
  const double largest = largest_of(weights);
  std::array<std::byte, 2> other{};
  const Scale one = store_scale(type, to, largest / -8);
  const Scale two = store_scale(type, other.data(), std::abs(largest) / 7);
  if (std::isnan(largest) || !(errors_of(weights, two) < errors_of(weights, one))) return one;
  std::copy(other.begin(), other.end(), to);
  return two;
}

/// Returns two 4-bit weights, unsigned around 8, the first one in the lower half.
std::byte nibbles_of(double first, double second, const Scale& scale) {
  return static_cast<std::byte>((scale.integer(first, -8, 7) + 8) |
                                (scale.integer(second, -8, 7) + 8) << 4);
}

void encode_q8_0(std::span<const double> weights, std::byte* block) {
  const Scale scale = store_scale(DType::f16, block, std::abs(largest_of(weights)) / 127);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    block[2 + i] = static_cast<std::byte>(scale.integer(weights[i], -127, 127) & 0xff);
  }
}

void encode_q4_0(std::span<const double> weights, std::byte* block) {
  const Scale scale = store_scale4(DType::f16, block, weights);
  for (std::size_t i = 0; i < 16; ++i) {
    block[2 + i] = nibbles_of(weights[i], weights[i + 16], scale);
  }
}

void encode_int4(std::span<const double> weights, DType type, std::byte* integers,
                 std::byte* scale_at) {
  const Scale scale = store_scale4(type, scale_at, weights);
  for (std::size_t i = 0; i < weights.size(); i += 2) {
    integers[i / 2] = nibbles_of(weights[i], weights[i + 1], scale);
  }
}

/// Returns the code of the number of e2m1 nearest to a value, and of two as near the even one.
int e2m1_code(double value) {
  const double size = std::abs(value);
  int nearest = 0;
  for (int code = 1; code < 8; ++code) {
    const double here = std::abs(size - kernels::e2m1_value(code));
    const double best = std::abs(size - kernels::e2m1_value(nearest));
    if (here < best || (here == best && code % 2 == 0)) nearest = code;
  }
  return std::signbit(value) ? nearest | 8 : nearest;
}

/// Writes 32 weights of mxfp4 with the scale 2^exponent, and returns the sum of squared errors.
double encode_e2m1(std::span<const double> weights, int exponent, std::byte* to) {
  double sum = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const int code = e2m1_code(std::ldexp(weights[i], -exponent));
    const double error = weights[i] - std::ldexp(kernels::e2m1_value(code), exponent);
    sum += error * error;
    to[i / 2] =
        i % 2 == 0 ? static_cast<std::byte>(code) : to[i / 2] | static_cast<std::byte>(code << 4);
  }
  return sum;
}

/// The smaller scale leaves numbers above 6 times itself to be 6 times it, the larger one has steps
/// twice as long.
void encode_mxfp4(std::span<const double> weights, std::byte* codes, std::byte* scale_at) {
  constexpr int bias = 127, not_a_number = 255;
  const double largest = std::abs(largest_of(weights));
  if (std::isnan(largest)) {
    *scale_at = std::byte{not_a_number};
    return;
  }
  const int least = largest > 0 ? std::clamp(std::ilogb(largest) - 2, -bias, bias - 1) : -bias;
  std::array<std::byte, 16> other{};
  const bool wider =
      encode_e2m1(weights, least + 1, other.data()) < encode_e2m1(weights, least, codes);
  if (wider) std::copy(other.begin(), other.end(), codes);
  *scale_at = static_cast<std::byte>(least + (wider ? 1 : 0) + bias);
}

/// Writes a row of numbers and its scale, as the operation `quantize` defines them.
void encode_scaled(std::span<const double> weights, ByteFormat format, std::byte* codes,
                   std::byte* scale_at) {
  constexpr double most = std::numeric_limits<float>::max(), least = 0x1p-126;
  double largest = 0;
  for (const double weight : weights) {
    if (!std::isnan(weight)) largest = std::max(largest, std::min(std::abs(weight), most));
  }
  store_element(DType::f32, scale_at, 0, std::max(largest / traits(format).largest, least));
  const double scale = load_element(DType::f32, scale_at, 0);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double weight = std::isnan(weights[i]) ? weights[i] : std::clamp(weights[i], -most, most);
    codes[i] = std::byte{kernels::encode_byte(format, weight / scale)};
  }
}

/// Returns the matrix in numbers of eight bits with a scale for each row.
WeightView scaled(LlamaModel& model, const WeightView& from, const ScaledFormat& format) {
  const auto cols = static_cast<std::size_t>(from.cols);
  auto codes = std::make_shared<std::vector<std::byte>>(from.elements());
  auto scales = std::make_shared<std::vector<std::byte>>(4 * static_cast<std::size_t>(from.rows));
  parallel_parts(from.rows, [&](std::int64_t first, std::int64_t last) {
    std::vector<double> values(cols);
    for (auto row = static_cast<std::size_t>(first); row < static_cast<std::size_t>(last); ++row) {
      from.read(row * cols, cols, values.data());
      encode_scaled(values, format.numbers, codes->data() + row * cols, scales->data() + 4 * row);
    }
  });
  WeightView view{from.dtype, from.rows, from.cols, codes->data()};
  view.scaled = ScaledWeights{format, scales->data()};
  model.converted.insert(model.converted.end(), {std::move(codes), std::move(scales)});
  return view;
}

/// Returns the matrix in a format, in memory of the model.
WeightView quantised(LlamaModel& model, const WeightView& from, const MatrixFormat& format,
                     DType activations) {
  if (format.scaled) return scaled(model, from, *format.scaled);
  const auto scale_bytes = static_cast<std::size_t>(format.scale_bytes());
  const DType scales = scale_bytes == 1 ? DType::u8 : scales_type(activations);
  const auto unit = static_cast<std::size_t>(format.unit());
  const auto cols = static_cast<std::size_t>(from.cols);
  const auto row_bytes = static_cast<std::size_t>(format.row_bytes(activations, from.cols));
  const std::size_t groups = cols / unit,
                    integers = row_bytes * static_cast<std::size_t>(from.rows);
  auto data = std::make_shared<std::vector<std::byte>>(
      static_cast<std::size_t>(format.bytes(activations, from.rows, from.cols)));
  parallel_parts(from.rows, [&](std::int64_t first, std::int64_t last) {
    std::vector<double> values(cols);
    for (auto row = static_cast<std::size_t>(first); row < static_cast<std::size_t>(last); ++row) {
      from.read(row * cols, cols, values.data());
      for (std::size_t g = 0; g < groups; ++g) {
        const auto weights = std::span(values).subspan(g * unit, unit);
        std::byte* const to = data->data() + row * row_bytes + g * (row_bytes / groups);
        std::byte* const scale = data->data() + integers + scale_bytes * (row * groups + g);
        if (*format.quantised == WeightFormat::mxfp4) {
          encode_mxfp4(weights, to, scale);
        } else if (format.group > 0) {
          encode_int4(weights, scales, to, scale);
        } else if (*format.quantised == WeightFormat::q8_0) {
          encode_q8_0(weights, to);
        } else {
          encode_q4_0(weights, to);
        }
      }
    }
  });
  WeightView view{from.dtype, from.rows, from.cols, data->data()};
  if (format.group > 0) {
    view.groups = GroupedWeights{*format.quantised, format.group, scales, data->data() + integers};
  } else {
    view.blocks = traits(*format.quantised).blocks;
  }
  model.converted.push_back(std::move(data));
  return view;
}

/// Returns how a quantisation changes a projection of this format and number of columns; its own
/// format if it stays.
MatrixFormat changed(const MatrixFormat& own, std::int64_t cols, Quantisation quantisation,
                     QuantisedProjections& counts) {
  if (quantisation == Quantisation::decoded) return {};
  const MatrixFormat format = format_of(quantisation);
  if (format.plain()) return own;
  const bool whole = cols % format.unit() == 0;
  ++(!own.plain() ? counts.already : whole ? counts.quantised : counts.kept);
  return !own.plain() || !whole ? own : format;
}

/// Decides about a layer's experts, which are quantised alike. `own` are their formats. Returns
/// whether they change.
bool experts_change(const LlamaConfig& config, const LlamaLayerFormats& own,
                    Quantisation quantisation, QuantisedProjections& counts) {
  const MatrixFormat format = format_of(quantisation);
  if (format.plain()) return false;
  const std::int64_t matrices = 3 * config.experts.count;
  const bool already = !own.expert_gate_up.plain() || !own.expert_down.plain();
  const bool whole =
      config.dim % format.unit() == 0 && config.experts.hidden_dim % format.unit() == 0;
  (already ? counts.already : whole ? counts.quantised : counts.kept) += matrices;
  return !already && whole;
}

void quantise_experts(LlamaModel& model, LlamaLayer& layer, const LlamaLayerFormats& own,
                      Quantisation quantisation, DType activations, QuantisedProjections& counts) {
  if (layer.experts.empty()) return;
  const bool decoded = quantisation == Quantisation::decoded;
  if (!decoded && !experts_change(model.config, own, quantisation, counts)) return;
  for (LlamaExpert& expert : layer.experts) {
    for (WeightView* view : {&expert.gate, &expert.up, &expert.down}) {
      if (decoded) {
        view->decoded = true;
      } else {
        *view = quantised(model, *view, format_of(quantisation), activations);
      }
    }
  }
}

}  // namespace

std::optional<Quantisation> quantisation_from_string(std::string_view name) {
  const auto* const found = std::find(quantisation_names.begin(), quantisation_names.end(), name);
  if (found == quantisation_names.end()) return std::nullopt;
  constexpr std::array values{Quantisation::decoded, Quantisation::q8_0, Quantisation::q4_0,
                              Quantisation::mxfp4,   Quantisation::int4, Quantisation::fp8};
  return values.at(static_cast<std::size_t>(found - quantisation_names.begin()));
}

MatrixFormat format_of(Quantisation quantisation) {
  switch (quantisation) {
    case Quantisation::q8_0:
      return {WeightFormat::q8_0};
    case Quantisation::q4_0:
      return {WeightFormat::q4_0};
    case Quantisation::mxfp4:
      return {WeightFormat::mxfp4, kernels::only_group(WeightFormat::mxfp4)};
    case Quantisation::int4:
      return {WeightFormat::int4, 128};
    case Quantisation::fp8:
      return {.scaled = ScaledFormat{}};
    default:
      return {};
  }
}

QuantisedProjections quantise(LlamaConfig& config, Quantisation quantisation) {
  QuantisedProjections counts;
  if (quantisation == Quantisation::decoded) config.formats = {};
  if (format_of(quantisation).plain()) return counts;
  auto& layers = config.formats.layers;
  layers.resize(static_cast<std::size_t>(config.layers));
  for (LlamaLayerFormats& layer : layers) {
    const std::int64_t index = &layer - layers.data(), ffn = config.ffn_dim(index);
    const auto change = [&](MatrixFormat& format, std::int64_t cols) {
      format = changed(format, cols, quantisation, counts);
    };
    for (MatrixFormat* in : {&layer.wq, &layer.wk, &layer.wv}) change(*in, config.dim);
    change(layer.wo, config.q_dim());
    if (ffn > 0) {
      for (MatrixFormat* in : {&layer.gate, &layer.up}) change(*in, config.dim);
      change(layer.down, ffn);
    }
    if (!config.has_experts(index)) continue;
    if (experts_change(config, layer, quantisation, counts)) {
      layer.expert_gate_up = layer.expert_down = format_of(quantisation);
    }
  }
  return counts;
}

QuantisedProjections quantise(LlamaModel& model, Quantisation quantisation, DType activations) {
  QuantisedProjections counts;
  const LlamaFormats stored = formats_of(model.weights);
  for (LlamaLayer& layer : model.weights.layers) {
    quantise_experts(model, layer, stored.layer(&layer - model.weights.layers.data()), quantisation,
                     activations, counts);
    for (WeightView* view :
         {&layer.wq, &layer.wk, &layer.wv, &layer.wo, &layer.gate, &layer.up, &layer.down}) {
      if (view->data == nullptr) continue;  // a layer may have experts alone
      const MatrixFormat own = view->format();
      const MatrixFormat format = changed(own, view->cols, quantisation, counts);
      if (format == own) continue;
      if (!format.plain()) {
        *view = quantised(model, *view, format, activations);
      } else {
        view->decoded = true;
      }
    }
  }
  if (quantisation == Quantisation::decoded) model.weights.head.decoded = true;
  model.config.formats = formats_of(model.weights);
  return counts;
}

std::string quantised_formats(const LlamaConfig& config) {
  std::set<std::string_view> names;
  const auto add = [&](const MatrixFormat& format) {
    if (format.quantised) names.insert(traits(*format.quantised).name);
    if (format.scaled) names.insert(to_string(format.scaled->numbers));
  };
  add(config.formats.head);
  for (const LlamaLayerFormats& layer : config.formats.layers) {
    for (const MatrixFormat& format : layer.all()) add(format);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace greta::runtime
