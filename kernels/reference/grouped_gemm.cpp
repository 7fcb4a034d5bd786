#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/reference/findings.hpp"
#include "kernels/reference/gemm.hpp"
#include "kernels/reference/references.hpp"

namespace greta::kernels {
namespace {

/// Returns rows `first` to `first` + `count` - 1 of a tensor with packed rows.
HostTensor part_of(const HostTensor& tensor, std::int64_t first, std::int64_t count) {
  HostTensor part{tensor.spec, {}};
  part.spec.rows = count;
  const auto bytes = [&](std::int64_t rows) {
    return static_cast<std::ptrdiff_t>(
        bytes_of(tensor.spec.dtype, static_cast<std::size_t>(rows * tensor.spec.cols)));
  };
  const auto begin = tensor.data.begin() + bytes(first);
  part.data.assign(begin, begin + bytes(count));
  return part;
}

/// The product of one group, which is that of gemm.
struct GroupProduct {
  std::int64_t group = 0, first = 0, rows = 0;
  std::unique_ptr<Reference> reference;
};

class GroupedReference : public Reference {
 public:
  GroupedReference(const Problem& problem, const std::vector<HostTensor>& inputs,
                   std::uint64_t seed)
      : n_(problem.dim("n")), full_(grouped_gemm_fully_checked(problem)) {
    const HostTensor &a = tensor_named(inputs, "A"), &b = tensor_named(inputs, "B");
    const std::int64_t groups = problem.dim("groups"), lines = b.spec.rows / groups;
    find_groups(problem, inputs);
    for (GroupProduct& product : products_) {
      Problem one{"gemm", problem.dtype, problem.out_dtype, {}, {}};
      one.attributes.emplace_back("layout", problem.attribute("layout", "nt"));
      one.dims = {{"m", product.rows}, {"n", n_}, {"k", problem.dim("k")}};
      const std::vector<HostTensor> parts{part_of(a, product.first, product.rows),
                                          part_of(b, product.group * lines, lines)};
      product.reference =
          gemm_reference(one, parts, seed + static_cast<std::uint64_t>(product.group));
    }
  }

  Verdict check(const std::vector<HostTensor>& outputs) const override {
    const HostTensor& c = tensor_named(outputs, "C");
    if (c.spec.rows != rows_ || c.spec.cols != n_ || c.data.size() != c.spec.bytes()) {
      Findings none(rows_, n_);
      none.reject(fmt::format("the output is not {} x {}", rows_, n_), 1e300, 0);
      return none.verdict("full");
    }
    Verdict all = check_unwritten(c);
    for (const GroupProduct& product : products_) {
      Verdict one = product.reference->check({part_of(c, product.first, product.rows)});
      if (!one.detail.empty()) {
        one.detail = fmt::format("group {} of {} rows from row {}: {}", product.group, product.rows,
                                 product.first, one.detail);
      }
      all = worse(all, one);
    }
    return all;
  }

  std::optional<std::vector<std::vector<Expected>>> expected() const override {
    if (!full_) return std::nullopt;
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    std::vector<Expected> list(static_cast<std::size_t>(rows_ * n_), Expected{nan, 0});
    for (const GroupProduct& product : products_) {
      const auto part = product.reference->expected();
      if (!part) return std::nullopt;
      std::copy(part->front().begin(), part->front().end(),
                list.begin() + static_cast<std::ptrdiff_t>(product.first * n_));
    }
    return std::vector<std::vector<Expected>>{std::move(list)};
  }

  std::vector<std::vector<ExpectedElement>> sample(std::size_t most) const override {
    std::vector<ExpectedElement> elements;
    for (const GroupProduct& product : products_) {
      const std::size_t share = std::max<std::size_t>(1, most / products_.size());
      for (ExpectedElement element : product.reference->sample(share).front()) {
        element.index += static_cast<std::uint64_t>(product.first * n_);
        elements.push_back(element);
      }
    }
    std::vector<ExpectedElement> kept;
    for (const std::size_t i : spread_indices(elements.size(), most)) kept.push_back(elements[i]);
    return {std::move(kept)};
  }

 private:
  /// Finds the groups that have rows, in the order of their rows.
  void find_groups(const Problem& problem, const std::vector<HostTensor>& inputs) {
    const bool masked = problem.attribute("form", "contiguous") == "masked";
    const std::int64_t groups = problem.dim("groups"), m = problem.dim("m");
    const HostTensor& counts = tensor_named(inputs, masked ? "rows" : "ends");
    rows_ = masked ? groups * m : m;
    std::int64_t start = 0;
    for (std::int64_t group = 0; group < groups; ++group) {
      const auto said = static_cast<std::int64_t>(counts.at(static_cast<std::size_t>(group)));
      const std::int64_t possible = std::clamp<std::int64_t>(said, 0, m);
      const std::int64_t first = masked ? group * m : start;
      const std::int64_t rows = masked ? possible : possible - start;
      if (rows > 0) products_.push_back({group, first, rows, nullptr});
      start = possible;
    }
  }

  /// Rows of no group still have the NaN with which outputs are filled before a launch.
  Verdict check_unwritten(const HostTensor& c) const {
    Findings findings(rows_, n_);
    std::int64_t row = 0;
    const auto skip_to = [&](std::int64_t end) {
      for (std::int64_t i = row * n_; i < end * n_; ++i) {
        const double value = c.at(static_cast<std::size_t>(i));
        if (std::isnan(value)) continue;
        findings.reject(fmt::format("element ({}, {}) of a row of no group was written: {:.9g}",
                                    i / n_, i % n_, value),
                        1e300, 0);
        return;
      }
    };
    for (const GroupProduct& product : products_) {
      skip_to(product.first);
      row = product.first + product.rows;
    }
    skip_to(rows_);
    return findings.verdict(full_ ? "full" : "rows of no group");
  }

  std::int64_t n_, rows_ = 0;
  bool full_;
  std::vector<GroupProduct> products_;
};

}  // namespace

bool grouped_gemm_fully_checked(const Problem& problem) {
  const auto extent = [&](const char* name) { return static_cast<double>(problem.dim(name)); };
  const double groups = extent("groups"), n = extent("n"), k = extent("k");
  const bool masked = problem.attribute("form", "contiguous") == "masked";
  const double m = masked ? groups * extent("m") : extent("m");
  return m * n * k <= 0x1p31 && m * n <= 0x1p24 && (m + groups * n) * k <= 0x1p28;
}

std::unique_ptr<Reference> grouped_gemm_reference(const Problem& problem,
                                                  const std::vector<HostTensor>& inputs,
                                                  std::uint64_t seed) {
  return std::make_unique<GroupedReference>(problem, inputs, seed);
}

}  // namespace greta::kernels
