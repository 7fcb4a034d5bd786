#include "kernels/templates/gemm/tensor_maps.hpp"

#include "kernels/model/weight_panels.hpp"
#include "kernels/planning/device_limits.hpp"

namespace greta::kernels::gemm {
namespace {

/// Returns the map of an operand that starts at `matrix`. A line of it has `length` elements; lines
/// are `stride` elements apart, and those of a copy begin at multiples of 16 bytes.
Argument mapped(const Shape& shape, const Argument& matrix, std::int64_t lines, std::int64_t length,
                std::int64_t stride, std::int64_t box_lines) {
  TensorMap map;
  map.type = shape.in;
  map.columns = static_cast<std::uint64_t>(length);
  map.rows = static_cast<std::uint64_t>(lines);
  map.box_rows = static_cast<std::uint32_t>(box_lines);
  if (const auto* const operand = std::get_if<OperandArgument>(&matrix)) {
    map.row_bytes = static_cast<std::uint64_t>(bytes_of(shape.in, stride));
    return TensorMapArgument{*operand, map};
  }
  map.row_bytes = static_cast<std::uint64_t>(round_up(bytes_of(shape.in, length), 16));
  return TensorMapArgument{std::get<WorkspaceArgument>(matrix), map};
}

}  // namespace

void add_tensor_maps(std::vector<Argument>& arguments, const Shape& shape, const BoxLines& boxes) {
  // Lines up to the last product's end.
  const auto lines = [&](std::int64_t own, std::int64_t step) {
    return own + (shape.groups - 1) * step;
  };
  const std::int64_t own_a = shape.a_lines(), own_b = shape.b_lines();
  const bool batch = shape.grouping == Grouping::batch;
  const bool contiguous = shape.grouping == Grouping::contiguous;  // m rows of all groups
  const std::int64_t lines_a = lines(own_a, batch        ? shape.a_step / shape.a_stride()
                                            : contiguous ? 0
                                                         : own_a);
  const std::int64_t lines_b = lines(own_b, batch ? shape.b_step / shape.b_stride() : own_b);
  const Argument a = arguments[0], b = arguments[1];
  arguments.push_back(mapped(shape, a, lines_a, shape.a_length(), shape.a_stride(), boxes.a));
  Argument map_b = mapped(shape, b, lines_b, shape.b_length(), shape.b_stride(), boxes.b);
  if (shape.gated) {
    // Row 2 c is line c, and 2 c + 1 the one n lines after it: as far as the last group's gates.
    auto& pairs = std::get<TensorMapArgument>(map_b).map;
    pairs.rows = static_cast<std::uint64_t>(2 * (lines_b - shape.n));
    pairs.pair_bytes = static_cast<std::uint64_t>(shape.n) * pairs.row_bytes;
  }
  if (shape.panels) {  // rows are panels, of which a box has 16 bytes of each line
    auto& panels = std::get<TensorMapArgument>(map_b).map;
    panels.columns = static_cast<std::uint64_t>(shape.k * panel_rows);
    panels.rows /= panel_rows;
    panels.row_bytes *= panel_rows;
    panels.box_rows /= static_cast<std::uint32_t>(panel_rows);
    panels.plain_bytes = panel_rows * panel_unit_bytes;
  }
  arguments.push_back(std::move(map_b));
}

}  // namespace greta::kernels::gemm
