#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::kernels {

/// Weights in panels: a matrix whose rows lie along k, for products whose lanes read the same bytes
/// of neighbouring rows. Of each 16 rows, units of 16 bytes follow each other: those of all rows at
/// one k, then those at the next one, so that 16 lanes read 256 bytes. It is the layout of AITER's
/// shuffle_weight(layout=(16, 16)).
constexpr std::int64_t panel_rows = 16, panel_unit_bytes = 16;

/// Returns where byte `k_byte` of a row is, from the first byte of the matrix on. Rows have
/// `row_bytes`, a multiple of 16, and there are a multiple of 16 rows.
constexpr std::int64_t panel_place(std::int64_t row, std::int64_t k_byte, std::int64_t row_bytes) {
  return row / panel_rows * panel_rows * row_bytes +
         k_byte / panel_unit_bytes * (panel_rows * panel_unit_bytes) +
         row % panel_rows * panel_unit_bytes + k_byte % panel_unit_bytes;
}

/// Write `count` packed rows as panels, and panels as rows. Require whole panels and units; several
/// matrices may follow each other. All cores take part.
void rows_to_panels(const std::byte* rows, std::int64_t count, std::int64_t row_bytes,
                    std::byte* to);
void panels_to_rows(const std::byte* panels, std::int64_t count, std::int64_t row_bytes,
                    std::byte* to);

/// Returns bytes of rows `first` to `first` + `count` - 1 of panels, as rows.
std::vector<std::byte> some_rows_of_panels(const std::byte* panels, std::int64_t first,
                                           std::int64_t count, std::int64_t row_bytes);

/// Return the same of all bytes.
std::vector<std::byte> panels_of_rows(const std::vector<std::byte>& rows, std::int64_t row_bytes);
std::vector<std::byte> rows_of_panels(const std::vector<std::byte>& panels, std::int64_t row_bytes);

}  // namespace greta::kernels
