#include <algorithm>

#include "kernels/reference/gemm.hpp"
#include "kernels/reference/gemm_parts.hpp"
#include "kernels/reference/references.hpp"

namespace greta::kernels {
namespace {

bool is_masked(const Problem& problem) {
  return problem.attribute("form", "contiguous") == "masked";
}

/// Returns the rows of C that each group has, in their order, without groups that have none.
std::vector<ProductPart> parts_of(const Problem& problem, const std::vector<HostTensor>& inputs,
                                  std::vector<std::int64_t>& groups_of_parts) {
  const std::int64_t groups = problem.dim("groups"), m = problem.dim("m");
  const HostTensor& counts = tensor_named(inputs, is_masked(problem) ? "rows" : "ends");
  std::vector<ProductPart> parts;
  std::int64_t start = 0;
  for (std::int64_t group = 0; group < groups; ++group) {
    const auto said = static_cast<std::int64_t>(counts.at(static_cast<std::size_t>(group)));
    const std::int64_t possible = std::clamp<std::int64_t>(said, 0, m);
    const std::int64_t first = is_masked(problem) ? group * m : start;
    const std::int64_t rows = is_masked(problem) ? possible : possible - start;
    start = possible;
    if (rows <= 0) continue;
    parts.push_back({"group " + std::to_string(group), first, rows, nullptr});
    groups_of_parts.push_back(group);
  }
  return parts;
}

}  // namespace

bool grouped_gemm_fully_checked(const Problem& problem) {
  const auto extent = [&](const char* name) { return static_cast<double>(problem.dim(name)); };
  const bool gated = problem.attribute("epilogue", "none") != "none";
  const double groups = extent("groups"), n = (gated ? 2 : 1) * extent("n"), k = extent("k");
  const double m = is_masked(problem) ? groups * extent("m") : extent("m");
  return m * n * k <= 0x1p31 && m * n <= 0x1p24 && (m + groups * n) * k <= 0x1p28;
}

std::unique_ptr<Reference> grouped_gemm_reference(const Problem& problem,
                                                  const std::vector<HostTensor>& inputs,
                                                  std::uint64_t seed) {
  const HostTensor &a = tensor_named(inputs, "A"), &b = tensor_named(inputs, "B");
  const std::int64_t n = problem.dim("n"), lines = b.spec.rows / problem.dim("groups");
  std::vector<std::int64_t> groups;
  std::vector<ProductPart> parts = parts_of(problem, inputs, groups);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    ProductPart& part = parts[i];
    Problem one{"gemm", problem.dtype, problem.out_dtype, {}, {}};
    one.attributes.emplace_back("layout", problem.attribute("layout", "nt"));
    one.attributes.emplace_back("epilogue", problem.attribute("epilogue", "none"));
    one.dims = {{"m", part.rows}, {"n", n}, {"k", problem.dim("k")}};
    part.reference = gemm_reference(
        one,
        {rows_of_tensor(a, part.first, part.rows), rows_of_tensor(b, groups[i] * lines, lines)},
        seed + i);
  }
  return reference_of_parts(std::move(parts), a.spec.rows, n, grouped_gemm_fully_checked(problem));
}

}  // namespace greta::kernels
