#include "kernels/reference/elements.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>

#include "kernels/reference/findings.hpp"
#include "kernels/reference/parallel.hpp"

namespace greta {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::size_t most_listed = std::size_t{1} << 24;

/// The least value that rounds to infinity.
double overflow(DType type) {
  if (type == DType::f16) return 65520;
  return type == DType::bf16 ? 0x1.FFp127 : 0x1.FFFFFFp127;
}

const HostTensor& find(const std::vector<HostTensor>& tensors, std::string_view name) {
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [name](const HostTensor& t) { return t.spec.name == name; });
  if (found == tensors.end()) throw Error(fmt::format("the reference needs {}", name));
  return *found;
}

Verdict judge_output(const ExpectedOutput& expected, const HostTensor& output) {
  const auto [rows, cols] = std::pair(expected.spec.rows, expected.spec.cols);
  Findings all(rows, cols);
  if (output.spec.rows != rows || output.spec.cols != cols ||
      output.data.size() != expected.spec.bytes()) {
    all.reject(fmt::format("the output is not {} x {}", rows, cols), infinity, 0);
    return all.verdict("full");
  }
  std::mutex mutex;
  std::map<std::int64_t, Findings> parts;
  parallel_parts(rows * cols, [&](std::int64_t first, std::int64_t last) {
    Findings part(rows, cols);
    for (std::int64_t i = first; i < last && !part.plenty(); ++i) {
      const std::int64_t row = i / cols, col = i % cols;
      const Expected want = expected.element(row, col);
      part.compare(row, col, output.at(static_cast<std::size_t>(i)), want.value, want.bound);
    }
    const std::lock_guard lock(mutex);
    parts.emplace(first, std::move(part));
  });
  for (const auto& [first, part] : parts) all.merge(part);
  return all.verdict("full");
}

class ElementsReference : public Reference {
 public:
  explicit ElementsReference(std::vector<ExpectedOutput> outputs) : outputs_(std::move(outputs)) {}

  Verdict check(const std::vector<HostTensor>& outputs) const override {
    std::optional<Verdict> verdict;
    for (const ExpectedOutput& expected : outputs_) {
      const Verdict next = judge_output(expected, find(outputs, expected.spec.name));
      verdict = verdict ? worse(*verdict, next) : next;
    }
    return *verdict;
  }

  std::optional<std::vector<std::vector<Expected>>> expected() const override {
    std::vector<std::vector<Expected>> lists;
    for (const ExpectedOutput& output : outputs_) {
      if (output.spec.elements() > most_listed) return std::nullopt;
      std::vector<Expected>& list = lists.emplace_back();
      for (std::int64_t row = 0; row < output.spec.rows; ++row) {
        for (std::int64_t col = 0; col < output.spec.cols; ++col) {
          list.push_back(output.element(row, col));
        }
      }
    }
    return lists;
  }

 private:
  std::vector<ExpectedOutput> outputs_;
};

}  // namespace

std::unique_ptr<Reference> elements_reference(std::vector<ExpectedOutput> outputs) {
  return std::make_unique<ElementsReference>(std::move(outputs));
}

KeptTensor keep_tensor(const std::vector<HostTensor>& tensors, std::string_view name) {
  return std::make_shared<const HostTensor>(find(tensors, name));
}

Expected rounded(DType type, double value, double error) {
  if (!std::isfinite(value)) return {value, 0};
  const double limit = overflow(type), size = std::abs(value);
  if (size - error >= limit) return {std::copysign(infinity, value), 0};
  if (size + error >= limit) return {value, infinity};
  // Half of the distance between the type's numbers there.
  const double rounding = std::ldexp(unit_roundoff(type), std::ilogb(size + error));
  if (type == DType::f16) return {value, error + std::max(rounding, 0x1p-25)};
  return {value, error + rounding + smallest_normal(type)};
}

Expected converted(DType from, DType to, double value) {
  const bool has_it = from == to || to == DType::f32;
  return has_it ? Expected{value, 0} : rounded(to, value, 0);
}

}  // namespace greta
