#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tuner/diagnose/causes/causes.hpp"
#include "tuner/diagnose/where.hpp"
#include "tuner/evaluate/written.hpp"

namespace greta::tuner {
namespace {

struct Marked {
  std::size_t all = 0, wrong = 0;
  std::string where;
};

/// Counts the elements for which is_marked(output, index) holds, and how many of the wrong ones do.
template <typename IsMarked>
Marked marked_by(const Evidence& evidence, const IsMarked& is_marked) {
  Marked found;
  for (const ExaminedOutput& output : evidence.outputs()) {
    std::vector<char> marks(output.got.size(), 0);
    for (std::size_t i = 0; i < marks.size(); ++i) {
      marks[i] = is_marked(output, i) ? 1 : 0;
      if (marks[i] != 0 && output.wrong[i] != 0) ++found.wrong;
    }
    const std::size_t here = output.count(marks);
    if (here == 0) continue;
    found.all += here;
    found.where += (found.where.empty() ? "" : "; ") + words_of_place(evidence, output, marks);
  }
  return found;
}

Marked marked(const Evidence& evidence, std::vector<char> ExaminedOutput::*marks) {
  return marked_by(evidence, [marks](const ExaminedOutput& output, std::size_t i) {
    return (output.*marks)[i] != 0;
  });
}

double share_of(std::size_t part, std::size_t all) {
  return all == 0 ? 1 : static_cast<double>(part) / static_cast<double>(all);
}

/// Keeps a cause that was observed at a share of the wrong elements. It states no values of these.
void add_observed(Judge& judge, std::string kind, std::string words, double explained, double score,
                  std::string evidence) {
  judge.add({.kind = std::move(kind),
             .words = std::move(words),
             .explained = explained,
             .score = score,
             .evidence = std::move(evidence)});
}

/// Keeps a cause that observations prove.
void add_certain(Judge& judge, const char* kind, const char* words, std::string evidence) {
  add_observed(judge, kind, words, 1, 1, std::move(evidence));
}

/// What varies without a race: results of a run that finds what an earlier one left, and garbage.
void offer_no_race(Judge& judge, const Marked& varying, std::size_t sometimes) {
  constexpr std::size_t least = 2;
  const Evidence& evidence = judge.evidence();
  const bool by_run = std::all_of(
      evidence.outputs().begin(), evidence.outputs().end(), [&](const ExaminedOutput& output) {
        return output.count(output.varies) == 0 ||
               (output.kinds_of_runs >= least && output.kinds_of_runs < evidence.equal_runs());
      });
  if (by_run && varying.all >= least) {
    add_certain(judge, "left state",
                "whole runs differ from others: the kernel leaves memory changed that the next run "
                "starts from, such as counters that are not reset",
                varying.where);
  }
  // The race detector sees shared memory only: several workgroups may race in other memory.
  const auto& launches = evidence.failed().kernel.launches;
  const bool one_workgroup =
      !launches.empty() && std::all_of(launches.begin(), launches.end(), [](const auto& launch) {
        return launch.grid[0] * launch.grid[1] * launch.grid[2] == 1;
      });
  if (sometimes == 0 && one_workgroup && evidence.failed().sanitizers.ran &&
      evidence.failed().sanitizers.race.empty()) {
    add_certain(judge, "uninitialised read",
                "results are other garbage in each run, and no threads race: a register or memory "
                "is read before it is written",
                varying.where);
  }
}

/// Local variables that are never set: what they begin with changes the results.
void offer_registers(Judge& judge) {
  const Evidence& evidence = judge.evidence();
  const Marked found = marked(evidence, &ExaminedOutput::reads_registers);
  const double explained = share_of(found.wrong, evidence.wrong());
  // A few suffice, as an address that is never set moves others; but races differ between builds.
  if (found.all == 0 || 2 * found.all < marked(evidence, &ExaminedOutput::varies).all) return;
  std::size_t right = 0;
  for (const ExaminedOutput& output : evidence.outputs()) right += output.right_with_zeros;
  add_observed(judge, "uninitialised read",
               "a register, or an element of a local array, is read before it is written",
               explained, 1 + 0.05 * explained,
               fmt::format("results differ between local variables that begin with a "
                           "pattern and with 0, with which {} of {} are correct; {}",
                           right, found.all, found.where));
}

/// Workgroups that count themselves in, the last of which combines what all computed. If one is
/// taken for the last too early, it finds the right parts in the workspace only after another run.
void offer_arrival(Judge& judge) {
  const Evidence& evidence = judge.evidence();
  const auto& buffers = evidence.failed().kernel.buffers;
  // Its counters are all of the workspace that is checked.
  if (std::none_of(buffers.begin(), buffers.end(), [](const CaseBuffer& buffer) {
        return buffer.zeroed_bytes > 0 || (buffer.name == "workspace" && !buffer.expected.empty());
      }))
    return;
  const Marked early = marked_by(evidence, [](const ExaminedOutput& output, std::size_t i) {
    return output.wrong[i] != 0 && output.right_after_another[i] != 0;
  });
  if (const double explained = share_of(early.all, evidence.wrong());
      early.all > 0 && explained > 0.5) {
    add_observed(judge, "arrival counter",
                 "a workgroup combines the parts of others before all have arrived: the "
                 "number to which arrivals are counted, or the order, is wrong",
                 explained, 0.6 + 0.45 * explained,
                 "results are correct if the workspace contains the parts of an earlier "
                 "run; " +
                     early.where);
    return;
  }
  const Marked missing = marked(evidence, &ExaminedOutput::unwritten);
  const std::string& message = evidence.failed().message;
  if (message.find("left counters") == std::string::npos) return;
  judge.add({.kind = "arrival counter",
             .words = "workgroups count their arrivals to a wrong number, or don't reset the "
                      "counters, from which the next run starts",
             .explained = 1,
             .residual = 0,
             .score = 1.05,
             .evidence = message + (missing.all > 0 ? "; " + missing.where : "")});
}

void offer_race(Judge& judge) {
  const Evidence& evidence = judge.evidence();
  const Marked varying = marked(evidence, &ExaminedOutput::varies);
  if (varying.all == 0) return;
  std::size_t sometimes = 0;
  for (const ExaminedOutput& output : evidence.outputs()) {
    for (std::size_t i = 0; i < output.varies.size(); ++i)
      sometimes += output.varies[i] != 0 && output.ever_right[i] != 0 ? 1 : 0;
  }
  const double explained = share_of(varying.wrong, evidence.wrong());
  offer_no_race(judge, varying, sometimes);
  add_observed(judge, "race",
               fmt::format("threads race: {} differ between {} runs on the same inputs",
                           varying.all == 1 ? "1 element" : fmt::format("{} elements", varying.all),
                           evidence.equal_runs()),
               explained, 0.5 + 0.5 * explained,
               fmt::format("{}; {} of them are correct in some runs", varying.where, sometimes));
}

/// The workgroup that arrives last writes the output, if no other one does.
void offer_no_last(Judge& judge, const Marked& unwritten) {
  const Evidence& evidence = judge.evidence();
  std::size_t elements = 0;
  for (const ExaminedOutput& output : evidence.outputs()) elements += output.want.size();
  const auto& buffers = evidence.failed().kernel.buffers;
  const bool counts = std::any_of(buffers.begin(), buffers.end(), [](const CaseBuffer& buffer) {
    return buffer.name == "workspace" && !buffer.expected.empty();  // of counters alone
  });
  if (!counts || unwritten.all < elements) return;
  judge.add({.kind = "arrival counter",
             .words = "no workgroup takes itself for the last one that arrives, which has to write "
                      "the output: the number to which arrivals are counted, its comparison, or "
                      "the reset of the counters is wrong",
             .explained = 1,
             .residual = 0,
             .score = 1.02,
             .evidence = "the workspace has counters, and no element of an output is written"});
}

void offer_unwritten(Judge& judge) {
  const Evidence& evidence = judge.evidence();
  const Marked found = marked(evidence, &ExaminedOutput::unwritten);
  if (found.wrong == 0) return;
  offer_no_last(judge, found);
  const double explained = share_of(found.wrong, evidence.wrong());
  add_observed(judge, "not written",
               "elements of the output are never written: a tile, a tail or a part of the "
               "grid is missing, or they are written to another place",
               explained, explained,
               "they contain what was there before the launch; " + found.where);
}

void offer_uninitialised(Judge& judge, std::vector<char> ExaminedOutput::*marks,
                         const std::string& memory) {
  const Evidence& evidence = judge.evidence();
  const Marked found = marked(evidence, marks);
  if (found.all == 0) return;
  const double explained = share_of(found.wrong, evidence.wrong());
  add_observed(judge, "uninitialised read",
               fmt::format("the kernel reads {} before it writes it", memory), explained,
               0.2 + 0.8 * explained,
               fmt::format("results change with its contents before the launch; {}", found.where));
}

/// Results that change with what lies around operands, or in the gaps between their rows.
void offer_outside(Judge& judge) {
  const Evidence& evidence = judge.evidence();
  const Marked found = marked(evidence, &ExaminedOutput::reads_outside);
  if (found.wrong == 0) return;
  const double explained = share_of(found.wrong, evidence.wrong());
  add_observed(judge, "access out of bounds",
               "the kernel reads outside of an operand: an address, or the limit of a range, "
               "is wrong",
               explained, 0.75 * explained,
               "results change with the memory around operands; " + found.where);
}

/// NaN that does not depend on outputs and workspace comes from guard zones, shared memory and
/// registers, or from an invalid operation.
void offer_nan(Judge& judge) {
  const Evidence& evidence = judge.evidence();
  const Marked nan = marked_by(evidence, [](const ExaminedOutput& output, std::size_t i) {
    return output.wrong[i] != 0 && std::isnan(output.got[i]) && output.unwritten[i] == 0 &&
           output.reads_outputs[i] == 0 && output.reads_workspace[i] == 0;
  });
  if (nan.all == 0) return;
  const double explained = share_of(nan.all, evidence.wrong());
  add_observed(judge, "uninitialised read",
               "the kernel reads outside of an operand, or shared memory or a register "
               "before it is written: results are NaN",
               explained, 0.6 * explained,
               "no operand contains NaN, and the memory around operands does; " + nan.where);
}

/// Zeros are what many causes predict, so that they have a cause of their own.
void offer_zeros(Judge& judge) {
  const Evidence& evidence = judge.evidence();
  const Marked zeros = marked_by(evidence, [](const ExaminedOutput& output, std::size_t i) {
    return output.wrong[i] != 0 && output.got[i] == 0 && is_floating(output.spec.dtype);
  });
  if (zeros.all == 0) return;
  const double explained = share_of(zeros.all, evidence.wrong());
  add_observed(judge, "zero result",
               "elements are 0: what they are made of is never loaded, added or stored, or is "
               "read far outside of an operand",
               explained, 0.8 * explained, zeros.where);
}

/// Several workgroups that write the same elements, while others are never written, begin at wrong
/// places.
void offer_overlap(Judge& judge) {
  const Evidence& evidence = judge.evidence();
  const Marked varying = marked(evidence, &ExaminedOutput::varies);
  const Marked unwritten = marked(evidence, &ExaminedOutput::unwritten);
  if (varying.all == 0 || unwritten.all == 0) return;
  const double explained = share_of(varying.wrong + unwritten.wrong, evidence.wrong());
  judge.add(
      {.kind = "wrong head or batch",
       .words = "several workgroups write the same elements, and others are never written: "
                "where a tile, group, head or batch begins is wrong",
       .explained = std::min(1.0, explained),
       .residual = std::max(0.0, 1 - explained),
       .score = std::min(1.0, 0.1 + explained),
       .evidence = "differ between runs: " + varying.where + "; not written: " + unwritten.where});
}

/// Elements at the same position of each vector that are wrong, and all others right: one element
/// of what a thread holds is never set, or taken from elsewhere.
void offer_positions(Judge& judge) {
  const Evidence& evidence = judge.evidence();
  for (const ExaminedOutput& output : evidence.outputs()) {
    const std::size_t wrong = output.count(output.wrong);
    if (wrong < 4 || wrong != evidence.wrong()) continue;
    const auto cols = static_cast<std::size_t>(output.spec.cols);
    for (const auto& [length, by_row] :
         {std::pair(2U, true), std::pair(4U, true), std::pair(8U, true), std::pair(16U, true),
          std::pair(2U, false), std::pair(4U, false), std::pair(8U, false)}) {
      if (cols <= length) continue;
      std::vector<std::size_t> at(length, 0), all(length, 0);
      for (std::size_t i = 0; i < output.wrong.size(); ++i) {
        const auto position = (by_row ? i % cols : i) % length;
        ++all[position];
        at[position] += output.wrong[i] != 0 ? 1 : 0;
      }
      const auto most =
          static_cast<std::size_t>(std::max_element(at.begin(), at.end()) - at.begin());
      if (at[most] != wrong || 2 * at[most] < all[most]) continue;
      judge.add({.kind = "uninitialised read",
                 .words = fmt::format("element {} of each vector of {} has a value that nothing "
                                      "wrote, or that belongs elsewhere; the others are correct",
                                      most, length),
                 .explained = 1,
                 .residual = 1,
                 .score = 0.3,
                 .evidence = words_of_place(evidence, output, output.wrong)});
      return;
    }
  }
}

/// Elements of an operand that is read and written keep their values if they are never written.
void offer_kept(Judge& judge) {
  const Evidence& evidence = judge.evidence();
  for (std::size_t o = 0; o < evidence.outputs().size(); ++o) {
    const ExaminedOutput& output = evidence.outputs()[o];
    if (output.spec.role != Role::input_output || output.count(output.wrong) == 0) continue;
    for (const HostTensor& input : evidence.inputs()) {
      if (input.spec.name != output.spec.name || input.spec.elements() != output.want.size())
        continue;
      Prediction predicted = evidence.expected();
      for (std::size_t i = 0; i < output.want.size(); ++i) predicted[o][i] = {input.at(i), 0};
      judge.offer("not written",
                  fmt::format("elements of {} are never written: they keep what was there before "
                              "the launch",
                              output.spec.name),
                  predicted);
    }
  }
}

/// What sanitizers reported of a kernel on hip-host.
void offer_sanitizers(Judge& judge) {
  const SanitizerFindings& found = judge.evidence().failed().sanitizers;
  if (!found.race.empty()) {
    // A missing barrier lets threads read too early, or write too early what others still read.
    const bool both_write = found.race.starts_with("WRITE after WRITE");
    judge.add(
        {.kind = both_write ? "wrong index" : "race",
         .words =
             both_write
                 ? "several threads write the same place of shared memory, and others are never set"
                 : "threads race in shared memory: a barrier, or waiting for a copy, is missing",
         .explained = 1,
         .residual = 0,
         .score = 0.97,
         .evidence = found.race});
  }
  if (!found.access.empty()) {
    // What lies outside differs between runs, which a race alone does not explain.
    const auto& outputs = judge.evidence().outputs();
    const bool varies = std::any_of(outputs.begin(), outputs.end(), [](const auto& output) {
      return output.count(output.varies) > 0;
    });
    judge.add({.kind = "access out of bounds",
               .words =
                   "the kernel reads or writes outside of an operand, of shared memory or of an "
                   "array",
               .explained = 1,
               .residual = 1,
               .score = varies && found.race.empty() ? 1.02 : 0.65,
               .evidence = found.access});
  }
}

/// Offers what the check's message says of writes to places that results do not show, which may be
/// the only error.
void offer_message(Judge& judge, const char* kind, const char* words) {
  const bool alone = judge.evidence().wrong() == 0;
  judge.add({.kind = kind,
             .words = words,
             .explained = alone ? 1.0 : 0.0,
             .residual = alone ? 0.0 : 1.0,
             .score = alone ? 1.0 : 0.5,
             .evidence = judge.evidence().failed().message});
}

/// Writes to rows of no group and of no expert, and outside of operands, which guard zones find.
void offer_writes(Judge& judge) {
  const std::string& message = judge.evidence().failed().message;
  const auto says = [&](std::string_view words) {
    return message.find(words) != std::string::npos;
  };
  if (says(writes_row_of_nobody)) {
    offer_message(judge, "rows written that are of no group",
                  "the kernel writes rows that belong to no group or expert");
  } else if (says("wrote")) {
    offer_message(judge, "write out of bounds",
                  says("input") ? "the kernel writes to an operand that it may only read"
                                : "the kernel writes outside of an operand");
  }
}

}  // namespace

void offer_runs(Judge& judge) {
  offer_arrival(judge);
  offer_registers(judge);
  offer_race(judge);
  offer_unwritten(judge);
  offer_uninitialised(judge, &ExaminedOutput::reads_outputs, "an output");
  offer_uninitialised(judge, &ExaminedOutput::reads_workspace, "the workspace");
  const auto& inputs = judge.evidence().inputs();
  const bool has_nan = std::any_of(inputs.begin(), inputs.end(), [](const HostTensor& input) {
    for (std::size_t i = 0; i < input.spec.elements(); ++i) {
      if (std::isnan(input.at(i))) return true;
    }
    return false;
  });
  offer_outside(judge);
  if (!has_nan) offer_nan(judge);
  offer_zeros(judge);
  offer_kept(judge);
  offer_overlap(judge);
  offer_positions(judge);
  offer_sanitizers(judge);
  offer_writes(judge);
}

}  // namespace greta::tuner
