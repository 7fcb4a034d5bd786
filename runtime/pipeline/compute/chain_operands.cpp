#include "runtime/pipeline/compute/chain_operands.hpp"

#include <fmt/format.h>

namespace greta::runtime {

void check_rank(std::string_view chain, std::string_view name, const Tensor& tensor,
                std::size_t rank) {
  if (tensor && tensor.shape().rank() == rank) return;
  throw Error(fmt::format("{}: {} must have {} dimensions, it has the shape {}", chain, name, rank,
                          tensor ? tensor.shape().text() : "of no tensor"));
}

void check_halves(std::string_view chain, std::string_view what, std::int64_t whole,
                  std::int64_t first) {
  if (first >= 0 && whole > first && (whole - first) % 2 == 0) return;
  throw Error(fmt::format("{}: {} {} less {} are not two equal parts", chain, whole, what, first));
}

}  // namespace greta::runtime
