#include "tuner/diagnose/evidence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <utility>

#include "kernels/reference/findings.hpp"

namespace greta::tuner {
namespace {

std::vector<Expected> packed_expected(const TensorSpec& spec, const std::vector<Expected>& memory) {
  if (memory.size() == spec.elements()) return memory;
  std::vector<Expected> elements;
  for (std::int64_t row = 0; row < spec.rows; ++row) {
    const auto from = memory.begin() + spec.row_start(row);
    elements.insert(elements.end(), from, from + spec.cols);
  }
  return elements;
}

/// Returns whether an element's bytes are those of a pattern of 32 bits.
bool has_pattern(const HostTensor& tensor, std::size_t index, std::uint32_t pattern) {
  const auto size = bytes_of(tensor.spec.dtype, std::size_t{1});
  for (std::size_t byte = index * size; byte < (index + 1) * size; ++byte) {
    if (std::to_integer<std::uint32_t>(tensor.data[byte]) != (pattern >> byte % 4 * 8 & 0xFF))
      return false;
  }
  return true;
}

bool same_bits(const HostTensor& a, const HostTensor& b, std::size_t index) {
  const auto size = bytes_of(a.spec.dtype, std::size_t{1});
  return std::memcmp(a.data.data() + index * size, b.data.data() + index * size, size) == 0;
}

/// Returns packed inputs as the operands of a problem, with its strides and shapes. Returns nothing
/// if the problem has other operands, which the inputs lack.
std::optional<std::vector<HostTensor>> placed_for(const std::vector<TensorSpec>& specs,
                                                  const std::vector<HostTensor>& inputs) {
  std::vector<HostTensor> operands;
  for (const TensorSpec& spec : specs) {
    if (spec.role == Role::output) continue;
    const auto its = std::find_if(inputs.begin(), inputs.end(), [&](const HostTensor& input) {
      return input.spec.name == spec.name;
    });
    if (its == inputs.end() || its->spec.elements() != spec.elements()) return std::nullopt;
    TensorSpec own = spec;
    // Hypotheses about conversions give operands of 16 bits as the f32 that kernels make of them.
    const bool converted = its->spec.dtype == DType::f32 && is_floating(spec.dtype);
    if (converted) own.dtype = DType::f32;
    if (its->spec.dtype != own.dtype) return std::nullopt;
    operands.push_back(kernels::placed(HostTensor{packed(own), its->data}, own));
  }
  return operands;
}

/// Returns which of the first `count` runs give an element the same bits: for each run, the first
/// run that it equals.
std::vector<std::size_t> grouping(const std::vector<HostTensor>& runs, std::size_t count,
                                  std::size_t element) {
  std::vector<std::size_t> groups;
  for (std::size_t r = 0; r < count; ++r) {
    std::size_t same = 0;
    while (same < r && !same_bits(runs[same], runs[r], element)) ++same;
    groups.push_back(same);
  }
  return groups;
}

/// Computes ExaminedOutput::kinds_of_runs. The equal runs are the first ones.
std::size_t kinds_of_runs(const std::vector<char>& varies, const std::vector<HostTensor>& runs,
                          std::size_t equal) {
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i < varies.size(); ++i) {
    if (varies[i] == 0) continue;
    auto one = grouping(runs, equal, i);
    if (all.empty()) {
      all = std::move(one);
    } else if (one != all) {
      return 0;
    }
  }
  return std::set<std::size_t>(all.begin(), all.end()).size();
}

}  // namespace

bool agrees(double a, double b, double within) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b || std::abs(a - b) <= within;
}

std::size_t ExaminedOutput::count(const std::vector<char>& marked) const {
  return static_cast<std::size_t>(std::count(marked.begin(), marked.end(), char{1}));
}

Evidence::Evidence(const Operation& operation, const Problem& problem, const FailedCase& failed)
    : operation_(&operation), problem_(problem), failed_(&failed) {
  if (failed.runs.empty()) throw Error({Status::invalid_argument, "the case has no run", {}});
  const auto specs = operation.tensors(problem);
  const auto is_equal = [&](const KeptRun& run) { return run.begins_as(failed.runs.front()); };
  equal_runs_ =
      static_cast<std::size_t>(std::count_if(failed.runs.begin(), failed.runs.end(), is_equal));
  std::size_t output = 0;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const CaseBuffer& buffer = failed.kernel.buffers.at(i);
    if (specs[i].role != Role::output) inputs_.push_back(packed(HostTensor{specs[i], buffer.data}));
    if (specs[i].role != Role::input) examine(specs[i], buffer, output++);
  }
}

