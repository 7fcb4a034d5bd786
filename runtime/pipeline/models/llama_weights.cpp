#include "runtime/pipeline/models/llama_weights.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <set>
#include <string>
#include <utility>

namespace greta::runtime {
namespace {

/// Returns a scale, rounded to a type.
double scale_at(const GroupedWeights& groups, std::size_t index, DType type) {
  const double scale = load_element(groups.type, groups.scales, index);
  if (type == groups.type) return scale;
  std::array<std::byte, 2> stored{};
  store_element(type, stored.data(), 0, scale);
  return load_element(type, stored.data(), 0);
}

void read_groups(const WeightView& view, std::size_t first, std::size_t count, DType scales,
                 double* values) {
  const GroupedWeights& groups = *view.groups;
  const bool four = traits(groups.format).bits == 4, numbers = groups.format == WeightFormat::mxfp4;
  const auto group = static_cast<std::size_t>(groups.group);
  std::size_t known = static_cast<std::size_t>(-1);  // group whose scale and zero point are known
  double scale = 0, zero = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = first + i;  // rows are whole groups, so that groups are numbered as one
    if (at / group != known) {
      known = at / group;
      scale = groups.type == DType::u8
                  ? kernels::e8m0_value(std::to_integer<int>(groups.scales[known]))
                  : scale_at(groups, known, numbers ? groups.type : scales);
      zero = groups.zeros != nullptr ? std::to_integer<int>(groups.zeros[known]) : four ? 8 : 0;
    }
    int integer = std::to_integer<int>(view.data[four ? at / 2 : at]);
    if (four) {
      integer = at % 2 == 0 ? integer & 15 : integer >> 4;
    } else if (groups.zeros == nullptr && integer > 127) {
      integer -= 256;
    }
    values[i] = scale * (numbers ? kernels::e2m1_value(integer) : integer - zero);
  }
}

void read_scaled(const WeightView& view, std::size_t first, std::size_t count, double* values) {
  const ScaledFormat& format = view.scaled->format;
  const auto cols = static_cast<std::size_t>(view.cols);
  const auto block = static_cast<std::size_t>(ScaledFormat::block);
  const auto across = static_cast<std::size_t>(format.scale_cols(view.cols));
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t row = (first + i) / cols, col = (first + i) % cols;
    const std::size_t scale = format.blocks ? row / block * across + col / block : row;
    values[i] =
        load_element(DType::f32, view.scaled->scales, scale) *
        kernels::decode_byte(format.numbers, std::to_integer<std::uint8_t>(view.data[first + i]));
  }
}

/// Reads elements of rows whose columns are in another order.
void read_reordered(const WeightView& view, std::size_t first, std::size_t count, double* values,
                    std::optional<DType> scales) {
  WeightView stored = view;
  stored.order = nullptr;
  const auto cols = static_cast<std::size_t>(view.cols);
  std::vector<double> row(cols);
  for (std::size_t done = 0; done < count;) {
    const std::size_t begin = (first + done) % cols, length = std::min(cols - begin, count - done);
    stored.read(first + done - begin, cols, row.data(), scales);
    for (std::size_t i = 0; i < cols; ++i) {
      const auto at = static_cast<std::size_t>(view.order[i]);
      if (at >= begin && at < begin + length) values[done + at - begin] = row[i];
    }
    done += length;
  }
}

/// Numbers the orders of matrices that multiply the same rows.
void number_orders(std::initializer_list<std::pair<const WeightView*, MatrixFormat*>> matrices) {
  std::vector<const WeightView*> orders;
  for (const auto& [view, format] : matrices) {
    if (format->order == 0) continue;
    const auto same = [&view = view](const WeightView* other) {
      return std::equal(view->order, view->order + view->cols, other->order);
    };
    const auto found = std::find_if(orders.begin(), orders.end(), same);
    format->order = static_cast<int>(found - orders.begin()) + 1;
    if (found == orders.end()) orders.push_back(view);
  }
}

}  // namespace

MatrixFormat WeightView::format() const {
  if (decoded || !quantised()) return {};
  MatrixFormat format;
  if (scaled) {
    format.scaled = scaled->format;
  } else if (groups) {
    format = {groups->format, groups->group, groups->zeros != nullptr};
  } else if (*blocks == BlockFormat::mxfp4) {
    format = {WeightFormat::mxfp4, kernels::only_group(WeightFormat::mxfp4)};
  } else if (const auto same = same_weights(*blocks)) {
    format.quantised = weight_format_from_string(to_string(*same));
  }
  format.order = order != nullptr ? 1 : 0;
  return format;
}

void WeightView::read(std::size_t first, std::size_t count, double* values,
                      std::optional<DType> scales) const {
  if (order != nullptr) return read_reordered(*this, first, count, values, scales);
  if (groups) return read_groups(*this, first, count, scales.value_or(groups->type), values);
  if (scaled) return read_scaled(*this, first, count, values);
  const std::byte* const from = data + offset(first);
  if (blocks) {
    decode_blocks(*blocks, from, count / block_traits(*blocks).elements, values);
    return;
  }
  with_dtype(dtype, [&](auto type) {
    for (std::size_t i = 0; i < count; ++i) {
      values[i] = static_cast<double>(load<decltype(type)::value>(from, i));
    }
  });
}

