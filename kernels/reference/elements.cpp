#include "kernels/reference/elements.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "kernels/reference/findings.hpp"
#include "kernels/reference/screen.hpp"

namespace greta::kernels {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::size_t most_listed = std::size_t{1} << 24;

/// How a type rounds. Computed once: each expected element asks.
struct Rounding {
  double overflow = 0;  ///< the smallest value that rounds to infinity
  double unit = 0, underflow = 0;
  bool keeps_subnormals = false;
};

Rounding rounding_of(DType type) {
  const double power = std::exp2(std::ilogb(largest_finite(type)));
  return {.overflow = largest_finite(type) + unit_roundoff(type) * power,
          .unit = unit_roundoff(type),
          .underflow = underflow_error(type),
          .keeps_subnormals = traits(type).keeps_subnormals};
}

const Rounding& rounding(DType type) {
  static const auto all = [] {
    std::array<Rounding, dtype_table.size()> list;
    std::transform(dtype_table.begin(), dtype_table.end(), list.begin(),
                   [](const DTypeTraits& known) { return rounding_of(known.type); });
    return list;
  }();
  return all[static_cast<std::size_t>(type)];
}

const HostTensor& find(const std::vector<HostTensor>& tensors, std::string_view name) {
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [name](const HostTensor& t) { return t.spec.name == name; });
  if (found == tensors.end()) throw Error(fmt::format("the reference needs {}", name));
  return *found;
}

/// One output and its screen, which selects the elements to compare.
class JudgedOutput {
 public:
  explicit JudgedOutput(ExpectedOutput expected)
      : expected_(std::move(expected)), screen_(make_screen(expected_)) {}

  const ExpectedOutput& expected() const { return expected_; }

  Verdict judge(const HostTensor& output) const {
    const auto [rows, cols] = std::pair(expected_.spec.rows, expected_.spec.cols);
    if (output.spec.rows != rows || output.spec.cols != cols ||
        output.spec.dtype != expected_.spec.dtype || output.data.size() != output.spec.bytes()) {
      Findings all(rows, cols);
      all.reject(fmt::format("the output is not {} x {}", rows, cols), infinity, 0);
      return all.verdict("full");
    }
    if (!output.spec.contiguous()) return judge(packed(output));
    return find_in_parts(rows, cols, rows * cols,
                         [&](std::int64_t first, std::int64_t last, Findings& part) {
                           compare_elements(expected_, screen_.get(), output, first, last, part);
                         })
        .verdict("full");
  }

 private:
  ExpectedOutput expected_;
  std::unique_ptr<Screen> screen_;
};

class ElementsReference : public Reference {
 public:
  explicit ElementsReference(std::vector<ExpectedOutput> outputs) {
    for (ExpectedOutput& output : outputs) outputs_.emplace_back(std::move(output));
  }

  Verdict check(const std::vector<HostTensor>& outputs) const override {
    std::optional<Verdict> verdict;
    for (const JudgedOutput& output : outputs_) {
      const std::string& name = output.expected().spec.name;
      Verdict next = output.judge(find(outputs, name));
      if (!next.passed) next.detail = fmt::format("{}: {}", name, next.detail);
      verdict = verdict ? worse(*verdict, next) : next;
    }
    return *verdict;
  }

  std::optional<std::vector<std::vector<Expected>>> expected() const override {
    std::vector<std::vector<Expected>> lists;
    for (const JudgedOutput& output : outputs_) {
      const auto& [spec, element] = output.expected();
      if (spec.elements() > most_listed) return std::nullopt;
      std::vector<Expected>& list = lists.emplace_back();
      for (std::int64_t row = 0; row < spec.rows; ++row) {
        for (std::int64_t col = 0; col < spec.cols; ++col) list.push_back(element(row, col));
      }
    }
    return lists;
  }

 private:
  std::vector<JudgedOutput> outputs_;
};

}  // namespace

std::unique_ptr<Reference> elements_reference(std::vector<ExpectedOutput> outputs) {
  return std::make_unique<ElementsReference>(std::move(outputs));
}

KeptTensor keep_tensor(const std::vector<HostTensor>& tensors, std::string_view name) {
  return std::make_shared<const HostTensor>(packed(find(tensors, name)));
}

Expected rounded(DType type, double value, double error) {
  if (!std::isfinite(value)) return {value, 0};
  const auto& [limit, unit, underflow, keeps_subnormals] = rounding(type);
  const double size = std::abs(value);
  if (size - error >= limit) return {std::copysign(infinity, value), 0};
  if (size + error >= limit) return {value, infinity};
  // Half of the type's spacing: the largest power of two up to the value, scaled.
  constexpr std::uint64_t exponent = 0x7ffULL << 52;
  const auto power = std::bit_cast<double>(std::bit_cast<std::uint64_t>(size + error) & exponent);
  const double spacing = unit * power;
  if (keeps_subnormals) return {value, error + std::max(spacing, underflow)};
  return {value, error + spacing + underflow};
}

Expected converted(DType from, DType to, double value) {
  const bool has_it = from == to || to == DType::f32;
  return has_it ? Expected{value, 0} : rounded(to, value, 0);
}

}  // namespace greta::kernels
