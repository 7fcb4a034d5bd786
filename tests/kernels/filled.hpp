#pragma once

#include <vector>

#include "kernels/model/tensor.hpp"
#include "tests/layers.hpp"

namespace greta::test {

/// Returns a tensor of these elements, in order.
inline HostTensor filled(const TensorSpec& spec, const std::vector<double>& values) {
  HostTensor tensor{spec, std::vector<std::byte>(spec.bytes())};
  for (std::size_t i = 0; i < values.size(); ++i) {
    store_element(spec.dtype, tensor.data.data(), i, values[i]);
  }
  return tensor;
}

}  // namespace greta::test
