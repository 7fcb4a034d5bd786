#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "kernels/model/problem_rules.hpp"
#include "tuner/diagnose/causes/causes.hpp"
#include "tuner/diagnose/causes/in_memory.hpp"
#include "tuner/diagnose/where.hpp"

namespace greta::tuner {
namespace {

/// One operand and what may be wrong with how the kernel reads it.
class Operand {
 public:
  Operand(Judge& judge, std::size_t which)
      : judge_(judge),
        evidence_(judge.evidence()),
        which_(which),
        memory_(judge.evidence(), which),
        spec_(judge.evidence().inputs()[which].spec) {}

  void offer_transposed() {
    if (spec_.rows < 2 || spec_.cols < 2) return;
    offer("transposed operand",
          fmt::format("{} is read as if its columns were contiguous (transposed or column-major)",
                      spec_.name),
          [&](std::int64_t row, std::int64_t col) { return memory_.at(col * spec_.rows + row); });
  }

  /// The same within each of several blocks of rows, those of a batch's matrices.
  void offer_transposed_blocks() {
    for (const auto& [name, extent] : evidence_.problem().dims) {
      const std::int64_t block = extent;
      if (block < 2 || spec_.cols < 2 || spec_.rows % block != 0 || spec_.rows == block) continue;
      offer("transposed operand",
            fmt::format("{}: each block of {} rows is read as if its columns were contiguous "
                        "(transposed or column-major)",
                        spec_.name, block),
            [&](std::int64_t row, std::int64_t col) {
              return memory_.at(row / block * block * memory_.stride() + col * block + row % block);
            });
    }
  }

  void offer_shifted() {
    std::set<std::int64_t> rows{1, -1, 2, -2}, cols{1, -1, 2, -2, 4, -4};
    if (const auto part = part_of(evidence_.failed(), spec_.rows); part > 0)
      rows.insert({part, -part});
    if (const auto part = part_of(evidence_.failed(), spec_.cols); part > 0)
      cols.insert({part, -part});
    for (const std::int64_t by : rows) {
      if (std::abs(by) >= spec_.rows) continue;
      offer("shifted operand",
            fmt::format("{} is read {} row{} too {}", spec_.name, std::abs(by),
                        std::abs(by) == 1 ? "" : "s", by > 0 ? "far" : "early"),
            [&](std::int64_t row, std::int64_t col) {
              return memory_.at((row + by) * memory_.stride() + col);
            });
    }
    for (const std::int64_t by : cols) {
      if (std::abs(by) >= spec_.cols) continue;
      offer("shifted operand",
            fmt::format("{} is read {} element{} too {}", spec_.name, std::abs(by),
                        std::abs(by) == 1 ? "" : "s", by > 0 ? "far" : "early"),
            [&](std::int64_t row, std::int64_t col) {
              return memory_.at(row * memory_.stride() + col + by);
            });
    }
  }

  void offer_strides() {
    if (spec_.rows < 2) return;
    const std::int64_t right = memory_.stride();
    std::set<std::int64_t> strides{right + 1,  right - 1, spec_.cols,
                                   spec_.rows, right / 2, 2 * right};
    for (const std::int64_t step : {4, 8, 16, 32, 64, 128}) {
      strides.insert((spec_.cols + step - 1) / step * step);
      strides.insert(spec_.cols / step * step);
    }
    for (const auto& [name, extent] : evidence_.problem().dims) strides.insert(extent);
    strides.erase(right);
    for (const std::int64_t stride : strides) {
      if (stride <= 0) continue;
      offer("wrong stride",
            fmt::format("rows of {} are read with a stride of {} elements, not {}", spec_.name,
                        stride, right),
            [&](std::int64_t row, std::int64_t col) { return memory_.at(row * stride + col); });
    }
  }

  /// The operand's rows and columns may consist of blocks, those of heads or of a batch.
  void offer_blocks() {
    for (const auto& [name, extent] : evidence_.problem().dims) {
      for (const bool rows : {true, false}) {
        const std::int64_t length = rows ? spec_.rows : spec_.cols;
        if (extent < 1 || length % extent != 0 || length / extent < 2) continue;
        if (blocks_.insert({rows, extent}).second) offer_blocks_of(rows, extent);
      }
    }
  }

