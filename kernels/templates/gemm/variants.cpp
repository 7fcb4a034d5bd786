#include "kernels/templates/gemm/variant.hpp"

namespace greta::gemm {

const std::vector<const Variant*>& variants() {
  static const std::vector<const Variant*> list{
      &gemv, &naive, &matrix, &tiled, &split_k,
  };
  return list;
}

}  // namespace greta::gemm
