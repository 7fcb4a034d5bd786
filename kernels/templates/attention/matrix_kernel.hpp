#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/model/space.hpp"
#include "kernels/templates/attention/shape.hpp"
#include "runtime/device/device_info.hpp"
#include "runtime/device/hardware/architectures.hpp"

namespace greta::kernels::attention {

/// Predicts how matrix.hip treats a problem on a device: what the device offers, and the resources
/// of a workgroup.
class MatrixKernel {
 public:
  MatrixKernel(const Shape& shape, const DeviceInfo& device);

  bool offered() const { return offered_; }
  /// Returns the spans of products, of which INSTR is one where there are several.
  const std::vector<int>& spans() const { return spans_; }
  int wave() const { return wave_; }
  /// Whether reads of shared memory can transpose values, as TURN says. Asynchronous copies write
  /// 16 bytes for each lane then, one lane behind the other.
  bool turns() const { return turns_; }
  /// Whether asynchronous copies write to per-lane addresses.
  bool lane_copies() const { return cores_ == MatrixCores::mma; }
  /// Whether the problem's keys and values can be copied asynchronously: in some of these ways, or
  /// as turns() says.
  bool copies() const { return copies_; }
  bool wave_copies() const { return copies_ && !lane_copies(); }

  std::int64_t threads(const Config& c) const {
    return std::int64_t{c["WAVES"]} * c["KWAVES"] * wave_;
  }
  /// Returns the number of rows of a workgroup's tile: queries, or with PACK queries times heads.
  static std::int64_t rows(const Config& c) { return std::int64_t{c["WAVES"]} * c["WQ"]; }
  /// Returns the bytes of dynamic shared memory.
  std::int64_t shared_bytes(const Config& c) const;
  /// Returns the size of what the waves that share rows join through shared memory.
  std::int64_t wave_sums_bytes(const Config& c) const {
    return c["KWAVES"] * rows(c) * (shape_.v_dim + 8) * 4;
  }

  /// Returns the number of 32-bit registers that a thread uses at once: outputs, scores, the
  /// operands of one matrix instruction, all queries with QREG, and keys and values that wait to be
  /// written to shared memory.
  std::int64_t least_registers(const Config& c) const;
  /// Returns an estimate of what a thread needs: also the operands of further instructions, the
  /// maximum and the sum of each row, and addresses().
  std::int64_t registers(const Config& c) const;
  /// Returns an estimate of the registers that hold where pages or packed tokens lie.
  std::int64_t addresses(const Config& c) const;
  std::int64_t register_limit(const Config& c) const {
    return std::min(thread_registers_, workgroup_registers_ / threads(c));
  }
  /// Returns the number of matrix instructions of a wave per tile, with products of 16 x 16.
  std::int64_t instructions(const Config& c) const;
  /// Returns of what dimensions and keys are padded to a multiple; see layout.hip.
  std::int64_t granule() const { return cores_ == MatrixCores::mfma ? 32 : 16; }

 private:
  static int span(const Config& c) { return c.has("INSTR") ? c["INSTR"] : 16; }
  static std::int64_t blocks(const Config& c) { return c["WQ"] / span(c); }
  /// Returns the number of registers of an operand of a matrix instruction.
  std::int64_t fragment() const { return cores_ == MatrixCores::wmma11 ? 8 : 4; }
  std::int64_t padded() const { return round_up(shape_.dim, granule()); }
  std::int64_t padded_values() const { return round_up(shape_.v_dim, granule()); }
  std::int64_t tiles_bytes(const Config& c) const;
  /// Returns the number of loads of 16 bytes of a thread for the keys and the values of a step.
  std::int64_t loads(const Config& c) const;

  Shape shape_;
  MatrixCores cores_;
  std::int64_t thread_registers_, workgroup_registers_;
  int wave_;
  bool offered_ = false, turns_ = false, copies_ = false;
  std::vector<int> spans_{16};
};

}  // namespace greta::kernels::attention
