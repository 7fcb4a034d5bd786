#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tuner/diagnose/causes/causes.hpp"
#include "tuner/diagnose/where.hpp"

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
  judge.add({.kind = "race",
             .words = fmt::format(
                 "threads race: {} differ between {} runs on the same inputs",
                 varying.all == 1 ? "1 element" : fmt::format("{} elements", varying.all),
                 evidence.equal_runs()),
             .explained = explained,
             .residual = 1 - explained,
             .score = 0.5 + 0.5 * explained,
             .evidence =
                 fmt::format("{}; {} of them are correct in some runs", varying.where, sometimes)});
}

void offer_unwritten(Judge& judge) {
  const Evidence& evidence = judge.evidence();
  const Marked found = marked(evidence, &ExaminedOutput::unwritten);
  if (found.wrong == 0) return;
  const double explained = share_of(found.wrong, evidence.wrong());
  judge.add({.kind = "not written",
             .words = "elements of the output are never written: a tile, a tail or a part of the "
                      "grid is missing",
             .explained = explained,
             .residual = 1 - explained,
             .score = explained,
             .evidence = "they contain what was there before the launch; " + found.where});
}

void offer_uninitialised(Judge& judge, std::vector<char> ExaminedOutput::*marks,
                         const std::string& memory) {
  const Evidence& evidence = judge.evidence();
  const Marked found = marked(evidence, marks);
  if (found.all == 0) return;
  const double explained = share_of(found.wrong, evidence.wrong());
  judge.add({.kind = "uninitialised read",
             .words = fmt::format("the kernel reads {} before it writes it", memory),
             .explained = explained,
             .residual = 1 - explained,
             .score = 0.2 + 0.8 * explained,
             .evidence = fmt::format("results change with its contents before the launch; {}",
                                     found.where)});
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
  judge.add(
      {.kind = "uninitialised read",
       .words = "the kernel reads outside of an operand, or shared memory or a register "
                "before it is written: results are NaN",
       .explained = explained,
       .residual = 1 - explained,
       .score = 0.6 * explained,
       .evidence = "no operand contains NaN, and the memory around operands does; " + nan.where});
}

/// Zeros are what many causes predict, so that they have a cause of their own.
void offer_zeros(Judge& judge) {
  const Evidence& evidence = judge.evidence();
  const Marked zeros = marked_by(evidence, [](const ExaminedOutput& output, std::size_t i) {
    return output.wrong[i] != 0 && output.got[i] == 0 && is_floating(output.spec.dtype);
  });
  if (zeros.all == 0) return;
  const double explained = share_of(zeros.all, evidence.wrong());
  judge.add({.kind = "zero result",
             .words = "elements are 0: what they are made of is never loaded, added or stored",
             .explained = explained,
             .residual = 1 - explained,
             .score = explained,
             .evidence = zeros.where});
}

/// Writes outside of operands are found by their guard zones, and may be the only error.
void offer_guards(Judge& judge) {
  const std::string& message = judge.evidence().failed().message;
  const auto at = message.find("wrote");
  if (at == std::string::npos && message.find("left counters") == std::string::npos) return;
  judge.add(
      {.kind = "write out of bounds",
       .words = message.find("input") != std::string::npos
                    ? "the kernel writes to an operand that it may only read"
                : at == std::string::npos
                    ? "the kernel leaves counters in the workspace that the next run starts from"
                    : "the kernel writes outside of an operand",
       .explained = judge.evidence().wrong() == 0 ? 1.0 : 0.0,
       .residual = judge.evidence().wrong() == 0 ? 0.0 : 1.0,
       .score = judge.evidence().wrong() == 0 ? 1.0 : 0.5,
       .evidence = message});
}

}  // namespace

void offer_runs(Judge& judge) {
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
  if (!has_nan) offer_nan(judge);
  offer_zeros(judge);
  offer_guards(judge);
}

}  // namespace greta::tuner
