#include "kernels/model/weight_panels.hpp"

#include <cstring>

#include "kernels/model/parallel.hpp"

namespace greta::kernels {
namespace {

/// Calls body(place in rows, place in panels) for each unit of so many rows.
template <typename Body>
void each_unit(std::int64_t rows, std::int64_t row_bytes, const Body& body) {
  parallel_parts(rows, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t row = first; row < last; ++row) {
      for (std::int64_t byte = 0; byte < row_bytes; byte += panel_unit_bytes) {
        body(row * row_bytes + byte, panel_place(row, byte, row_bytes));
      }
    }
  });
}

}  // namespace

void rows_to_panels(const std::byte* rows, std::int64_t count, std::int64_t row_bytes,
                    std::byte* to) {
  each_unit(count, row_bytes, [=](std::int64_t in_rows, std::int64_t in_panels) {
    std::memcpy(to + in_panels, rows + in_rows, panel_unit_bytes);
  });
}

void panels_to_rows(const std::byte* panels, std::int64_t count, std::int64_t row_bytes,
                    std::byte* to) {
  each_unit(count, row_bytes, [=](std::int64_t in_rows, std::int64_t in_panels) {
    std::memcpy(to + in_rows, panels + in_panels, panel_unit_bytes);
  });
}

std::vector<std::byte> some_rows_of_panels(const std::byte* panels, std::int64_t first,
                                           std::int64_t count, std::int64_t row_bytes) {
  std::vector<std::byte> rows(static_cast<std::size_t>(count * row_bytes));
  for (std::int64_t row = 0; row < count; ++row) {
    for (std::int64_t byte = 0; byte < row_bytes; byte += panel_unit_bytes) {
      std::memcpy(rows.data() + row * row_bytes + byte,
                  panels + panel_place(first + row, byte, row_bytes), panel_unit_bytes);
    }
  }
  return rows;
}

std::vector<std::byte> panels_of_rows(const std::vector<std::byte>& rows, std::int64_t row_bytes) {
  std::vector<std::byte> panels(rows.size());
  rows_to_panels(rows.data(), static_cast<std::int64_t>(rows.size()) / row_bytes, row_bytes,
                 panels.data());
  return panels;
}

std::vector<std::byte> rows_of_panels(const std::vector<std::byte>& panels,
                                      std::int64_t row_bytes) {
  std::vector<std::byte> rows(panels.size());
  panels_to_rows(panels.data(), static_cast<std::int64_t>(panels.size()) / row_bytes, row_bytes,
                 rows.data());
  return rows;
}

}  // namespace greta::kernels
