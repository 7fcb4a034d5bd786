#include <algorithm>
#include <limits>
#include <utility>

#include "kernels/planning/number_attribute.hpp"
#include "kernels/reference/elements.hpp"
#include "kernels/reference/references.hpp"

namespace greta::kernels {
namespace {

constexpr std::int64_t unwritten = -1, zeros = -2;

/// What a correct kernel writes.
struct Permuted {
  std::vector<std::int64_t> source;  ///< of each row of out: a token, or a constant above
  std::vector<double> groups;        ///< ends, or numbers of rows
  std::vector<double> places;
};

/// Returns the experts' assignments, in their order.
std::vector<std::vector<std::size_t>> assignments_of(const Problem& problem,
                                                     const HostTensor& ids) {
  std::vector<std::vector<std::size_t>> of(static_cast<std::size_t>(problem.dim("experts")));
  for (std::size_t i = 0; i < ids.spec.elements(); ++i) {
    const double id = ids.at(i);
    if (id >= 0 && id < static_cast<double>(of.size()))
      of[static_cast<std::size_t>(id)].push_back(i);
  }
  return of;
}

Permuted permuted(const Problem& problem, const HostTensor& ids, std::int64_t rows) {
  const auto top_k = static_cast<std::size_t>(problem.dim("top_k"));
  const auto capacity = static_cast<std::size_t>(problem.dim("capacity", 0));
  const auto block =
      static_cast<std::size_t>(whole_number(problem.attribute("block", "1")).value());
  Permuted result{std::vector(static_cast<std::size_t>(rows), unwritten),
                  {},
                  std::vector<double>(ids.spec.elements(), -1)};
  std::size_t row = 0;
  for (const std::vector<std::size_t>& own : assignments_of(problem, ids)) {
    const std::size_t first = row;
    for (const std::size_t assignment : own) {
      if (capacity > 0 && row - first == capacity) break;
      result.source[row] = static_cast<std::int64_t>(assignment / top_k);
      result.places[assignment] = static_cast<double>(row++);
    }
    if (capacity > 0) {
      result.groups.push_back(static_cast<double>(row - first));
      row = first + capacity;
      continue;
    }
    while ((row - first) % block != 0) result.source[row++] = zeros;
    result.groups.push_back(static_cast<double>(row));
  }
  return result;
}

class PermuteReference : public Reference {
 public:
  PermuteReference(std::unique_ptr<Reference> elements, std::shared_ptr<const Permuted> result)
      : elements_(std::move(elements)), result_(std::move(result)) {}

  Verdict check(const std::vector<HostTensor>& outputs) const override {
    return elements_->check(outputs);
  }
  std::optional<std::vector<std::vector<Expected>>> expected() const override {
    return elements_->expected();
  }
  bool writes(std::string_view output, std::int64_t row) const override {
    return output != "out" || result_->source[static_cast<std::size_t>(row)] != unwritten;
  }

 private:
  std::unique_ptr<Reference> elements_;
  std::shared_ptr<const Permuted> result_;
};

}  // namespace

std::unique_ptr<Reference> permute_reference(const Problem& problem,
                                             const std::vector<HostTensor>& inputs, std::uint64_t) {
  const std::int64_t experts = problem.dim("experts"), top_k = problem.dim("top_k");
  const std::int64_t tokens = problem.dim("tokens"), dim = problem.dim("dim");
  const std::int64_t capacity = problem.dim("capacity", 0);
  const std::int64_t block = whole_number(problem.attribute("block", "1")).value();
  const std::int64_t all = tokens * top_k;
  const std::int64_t rows =
      capacity > 0 ? experts * capacity : all + std::min(experts, all) * (block - 1);
  const auto result =
      std::make_shared<const Permuted>(permuted(problem, tensor_named(inputs, "ids"), rows));
  const auto copied = [result, dim, x = keep_tensor(inputs, "x")](std::int64_t row,
                                                                  std::int64_t col) {
    const std::int64_t token = result->source[static_cast<std::size_t>(row)];
    if (token == unwritten) return Expected{std::numeric_limits<double>::quiet_NaN(), 0};
    if (token == zeros) return Expected{0, 0};
    return Expected{x->at(static_cast<std::size_t>(token * dim + col)), 0};
  };
  const auto group = [result](std::int64_t, std::int64_t col) {
    return Expected{result->groups[static_cast<std::size_t>(col)], 0};
  };
  const auto place = [result, top_k](std::int64_t row, std::int64_t col) {
    return Expected{result->places[static_cast<std::size_t>(row * top_k + col)], 0};
  };
  const char* const groups = capacity > 0 ? "rows" : "ends";
  return std::make_unique<PermuteReference>(
      elements_reference({{{"out", Role::output, problem.out_dtype, rows, dim}, copied},
                          {{groups, Role::output, DType::i32, 1, experts}, group},
                          {{"places", Role::output, DType::i32, tokens, top_k}, place}}),
      result);
}

}  // namespace greta::kernels
