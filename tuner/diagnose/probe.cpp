#include "tuner/diagnose/probe.hpp"

#include <algorithm>

namespace greta::tuner {

int index_bits(std::int64_t extent) {
  int bits = 0;
  while ((std::int64_t{1} << bits) < extent) ++bits;
  return bits;
}

HostTensor probed(HostTensor operand, const Probe& probe) {
  const kernels::TensorSpec& spec = operand.spec;
  for (std::int64_t row = 0; row < spec.rows; ++row) {
    for (std::int64_t col = 0; col < spec.cols; ++col) {
      const std::int64_t index = probe.rows ? row : col;
      if (((index >> probe.bit & 1) != 0) != probe.set) continue;
      const auto at = static_cast<std::size_t>(spec.row_start(row) + col);
      // No value stays as it is (but 2 / 9), and most get another sign and another order.
      store_element(spec.dtype, operand.data.data(), at, 0.5 - 1.25 * operand.at(at));
    }
  }
  return operand;
}

std::vector<Probe> probes_of(const kernels::TensorSpec& spec) {
  std::vector<Probe> probes;
  if (!is_floating(spec.dtype)) return probes;
  for (const bool rows : {true, false}) {
    // One index needs a bit, too: whether the operand matters at all.
    const int bits = std::max(1, index_bits(rows ? spec.rows : spec.cols));
    for (int bit = 0; bit < bits; ++bit) {
      for (const bool set : {true, false}) {
        probes.push_back(
            {.operand = spec.name, .rows = rows, .bit = bit, .set = set, .changed = {}});
      }
    }
  }
  return probes;
}

}  // namespace greta::tuner
