#include "runtime/pipeline/compute/problem_hash.hpp"

#include <functional>
#include <string_view>

namespace greta {
namespace {

/// Source: boost::hash_combine's 64-bit form, with the golden ratio's bits.
void combine(std::size_t& seed, std::size_t value) {
  seed ^= value + 0x9e3779b97f4a7c15ULL + (seed << 12) + (seed >> 4);
}

}  // namespace

// Names of dimensions follow from the operation, so their extents are enough.
std::size_t ProblemHash::operator()(const Problem& problem) const {
  const std::hash<std::string_view> text;
  std::size_t seed = text(problem.op);
  combine(seed, static_cast<std::size_t>(problem.dtype) * 16 +
                    static_cast<std::size_t>(problem.out_dtype));
  for (const auto& [name, value] : problem.attributes) {
    combine(seed, text(name));
    combine(seed, text(value));
  }
  for (const auto& dim : problem.dims) combine(seed, static_cast<std::size_t>(dim.second));
  return seed;
}

}  // namespace greta
