#include "kernels/reference/gemm_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "kernels/reference/findings.hpp"

namespace greta::kernels {
namespace {

class PartsReference : public Reference {
 public:
  PartsReference(std::vector<ProductPart> parts, std::int64_t rows, std::int64_t cols, bool full)
      : parts_(std::move(parts)), rows_(rows), n_(cols), full_(full) {}

  Verdict check(const std::vector<HostTensor>& outputs) const override {
    const HostTensor& given = tensor_named(outputs, "C");
    if (given.spec.elements() != static_cast<std::size_t>(rows_ * n_) ||
        given.data.size() != given.spec.bytes()) {
      Findings none(rows_, n_);
      none.reject(fmt::format("the output is not {} x {}", rows_, n_), 1e300, 0);
      return none.verdict("full");
    }
    const HostTensor c = packed(given);
    Verdict all = check_unwritten(c);
    for (const ProductPart& part : parts_) {
      Verdict one = part.reference->check({rows_of_tensor(c, part.first, part.rows)});
      if (!one.detail.empty()) {
        one.detail = fmt::format("{} of {} rows from row {}: {}", part.what, part.rows, part.first,
                                 one.detail);
      }
      all = worse(all, one);
    }
    return all;
  }

  bool writes(std::string_view, std::int64_t row) const override {
    const auto next = std::upper_bound(
        parts_.begin(), parts_.end(), row,
        [](std::int64_t wanted, const ProductPart& part) { return wanted < part.first; });
    return next != parts_.begin() && row < std::prev(next)->first + std::prev(next)->rows;
  }

  std::optional<std::vector<std::vector<Expected>>> expected() const override {
    if (!full_) return std::nullopt;
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    std::vector<Expected> list(static_cast<std::size_t>(rows_ * n_), Expected{nan, 0});
    for (const ProductPart& part : parts_) {
      const auto own = part.reference->expected();
      if (!own) return std::nullopt;
      std::copy(own->front().begin(), own->front().end(),
                list.begin() + static_cast<std::ptrdiff_t>(part.first * n_));
    }
    return std::vector<std::vector<Expected>>{std::move(list)};
  }

  std::vector<std::vector<ExpectedElement>> sample(std::size_t most) const override {
    std::vector<ExpectedElement> elements;
    for (const ProductPart& part : parts_) {
      const std::size_t share = std::max<std::size_t>(1, most / parts_.size());
      const auto samples = part.reference->sample(share);
      for (ExpectedElement element : samples.front()) {
        element.index += static_cast<std::uint64_t>(part.first * n_);
        elements.push_back(element);
      }
    }
    std::vector<ExpectedElement> kept;
    for (const std::size_t i : spread_indices(elements.size(), most)) kept.push_back(elements[i]);
    return {std::move(kept)};
  }

 private:
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
    for (const ProductPart& part : parts_) {
      skip_to(part.first);
      row = part.first + part.rows;
    }
    skip_to(rows_);
    return findings.verdict(full_ ? "full" : "rows of no group");
  }

  std::vector<ProductPart> parts_;
  std::int64_t rows_, n_;
  bool full_;
};

}  // namespace

HostTensor rows_of_tensor(const HostTensor& tensor, std::int64_t first, std::int64_t count) {
  HostTensor part{packed(tensor.spec), {}};
  part.spec.rows = count;
  const auto bytes = [&](std::int64_t rows) {
    return static_cast<std::ptrdiff_t>(
        bytes_of(tensor.spec.dtype, static_cast<std::size_t>(rows * tensor.spec.cols)));
  };
  const auto begin = tensor.data.begin() + bytes(first);
  part.data.assign(begin, begin + bytes(count));
  return part;
}

std::unique_ptr<Reference> reference_of_parts(std::vector<ProductPart> parts, std::int64_t rows,
                                              std::int64_t cols, bool full) {
  return std::make_unique<PartsReference>(std::move(parts), rows, cols, full);
}

}  // namespace greta::kernels