namespace {

/// Returns what messages call numbers of eight bits with scales.
std::string name_of(const ScaledFormat& format) {
  return format.numbers == ByteFormat::int8 ? "int8" : "fp8";
}

std::string name_of(const MatrixFormat& format) {
  if (format.scaled) return name_of(*format.scaled);
  if (!format.quantised) return "numbers";
  return std::string(traits(*format.quantised).name) +
         (format.order != 0 ? " in activation order" : "");
}

/// The format of matrices that one launch reads.
struct CommonFormat {
  MatrixFormat format{};
  bool alike = true;

  /// Adds a matrix. One without zero points can get the implied ones.
  void add(const MatrixFormat& other, bool first) {
    if (first) format = other;
    MatrixFormat same = other;
    same.zeros = format.zeros = format.zeros || other.zeros;
    alike = alike && same == format;
  }
};

bool can_read(const MatrixFormat& gate_up, const MatrixFormat& down) {
  const auto blocks = [](const MatrixFormat& f) { return f.quantised && in_blocks(*f.quantised); };
  if (gate_up.order != 0 || down.order != 0) return false;  // each expert has its own
  return gate_up == down || (blocks(gate_up) && blocks(down));
}

/// Sets the formats of a layer's experts. Returns their names if products can't read them.
std::string set_experts(const LlamaLayer& layer, LlamaLayerFormats& formats) {
  CommonFormat gate_up, down;
  std::set<std::string> names;
  for (const LlamaExpert& expert : layer.experts) {
    const bool first = &expert == &layer.experts.front();
    gate_up.add(expert.gate.format(), first);
    gate_up.add(expert.up.format(), false);
    down.add(expert.down.format(), first);
    for (const WeightView* view : {&expert.gate, &expert.up, &expert.down}) {
      names.insert(name_of(view->format()));
    }
  }
  if (gate_up.format.group > 0 && gate_up.format.group == down.format.group) {
    gate_up.format.zeros = down.format.zeros = gate_up.format.zeros || down.format.zeros;
  }
  formats.expert_gate_up = gate_up.format;
  formats.expert_down = down.format;
  if (gate_up.alike && down.alike && can_read(gate_up.format, down.format)) return {};
  return fmt::format("{}", fmt::join(names, " and "));
}

}  // namespace

bool LlamaFormats::given_inputs() const {
  const auto given = [](const MatrixFormat& f) { return f.scaled && f.scaled->given_input; };
  return given(head) || std::any_of(layers.begin(), layers.end(), [&](const auto& layer) {
           const auto all = layer.all();
           return std::any_of(all.begin(), all.end(), given);
         });
}

LlamaFormats formats_of(const LlamaWeights& weights) {
  LlamaFormats formats;
  bool any = false;
  for (const LlamaLayer& layer : weights.layers) {
    formats.layers.push_back({layer.wq.format(),
                              layer.wk.format(),
                              layer.wv.format(),
                              layer.wo.format(),
                              layer.gate.format(),
                              layer.up.format(),
                              layer.down.format(),
                              {},
                              {}});
    LlamaLayerFormats& own = formats.layers.back();
    number_orders({{&layer.wq, &own.wq}, {&layer.wk, &own.wk}, {&layer.wv, &own.wv}});
    number_orders({{&layer.gate, &own.gate}, {&layer.up, &own.up}});
    if (const std::string unread = set_experts(layer, own); !unread.empty()) {
      formats.unread_experts = unread;
    }
    any = any || !(formats.layers.back() == LlamaLayerFormats{});
  }
  if (!any) formats.layers.clear();
  formats.head = weights.head.format();
  return formats;
}

DecodedMatrices decoded_matrices(const LlamaWeights& weights, DType type) {
  DecodedMatrices found;
  const auto add = [&](const WeightView& view) {
    if (!view.quantised() || !view.format().plain()) return;
    ++found.counts[view.blocks   ? std::string(to_string(*view.blocks))
                   : view.scaled ? name_of(view.scaled->format)
                   : view.groups->type == DType::f32
                       ? std::string("nvfp4")
                       : std::string(traits(view.groups->format).name)];
    found.bytes += bytes_of(type, view.elements());
  };
  for (const LlamaLayer& layer : weights.layers) {
    for (const WeightView* view :
         {&layer.wq, &layer.wk, &layer.wv, &layer.wo, &layer.gate, &layer.up, &layer.down}) {
      add(*view);
    }
    for (const LlamaExpert& expert : layer.experts) {
      for (const WeightView* view : {&expert.gate, &expert.up, &expert.down}) add(*view);
    }
  }
  if (weights.head.data != weights.embedding.data) add(weights.head);
  return found;
}

}  // namespace greta::runtime