void Evidence::examine(const TensorSpec& spec, const CaseBuffer& buffer, std::size_t at) {
  ExaminedOutput made;
  made.spec = packed(spec);
  made.want = packed_expected(spec, buffer.expected);
  const std::size_t count = spec.elements();
  if (made.want.size() != count)
    throw Error({Status::invalid_argument, spec.name + " has no expected elements", {}});
  std::vector<HostTensor> runs;
  for (const KeptRun& run : failed_->runs) runs.push_back(packed(run.outputs.at(at)));
  const KeptRun& first = failed_->runs.front();
  for (auto* marks : {&made.wrong, &made.varies, &made.ever_right, &made.unwritten,
                      &made.reads_outputs, &made.reads_workspace, &made.reads_registers,
                      &made.reads_outside, &made.right_after_another}) {
    marks->assign(count, 0);
  }
  for (std::size_t i = 0; i < count; ++i) {
    made.got.push_back(runs.front().at(i));
    made.wrong[i] = kernels::accepts(made.want[i], made.got[i]) ? 0 : 1;
    bool unwritten = spec.role == Role::output;
    for (std::size_t r = 0; r < runs.size(); ++r) {
      const KeptRun& run = failed_->runs[r];
      unwritten = unwritten && has_pattern(runs[r], i, run.outputs_before);
      const bool differs = !same_bits(runs.front(), runs[r], i);
      if (run.outputs_before != first.outputs_before) {
        if (differs) made.reads_outputs[i] = 1;
      } else if (run.workspace_before != first.workspace_before) {
        if (differs) made.reads_workspace[i] = 1;
      } else {
        if (differs) made.varies[i] = 1;
        if (kernels::accepts(made.want[i], runs[r].at(i))) made.ever_right[i] = 1;
      }
    }
    made.unwritten[i] = unwritten && made.wrong[i] != 0 ? 1 : 0;
    if (unwritten || made.varies[i] != 0) made.reads_outputs[i] = made.reads_workspace[i] = 0;
  }
  examine_others(made, runs.front(), at);
  made.kinds_of_runs = kinds_of_runs(made.varies, runs, equal_runs_);
  wrong_ += made.count(made.wrong);
  outputs_.push_back(std::move(made));
}

void Evidence::examine_others(ExaminedOutput& made, const HostTensor& first, std::size_t at) const {
  const OtherRuns& others = failed_->others;
  std::vector<HostTensor> filled;
  for (const auto& run : others.with_set_registers) filled.push_back(packed(run.at(at)));
  for (std::size_t i = 0; i < made.want.size() && !filled.empty(); ++i) {
    // Runs of a build that differ have another cause, and builds may round in other ways.
    if (!same_bits(filled[0], filled[1], i) || !same_bits(filled[2], filled[3], i)) continue;
    if (agrees(filled[0].at(i), filled[2].at(i), made.want[i].bound)) continue;
    made.reads_registers[i] = 1;
    if (kernels::accepts(made.want[i], filled[2].at(i))) ++made.right_with_zeros;
  }
  made.got_with_finite_guards = made.got;
  if (!others.with_finite_guards.empty()) {
    const HostTensor guarded = packed(others.with_finite_guards.at(at));
    for (std::size_t i = 0; i < made.want.size(); ++i) {
      made.got_with_finite_guards[i] = guarded.at(i);
      const bool differs = !same_bits(first, guarded, i);
      if (differs && made.varies[i] == 0 && made.unwritten[i] == 0) made.reads_outside[i] = 1;
    }
  }
  if (others.after_another.empty()) return;
  const HostTensor after = packed(others.after_another.at(at));
  for (std::size_t i = 0; i < made.want.size(); ++i)
    made.right_after_another[i] = kernels::accepts(made.want[i], after.at(i)) ? 1 : 0;
}

std::optional<Prediction> Evidence::recompute(const Problem& problem,
                                              const std::vector<HostTensor>& inputs) const {
  try {
    const auto placed = placed_for(operation_->tensors(problem), inputs);
    if (!placed) return std::nullopt;
    auto made = operation_->reference(problem, *placed, failed_->seed)->expected();
    if (!made || made->size() != outputs_.size()) return std::nullopt;
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      if ((*made)[i].size() != outputs_[i].want.size()) return std::nullopt;
    }
    return made;
  } catch (const Error&) {  // these inputs have no reference
    return std::nullopt;
  }
}

Prediction Evidence::expected() const {
  Prediction all;
  for (const ExaminedOutput& output : outputs_) all.push_back(output.want);
  return all;
}

}  // namespace greta::tuner
