#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tuner/diagnose/causes/causes.hpp"

namespace greta::tuner {
namespace {

/// Returns a number rounded to a type.
double rounded_to(DType type, double value) {
  std::byte bytes[8];
  store_element(type, bytes, 0, value);
  return load_element(type, bytes, 0);
}

/// Returns a number of f32 with the 10 bits that TF32 keeps of its fraction.
double truncated_to_tf32(double value) {
  auto number = static_cast<float>(value);
  std::uint32_t bits = 0;
  std::memcpy(&bits, &number, sizeof bits);
  bits &= 0xFFFFE000;
  std::memcpy(&number, &bits, sizeof bits);
  return number;
}

/// Offers that an operand of f32 is rounded to a smaller type before it is used.
template <typename Round>
void offer_rounded(Judge& judge, const char* name, const Round& round) {
  const auto& inputs = judge.evidence().inputs();
  std::vector<HostTensor> all = inputs;
  bool any = false;
  for (std::size_t which = 0; which < inputs.size(); ++which) {
    if (inputs[which].spec.dtype != DType::f32) continue;
    any = true;
    for (std::size_t i = 0; i < inputs[which].spec.elements(); ++i)
      store_element(DType::f32, all[which].data.data(), i, round(inputs[which].at(i)));
    std::vector<HostTensor> one = inputs;
    one[which] = all[which];
    judge.offer_inputs(
        "low precision",
        fmt::format("{} is rounded to {} before it is used", inputs[which].spec.name, name), one,
        0.95);
  }
  if (any)
    judge.offer_inputs("low precision", fmt::format("the operands are rounded to {}", name), all,
                       0.96);
}

/// The wrong elements of an output as errors of a computation with fewer bits.
struct Errors {
  double relative = 0;  ///< median of the errors, relative to the size of their rows
  double within = 0;    ///< share of the wrong elements whose error is small, of all wrong ones
  double spread = 0;    ///< share of the elements that are wrong
  double positive = 0;  ///< share of the errors that are positive
  double representable = 0;  ///< share of all elements that f16 or bf16 represents
  DType as = DType::f16;
};

/// Returns the root mean square of a row that is expected.
double size_of_row(const ExaminedOutput& output, std::size_t row) {
  const auto cols = static_cast<std::size_t>(output.spec.cols);
  double squares = 0;
  for (std::size_t i = row * cols; i < (row + 1) * cols; ++i)
    squares += output.want[i].value * output.want[i].value;
  return std::sqrt(squares / static_cast<double>(cols));
}

/// Returns the share of an output's elements that a type represents.
double share_represented(const ExaminedOutput& output, DType type) {
  const auto exact = std::count_if(output.got.begin(), output.got.end(), [type](double got) {
    return std::isfinite(got) && rounded_to(type, got) == got;
  });
  return static_cast<double>(exact) / static_cast<double>(output.got.size());
}

Errors errors_of(const Evidence& evidence, const ExaminedOutput& output) {
  constexpr double small = 0.06;
  Errors found;
  std::vector<double> relative;
  const auto cols = static_cast<std::size_t>(output.spec.cols);
  std::size_t positive = 0;
  for (std::size_t row = 0; row * cols < output.got.size(); ++row) {
    const double size = size_of_row(output, row);
    for (std::size_t i = row * cols; i < (row + 1) * cols; ++i) {
      const double error = output.got[i] - output.want[i].value;
      if (output.wrong[i] == 0 || !(std::abs(error) < small * size)) continue;
      relative.push_back(std::abs(error) / size);
      positive += error > 0 ? 1 : 0;
    }
  }
  if (relative.size() < 4) return found;
  const auto count = static_cast<double>(relative.size());
  std::nth_element(relative.begin(),
                   relative.begin() + static_cast<std::ptrdiff_t>(relative.size() / 2),
                   relative.end());
  found.relative = relative[relative.size() / 2];
  found.within = count / static_cast<double>(evidence.wrong());
  found.spread =
      static_cast<double>(output.count(output.wrong)) / static_cast<double>(output.got.size());
  found.positive = static_cast<double>(positive) / count;
  found.as = share_represented(output, DType::bf16) > share_represented(output, DType::f16)
                 ? DType::bf16
                 : DType::f16;
  found.representable = share_represented(output, found.as);
  return found;
}

/// Small errors of both signs, everywhere, are those of a sum or an intermediate value with too few
/// bits.
void offer_half(Judge& judge, const ExaminedOutput& output) {
  const Errors errors = errors_of(judge.evidence(), output);
  const bool balanced = errors.positive > 0.2 && errors.positive < 0.8;
  if (errors.within < 0.8 || errors.spread < 0.1 || !balanced) return;
  const bool all_halves = output.spec.dtype == DType::f32 && errors.representable > 0.99;
  const double bits = -std::log2(errors.relative);
  const std::string words =
      all_halves ? fmt::format(
                       "sums or results are kept in {0}: every element of {1} is a number "
                       "of {0}",
                       to_string(errors.as), output.spec.name)
      : bits > 16 ? "an intermediate value has fewer bits than f32"
                  : fmt::format("sums or intermediate values are kept in {}",
                                bits > 9.5 ? "f16" : "bf16 or f16");
  judge.add(
      {.kind = "half-precision accumulation",
       .words = words,
       .explained = errors.within,
       .residual = 1,
       .score = (all_halves  ? 0.9
                 : bits > 16 ? 0.3
                             : 0.55) *
                errors.within,
       .evidence = fmt::format("half of the errors exceed {:.2g} of the results, about {:.0f} "
                               "correct bits, with either sign",
                               errors.relative, bits)});
}

/// What an element of an operand is, and what is wrong with the element of the output at its place.
struct PlacedError {
  double operand = 0;
  double ratio = 0;  ///< natural logarithm of what was computed divided by what is expected
  bool wrong = false;
};

/// Returns the elements of an output with those of an operand from column `first` on, by the
/// operand's value.
std::vector<PlacedError> errors_by(const HostTensor& operand, std::int64_t first,
                                   const ExaminedOutput& output) {
  std::vector<PlacedError> errors;
  for (std::int64_t row = 0; row < output.spec.rows; ++row) {
    for (std::int64_t col = 0; col < output.spec.cols; ++col) {
      const auto i = static_cast<std::size_t>(row * output.spec.cols + col);
      const double x = operand.at(static_cast<std::size_t>(row * operand.spec.cols + first + col));
      if (std::isfinite(x))
        errors.push_back({x, std::log(output.got[i] / output.want[i].value), output.wrong[i] != 0});
    }
  }
  std::sort(errors.begin(), errors.end(),
            [](const PlacedError& a, const PlacedError& b) { return a.operand < b.operand; });
  return errors;
}

/// An error that changes little between neighbouring values of an operand is no rounding: the
/// function itself is another one, by a constant or a term.
void offer_smooth(Judge& judge, const std::string& name, const std::vector<PlacedError>& errors) {
  constexpr double smooth = 0.2;
  constexpr std::size_t fewest = 16;
  std::vector<PlacedError> wrong;
  for (const PlacedError& one : errors) {
    if (one.wrong && std::isfinite(one.ratio)) wrong.push_back(one);
  }
  if (wrong.size() < fewest) return;
  double steps = 0, size = 0;
  for (std::size_t i = 1; i < wrong.size(); ++i) {
    steps += std::abs(wrong[i].ratio - wrong[i - 1].ratio);
    size += std::abs(wrong[i].ratio);
  }
  if (!(steps < smooth * size)) return;
  const double explained =
      static_cast<double>(wrong.size()) / static_cast<double>(judge.evidence().wrong());
  const PlacedError &low = wrong[wrong.size() / 4], &high = wrong[wrong.size() * 3 / 4];
  judge.add(
      {.kind = "wrong formula",
       .words = fmt::format("elements are computed from the proper elements of {} with another "
                            "formula: a constant or a term is wrong",
                            name),
       .explained = explained,
       .score = 0.85 * explained,
       .evidence = fmt::format("the error is a smooth function of {}: {:.3g} times the result "
                               "at {:.3g}, {:.3g} times at {:.3g}",
                               name, std::exp(low.ratio), low.operand, std::exp(high.ratio),
                               high.operand)});
}

/// Elements that are wrong where an operand exceeds a limit are those of a clamp or of a branch.
void offer_limit(Judge& judge, const std::string& name, const std::vector<PlacedError>& errors) {
  constexpr double purity = 0.98;
  const auto wrong = static_cast<std::size_t>(std::count_if(
      errors.begin(), errors.end(), [](const PlacedError& one) { return one.wrong; }));
  if (wrong < 4 || 10 * wrong > 9 * errors.size()) return;
  for (const bool above : {true, false}) {
    const std::size_t first = above ? errors.size() - wrong : 0;
    const auto from = errors.begin() + static_cast<std::ptrdiff_t>(first);
    const auto there =
        static_cast<double>(std::count_if(from, from + static_cast<std::ptrdiff_t>(wrong),
                                          [](const PlacedError& one) { return one.wrong; }));
    if (there < purity * static_cast<double>(wrong)) continue;
    const double limit = above ? errors[first].operand : errors[wrong - 1].operand;
    const double explained = there / static_cast<double>(judge.evidence().wrong());
    judge.add(
        {.kind = "wrong formula",
         .words = fmt::format("elements are wrong where {} is {} about {:.4g}: it is clamped, "
                              "or another branch is taken",
                              name, above ? "above" : "below", limit),
         .explained = explained,
         .score = 0.88 * explained,
         .evidence = "elsewhere, all are correct"});
  }
}

/// Offers that a function of an operand's element at the same place is another one. Operands may
/// have several columns for each of the output's.
void offer_formula(Judge& judge, const ExaminedOutput& output) {
  for (const HostTensor& input : judge.evidence().inputs()) {
    if (input.spec.rows != output.spec.rows || input.spec.cols % output.spec.cols != 0 ||
        output.spec.elements() < 16 || !is_floating(input.spec.dtype))
      continue;
    const std::int64_t parts = input.spec.cols / output.spec.cols;
    if (parts > 2) continue;
    for (std::int64_t part = 0; part < parts; ++part) {
      const auto errors = errors_by(input, part * output.spec.cols, output);
      const std::string name =
          parts == 1 ? input.spec.name
                     : fmt::format("{}'s {} half", input.spec.name, part == 0 ? "first" : "second");
      offer_smooth(judge, name, errors);
      offer_limit(judge, name, errors);
    }
  }
}

/// Results that are wrong by one factor, or by one summand.
void offer_constant(Judge& judge, std::size_t at) {
  const Evidence& evidence = judge.evidence();
  const ExaminedOutput& output = evidence.outputs()[at];
  std::vector<double> ratios, differences;
  for (std::size_t i = 0; i < output.got.size(); ++i) {
    if (output.wrong[i] == 0 || !std::isfinite(output.got[i])) continue;
    if (output.want[i].value != 0) ratios.push_back(output.got[i] / output.want[i].value);
    differences.push_back(output.got[i] - output.want[i].value);
  }
  const auto middle = [](std::vector<double>& values) {
    const auto half = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), half, values.end());
    return *half;
  };
  if (differences.size() < 3) return;
  if (ratios.size() > 2) {
    const double factor = middle(ratios);
    Prediction scaled = evidence.expected();
    for (Expected& one : scaled[at]) one = {one.value * factor, one.bound * std::abs(factor)};
    judge.offer("wrong factor",
                fmt::format("{} is {:.6g} times what it ought to be", output.spec.name, factor),
                scaled, 0.93);
  }
  const double summand = middle(differences);
  Prediction moved = evidence.expected();
  for (Expected& one : moved[at]) one.value += summand;
  judge.offer("wrong summand",
              fmt::format("{} is {:.6g} more than it ought to be", output.spec.name, summand),
              moved, 0.92);
}

}  // namespace

void offer_precision(Judge& judge) {
  offer_rounded(judge, "f16", [](double x) { return rounded_to(DType::f16, x); });
  offer_rounded(judge, "bf16", [](double x) { return rounded_to(DType::bf16, x); });
  offer_rounded(judge, "TF32", truncated_to_tf32);
  for (std::size_t i = 0; i < judge.evidence().outputs().size(); ++i) {
    if (!is_floating(judge.evidence().outputs()[i].spec.dtype)) continue;
    offer_half(judge, judge.evidence().outputs()[i]);
    offer_formula(judge, judge.evidence().outputs()[i]);
    offer_constant(judge, i);
  }
}

}  // namespace greta::tuner
