#include "runtime/pipeline/compute/weight_matrix.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

namespace greta::runtime {
namespace {

/// Returns whether rows that begin after `rows` ones can be an operand of their own.
bool aligned_after(DType dtype, std::int64_t cols, const MatrixFormat& format, std::int64_t rows) {
  const auto align = static_cast<std::int64_t>(alignment_of(DType::u8));
  const std::int64_t groups = rows * format.groups(cols);
  return rows * format.row_bytes(dtype, cols) % align == 0 && 2 * groups % align == 0 &&
         (!format.zeros || groups % align == 0);
}

std::int64_t rows_of(std::span<const ProjectionPart> parts) {
  std::int64_t rows = 0;
  for (const ProjectionPart& part : parts) rows += part.rows;
  return rows;
}

/// Returns how many of the parts, from the first one on, form a segment.
std::size_t segment_of(DType dtype, std::int64_t cols, std::span<const ProjectionPart> parts,
                       bool whole) {
  std::size_t count = 1;
  while (count < parts.size() && parts[count].format == parts.front().format &&
         (whole || aligned_after(dtype, cols, parts.front().format, rows_of(parts.first(count))))) {
    ++count;
  }
  return count;
}

}  // namespace

WeightMatrix WeightMatrix::slice(std::int64_t first, std::int64_t count) const {
  WeightMatrix part = *this;
  for (Tensor* tensor : {&part.values, &part.scales, &part.zeros}) {
    if (*tensor) *tensor = tensor->slice(0, first, count);
  }
  return part;
}

WeightMatrix make_matrix(DType dtype, std::int64_t rows, std::int64_t cols,
                         const MatrixFormat& format, const TensorMaker& make) {
  if (!format.quantised) return make(dtype, {rows, cols}, Memory::device);
  WeightMatrix matrix;
  matrix.format = format;
  matrix.values = make(DType::u8, {rows, format.row_bytes(dtype, cols)}, Memory::device);
  const std::int64_t groups = format.groups(cols);
  if (groups == 0) return matrix;
  const DType scales = dtype == DType::bf16 ? DType::bf16 : DType::f16;
  matrix.scales = make(scales, {rows, groups}, Memory::device);
  if (format.zeros) matrix.zeros = make(DType::u8, {rows, groups}, Memory::device);
  return matrix;
}

Result<void> multiply(Operations& on, const Tensor& a, const WeightMatrix& w, const Tensor& c) {
  if (!w.quantised()) {
    GemmOptions options;
    options.layout = Layout::nt;
    return on.gemm(a, w.values, c, options);
  }
  QuantizedGemmOptions options;
  options.format = *w.format.quantised;
  options.scales = w.scales;
  options.zeros = w.zeros;
  return on.quantized_gemm(a, w.values, c, options);
}

std::int64_t Projection::rows() const {
  std::int64_t rows = 0;
  for (const WeightMatrix& segment : segments) rows += segment.rows();
  return rows;
}

WeightMatrix Projection::slice(std::int64_t first, std::int64_t count) const {
  std::int64_t begin = 0;
  for (const WeightMatrix& segment : segments) {
    const std::int64_t at = first - begin;
    if (at >= 0 && at + count <= segment.rows()) {
      return count == segment.rows() ? segment : segment.slice(at, count);
    }
    begin += segment.rows();
  }
  throw Error(fmt::format("rows {} to {} of a projection aren't of one of its segments", first,
                          first + count - 1));
}

Projection make_projection(DType dtype, std::int64_t cols, const std::vector<ProjectionPart>& parts,
                           const TensorMaker& make) {
  const bool whole = std::all_of(parts.begin(), parts.end(), [&](const ProjectionPart& part) {
    return part.format == parts.front().format;
  });
  Projection projection;
  for (std::span<const ProjectionPart> rest = parts; !rest.empty();) {
    const std::size_t count = segment_of(dtype, cols, rest, whole);
    projection.segments.push_back(
        make_matrix(dtype, rows_of(rest.first(count)), cols, rest.front().format, make));
    rest = rest.subspan(count);
  }
  return projection;
}

}  // namespace greta::runtime