  void offer_constant_index() {
    if (spec_.rows > 1) {
      offer("wrong index", fmt::format("{} is read from its first row in every row", spec_.name),
            [&](std::int64_t, std::int64_t col) { return memory_.at(col); });
    }
    if (spec_.cols > 1) {
      offer("wrong index",
            fmt::format("{} is read from its first column in every column", spec_.name),
            [&](std::int64_t row, std::int64_t) { return memory_.at(row * memory_.stride()); });
    }
  }

  void offer_values() {
    const auto own = [&](std::int64_t row, std::int64_t col) {
      return memory_.at(row * memory_.stride() + col);
    };
    const auto offer_value = [&](const char* kind, const char* words, const auto& value) {
      offer(kind, fmt::format("{} {}", spec_.name, words),
            [&](std::int64_t row, std::int64_t col) { return value(own(row, col)); });
    };
    if (!is_floating(spec_.dtype)) {
      // Other indices than those of the operand may be none that the reference can follow.
      double least = memory_.at(0), most = least;
      for (std::int64_t i = 0; i < spec_.rows * memory_.stride(); ++i) {
        most = std::max(most, memory_.at(i));
        least = std::min(least, memory_.at(i));
      }
      if (spec_.name == "lengths") most += 1;
      offer_value("off by one", "is taken as one more than it is",
                  [&](double x) { return std::min(x + 1, most); });
      offer_value("off by one", "is taken as one less than it is",
                  [&](double x) { return std::max(x - 1, least); });
      offer_value("ignored operand", "is ignored and taken as 0", [](double) { return 0.0; });
      return;
    }
    offer_value("ignored operand", "is skipped: it counts as 0", [](double) { return 0.0; });
    offer_value("ignored operand", "is skipped: it counts as 1", [](double) { return 1.0; });
    offer_value("wrong sign", "has the wrong sign", [](double x) { return -x; });
    offer_value("doubled operand", "counts twice", [](double x) { return 2 * x; });
    offer_value("wrong function", "is squared", [](double x) { return x * x; });
  }

  void offer_exchanged() {
    for (std::size_t other = 0; other < evidence_.inputs().size(); ++other) {
      const HostTensor& its = evidence_.inputs()[other];
      if (other == which_ || its.spec.rows != spec_.rows || its.spec.cols != spec_.cols ||
          its.spec.dtype != spec_.dtype)
        continue;
      Inputs inputs = evidence_.inputs();
      inputs[which_].data = its.data;
      judge_.offer_inputs("exchanged operands",
                          fmt::format("{} is read in place of {}", its.spec.name, spec_.name),
                          inputs);
      if (other < which_) continue;
      inputs[other].data = evidence_.inputs()[which_].data;
      judge_.offer_inputs("exchanged operands",
                          fmt::format("{} and {} are exchanged", spec_.name, its.spec.name),
                          inputs);
    }
  }

 private:
  template <typename Value>
  void offer(std::string kind, std::string words, const Value& value) {
    if (!judge_.time_left()) return judge_.hurry();
    judge_.offer_inputs(std::move(kind), std::move(words), replaced(evidence_, which_, value));
  }

  void offer_blocks_of(bool rows, std::int64_t block) {
    const std::int64_t blocks = (rows ? spec_.rows : spec_.cols) / block;
    const auto offer_from = [&](const std::string& words, const auto& from) {
      offer("wrong head or batch",
            fmt::format("{}: {} of {} {}", spec_.name, words, block, rows ? "rows" : "columns"),
            [&](std::int64_t row, std::int64_t col) {
              const std::int64_t index = rows ? row : col;
              const std::int64_t other = from(index / block) * block + index % block;
              if (index < 0 || other < 0 || other >= blocks * block) return not_a_number;
              return rows ? memory_.at(other * memory_.stride() + col)
                          : memory_.at(row * memory_.stride() + other);
            });
    };
    const std::string every = "every head or batch reads";
    offer_from(every + " the first block", [](std::int64_t) { return 0; });
    offer_from(every + " the next block", [](std::int64_t at) { return at + 1; });
    offer_from(every + " the block before its own", [](std::int64_t at) { return at - 1; });
    offer_from("the last block is read in place of the others",
               [&](std::int64_t) { return blocks - 1; });
    for (const std::int64_t group : {2, 3, 4, 8}) {
      if (group >= blocks || blocks % group != 0) continue;
      const std::int64_t other = blocks / group;
      offer_from(fmt::format("blocks are taken in the order of {} groups", group),
                 [=](std::int64_t at) { return at % other * group + at / other; });
    }
  }

