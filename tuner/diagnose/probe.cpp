#include "tuner/diagnose/probe.hpp"

#include <algorithm>

#include "runtime/device/result.hpp"

namespace greta::tuner {

int index_bits(std::int64_t extent) {
  int bits = 0;
  while ((std::int64_t{1} << bits) < extent) ++bits;
  return bits;
}

std::size_t mark_bytes(const std::vector<kernels::TensorSpec>& specs) {
  std::size_t bytes = 0;
  for (const kernels::TensorSpec& spec : specs) {
    if (spec.role != kernels::Role::input) bytes += (spec.elements() + 7) / 8;
  }
  return bytes;
}

std::vector<std::byte> marks_of(const std::vector<Probe>& probes) {
  std::vector<std::byte> all;
  for (const Probe& probe : probes) {
    for (const std::vector<bool>& marks : probe.changed) {
      const std::size_t first = all.size();
      all.resize(first + (marks.size() + 7) / 8);
      for (std::size_t i = 0; i < marks.size(); ++i) {
        if (marks[i]) all[first + i / 8] |= std::byte{1} << static_cast<int>(i % 8);
      }
    }
  }
  return all;
}

void set_marks(std::vector<Probe>& probes, const std::vector<kernels::TensorSpec>& specs,
               std::span<const std::byte> marks) {
  if (marks.size() != probes.size() * mark_bytes(specs))
    throw Error({Status::invalid_argument, "the marks of probes have another size", {}});
  for (Probe& probe : probes) {
    probe.changed.clear();
    for (const kernels::TensorSpec& spec : specs) {
      if (spec.role == kernels::Role::input) continue;
      std::vector<bool>& changed = probe.changed.emplace_back(spec.elements());
      for (std::size_t i = 0; i < changed.size(); ++i)
        changed[i] = (marks[i / 8] >> static_cast<int>(i % 8) & std::byte{1}) != std::byte{0};
      marks = marks.subspan((changed.size() + 7) / 8);
    }
  }
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
