#include "runtime/pipeline/lookup/bucket.hpp"

#include <algorithm>
#include <bit>

#include "kernels/catalog.hpp"

namespace greta::runtime {
namespace {

/// The least extent that is rounded; 0 for a dimension that stays.
std::int64_t rounded_from(const Problem& problem, std::string_view dimension) {
  constexpr std::string_view lengths[] = {"rows", "tokens", "batch", "kv"};
  if (std::find(std::begin(lengths), std::end(lengths), dimension) != std::end(lengths)) return 1;
  if (dimension == "m" && problem.attribute("layout", "nn") == "tn") return 0;
  if (dimension == "q") return 17;
  return dimension == "m" ? 9 : 0;
}

}  // namespace

Problem bucket(Problem problem) {
  constexpr std::int64_t most = std::int64_t{1} << 30;
  const Problem asked = problem;
  for (auto& [name, extent] : problem.dims) {
    const std::int64_t least = rounded_from(asked, name);
    if (least == 0 || extent < least || extent > most) continue;
    const auto whole = static_cast<std::uint64_t>(extent);
    extent = static_cast<std::int64_t>(asked.op == "argmax" ? std::bit_floor(whole)
                                                            : std::bit_ceil(whole));
  }
  // More tokens than a cache has room for, say, are no problem that stands for anything.
  const KernelTemplate* const kernel = find_template(asked.op);
  return kernel != nullptr && check_problem(*kernel, problem) ? problem : asked;
}

}  // namespace greta::runtime