  Judge& judge_;
  const Evidence& evidence_;
  std::size_t which_;
  InMemory memory_;
  TensorSpec spec_;
  std::set<std::pair<bool, std::int64_t>> blocks_;
};

/// Returns the inputs that a problem with other extents reads from the same memory: rows begin
/// where they do, and elements behind their ends are those that follow. Returns nothing if the
/// problem has other operands.
std::optional<Inputs> read_as(const Evidence& evidence, const Problem& problem) {
  Inputs inputs;
  std::size_t which = 0;
  for (const TensorSpec& spec : evidence.operation().tensors(problem)) {
    if (spec.role == Role::output) continue;
    if (which >= evidence.inputs().size()) return std::nullopt;
    const InMemory memory(evidence, which++);
    TensorSpec packed_spec = spec;
    packed_spec.stride = 0;
    HostTensor& made =
        inputs.emplace_back(HostTensor{packed_spec, std::vector<std::byte>(packed_spec.bytes())});
    for (std::int64_t row = 0; row < spec.rows; ++row) {
      for (std::int64_t col = 0; col < spec.cols; ++col) {
        const double value = memory.at(row * memory.stride() + col);
        // Past the operand, most memory is NaN or 0; NaN is what the predicted elements have.
        store_element(spec.dtype, made.data.data(), static_cast<std::size_t>(row * spec.cols + col),
                      value);
      }
    }
  }
  return inputs;
}

/// Offers that a dimension that outputs don't have is taken as longer or shorter than it is.
void offer_extents(Judge& judge) {
  const Evidence& evidence = judge.evidence();
  for (const auto& [name, extent] : evidence.problem().dims) {
    std::set<std::int64_t> others{extent + 1, extent - 1, extent + 2, extent - 2};
    for (const std::int64_t step : {4, 8, 16, 32, 64, 128})
      others.insert((extent + step - 1) / step * step);
    others.erase(extent);
    for (const std::int64_t other : others) {
      Problem problem = evidence.problem();
      problem.extent(name) = other;
      if (other < 1 || !check_problem(evidence.operation(), problem)) continue;
      const auto outputs = evidence.operation().tensors(problem);
      const bool same = std::all_of(outputs.begin(), outputs.end(), [&](const TensorSpec& spec) {
        return spec.role == Role::input ||
               std::any_of(evidence.outputs().begin(), evidence.outputs().end(),
                           [&](const ExaminedOutput& output) {
                             return output.spec.rows == spec.rows && output.spec.cols == spec.cols;
                           });
      });
      const auto inputs = same ? read_as(evidence, problem) : std::nullopt;
      if (!inputs) continue;
      const bool longer = other > extent;
      judge.offer_problem(std::abs(other - extent) == 1 ? "off by one"
                          : longer                      ? "read past the end"
                                                        : "missing tail",
                          fmt::format("{} is taken as {}, not {}{}", name, other, extent,
                                      longer ? ": what is read past the ends is added" : ""),
                          problem, *inputs);
    }
  }
}

}  // namespace

void offer_operands(Judge& judge) {
  offer_extents(judge);
  for (std::size_t i = 0; i < judge.evidence().inputs().size(); ++i) {
    Operand operand(judge, i);
    operand.offer_values();
    operand.offer_exchanged();
    operand.offer_transposed();
    operand.offer_transposed_blocks();
    if (!is_floating(judge.evidence().inputs()[i].spec.dtype)) continue;
    operand.offer_shifted();
    operand.offer_constant_index();
    operand.offer_blocks();
    operand.offer_strides();
  }
}

}  // namespace greta::tuner
