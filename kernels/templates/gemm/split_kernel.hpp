#pragma once

#include <cstdint>

#include "kernels/model/config.hpp"
#include "kernels/model/problem.hpp"
#include "kernels/templates/gemm/shape.hpp"
#include "runtime/device/device_info.hpp"

namespace greta::kernels::gemm {

/// Predicts how tma_split.hip treats a configuration, as TmaKernel does for tma.hip. One operand,
/// R, goes through registers, 64 rows for each warpgroup; products read the other one, S, from
/// shared memory, where it must lie along k.
class SplitKernel {
 public:
  SplitKernel(const Shape& shape, const DeviceInfo& device);

  /// Returns whether the device has these instructions, and the problem allows them.
  bool offered() const { return offered_; }
  /// Returns whether A lies along k: as S, or as R, whose fragments of lines across k only B has.
  bool has_layout() const { return shape_.a_along_k; }
  /// Return the extent of R, whose parameter is BM, or if R is B, BN; and that of S.
  std::int64_t rows(const Config& config) const { return config[swapped() ? "BN" : "BM"]; }
  std::int64_t span(const Config& config) const { return config[swapped() ? "BM" : "BN"]; }
  /// Returns whether R is B.
  bool swapped() const { return !shape_.b_along_k; }

  std::int64_t groups(const Config& config) const { return rows(config) / 64; }
  /// Returns the number of threads: those of the warpgroups, and of the one that copies and splits.
  std::int64_t threads(const Config& config) const { return (groups(config) + 1) * 4 * wave_; }
  /// Returns the bytes of dynamic shared memory.
  std::int64_t shared_bytes(const Config& config) const;
  /// Return the number of registers that a thread needs at least, needs, and has.
  std::int64_t least_registers(const Config& config) const;
  std::int64_t registers(const Config& config) const;
  std::int64_t register_limit(const Config& config) const;

 private:
  Shape shape_;
  std::int64_t wave_;
  bool offered_;
};

}  // namespace greta::kernels::gemm
