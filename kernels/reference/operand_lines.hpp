#pragma once

#include <cstdint>
#include <memory>

#include "kernels/model/tensor.hpp"

namespace greta::kernels {

/// An operand of a product as lines along k: rows of A, columns of B. Lines are expanded when they
/// are read, because the matrices of all experts together have gigabytes as f32.
class OperandLines {
 public:
  virtual ~OperandLines() = default;
  /// Writes `count` elements of a line, from element `first` on. Thread-safe.
  virtual void read(std::int64_t line, std::int64_t first, std::int64_t count,
                    double* to) const = 0;
};

using KeptLines = std::shared_ptr<const OperandLines>;

/// Returns the rows of a packed matrix.
KeptLines rows_of(HostTensor matrix);
/// Returns the columns of a packed matrix of elements of 16 or 32 bits.
KeptLines columns_of(const HostTensor& matrix);

}  // namespace greta::kernels
