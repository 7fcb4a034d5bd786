#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::kernels {

/// Weights in panels: a matrix whose rows lie along k, in the order in which matrix instructions of
/// AMD GPUs read it. Of each 16 rows, units of 16 bytes follow each other: those of all rows at one
/// k, then those at the next one. It is the layout of AITER's shuffle_weight(layout=(16, 16)).
constexpr std::int64_t panel_rows = 16, panel_unit_bytes = 16;

/// Returns where byte `k_byte` of a row is, from the first byte of the matrix on. Rows have
/// `row_bytes`, a multiple of 16, and there are a multiple of 16 rows.
constexpr std::int64_t panel_place(std::int64_t row, std::int64_t k_byte, std::int64_t row_bytes) {
  return row / panel_rows * panel_rows * row_bytes +
         k_byte / panel_unit_bytes * (panel_rows * panel_unit_bytes) +
         row % panel_rows * panel_unit_bytes + k_byte % panel_unit_bytes;
}

/// Return the bytes of a matrix of packed rows in panels, and those of a matrix in panels row after
/// row. The number of bytes is a multiple of that of a panel; several matrices may follow each
/// other.
inline std::vector<std::byte> panels_of_rows(const std::vector<std::byte>& rows,
                                             std::int64_t row_bytes) {
  std::vector<std::byte> panels(rows.size());
  const auto count = static_cast<std::int64_t>(rows.size()) / row_bytes;
  for (std::int64_t row = 0; row < count; ++row) {
    for (std::int64_t at = 0; at < row_bytes; at += panel_unit_bytes) {
      std::copy_n(rows.begin() + row * row_bytes + at, panel_unit_bytes,
                  panels.begin() + panel_place(row, at, row_bytes));
    }
  }
  return panels;
}
inline std::vector<std::byte> rows_of_panels(const std::vector<std::byte>& panels,
                                             std::int64_t row_bytes) {
  std::vector<std::byte> rows(panels.size());
  const auto count = static_cast<std::int64_t>(panels.size()) / row_bytes;
  for (std::int64_t row = 0; row < count; ++row) {
    for (std::int64_t at = 0; at < row_bytes; at += panel_unit_bytes) {
      std::copy_n(panels.begin() + panel_place(row, at, row_bytes), panel_unit_bytes,
                  rows.begin() + row * row_bytes + at);
    }
  }
  return rows;
}

}  // namespace greta::kernels
