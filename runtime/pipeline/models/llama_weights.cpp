#include "runtime/pipeline/models/llama_weights.hpp"

namespace greta::runtime {

void WeightView::read(std::size_t first, std::size_t count, double* values) const {
  const std::byte* const from = data + offset(first);
  if (blocks) {
    decode_blocks(*blocks, from, count / block_traits(*blocks).elements, values);
    return;
  }
  with_dtype(dtype, [&](auto type) {
    for (std::size_t i = 0; i < count; ++i) {
      values[i] = static_cast<double>(load<decltype(type)::value>(from, i));
    }
  });
}

}  // namespace greta::runtime
