#include "runtime/pipeline/compute/weight_matrix.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

namespace greta::runtime {
namespace {

/// Returns whether rows that begin after `rows` ones can be an operand of their own.
bool aligned_after(DType dtype, std::int64_t cols, const MatrixFormat& format, std::int64_t rows) {
  const auto align = static_cast<std::int64_t>(alignment_of(DType::u8));
  if (format.scaled) {
    const bool whole = !format.scaled->blocks || rows % ScaledFormat::block == 0;
    const std::int64_t scales = format.scaled->scale_rows(rows) * format.scaled->scale_cols(cols);
    return whole && rows * cols % align == 0 && 4 * scales % align == 0;
  }
  constexpr std::int64_t of_bytes = 2;  // of scales and zero points that are bytes
  const std::int64_t groups = rows * format.groups(cols), scale = format.scale_bytes();
  return rows * format.row_bytes(dtype, cols) % align == 0 &&
         scale * groups % (scale == 1 ? of_bytes : align) == 0 &&
         (!format.zeros || groups % of_bytes == 0);
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

/// Returns whether parts form one matrix: of blocks that share a scale, each has whole ones.
bool one_matrix(const std::vector<ProjectionPart>& parts) {
  const MatrixFormat& first = parts.front().format;
  const bool blocks = first.scaled && first.scaled->blocks;
  return std::all_of(parts.begin(), parts.end(), [&](const ProjectionPart& part) {
    return part.format == first && (!blocks || part.rows % ScaledFormat::block == 0);
  });
}

}  // namespace

WeightMatrix WeightMatrix::slice(std::int64_t first, std::int64_t count) const {
  WeightMatrix part = *this;
  if (format.scaled && format.scaled->blocks) {
    if (first % ScaledFormat::block != 0) {
      throw Error(fmt::format("row {} of a matrix is within a block that shares a scale", first));
    }
    part.values = values.slice(0, first, count);
    part.scales = scales.slice(0, first / ScaledFormat::block, format.scaled->scale_rows(count));
    return part;
  }
  if (format.panels && (first % kernels::panel_rows != 0 || count % kernels::panel_rows != 0)) {
    throw Error(
        fmt::format("rows {} to {} of a matrix aren't whole panels", first, first + count - 1));
  }
  for (Tensor* tensor : {&part.values, &part.scales, &part.zeros}) {
    if (*tensor) *tensor = tensor->slice(0, first, count);
  }
  return part;
}

WeightMatrix make_matrix(DType dtype, std::int64_t rows, std::int64_t cols,
                         const MatrixFormat& format, const TensorMaker& make) {
  if (format.plain()) return make(dtype, {rows, cols}, Memory::device);
  WeightMatrix matrix;
  matrix.format = format;
  if (format.order != 0) matrix.order = make(DType::i32, {cols}, Memory::device);
  if (const auto& scaled = format.scaled) {
    matrix.values = make(DType::u8, {rows, cols}, Memory::device);
    matrix.scales =
        make(DType::f32, {scaled->scale_rows(rows), scaled->scale_cols(cols)}, Memory::device);
    matrix.input.format = *scaled;
    if (scaled->given_input) matrix.input.scale = make(DType::f32, {1, 1}, Memory::device);
    return matrix;
  }
  matrix.values = make(DType::u8, {rows, format.row_bytes(dtype, cols)}, Memory::device);
  const std::int64_t groups = format.groups(cols);
  if (groups == 0) return matrix;
  const DType scales = format.scale_bytes() == 1 ? DType::u8
                       : dtype == DType::bf16    ? DType::bf16
                                                 : DType::f16;
  matrix.scales = make(scales, {rows, groups}, Memory::device);
  if (format.zeros) matrix.zeros = make(DType::u8, {rows, groups}, Memory::device);
  return matrix;
}

ScaleSharing sharing_of(const ScaledFormat& format) {
  return format.blocks ? ScaleSharing::block : ScaleSharing::row;
}

ScaledRows quantise_rows(Pipeline& on, const Tensor& x, std::int64_t cols, const ScaledInput& input,
                         const QuantizeOptions& fused) {
  const std::int64_t rows = x.shape()[0];
  const ScaledFormat& format = input.format;
  ScaledRows result{format, on.temporary(DType::u8, {rows, cols})};
  QuantizeOptions options = fused;
  options.format = format.numbers;
  if (format.given_input) {
    if (!input.ones) throw Error("no scales of rows are there for static activations");
    options.scales = ScaleSharing::tensor;
    on.quantize(x, result.codes, input.scale, options).value();
    result.scales = input.ones.slice(0, 0, rows);
    return result;
  }
  result.scales = on.temporary(DType::f32, {rows, format.scale_cols(cols)});
  options.scales = sharing_of(format);
  on.quantize(x, result.codes, result.scales, options).value();
  return result;
}

GemmOptions by_weight_rows() {
  GemmOptions options;
  options.layout = Layout::nt;
  return options;
}

Result<void> multiply(Pipeline& on, const ScaledRows& a, const WeightMatrix& w, const Tensor& c) {
  return on.scaled_gemm(a.codes, w.values, a.scales, w.scales, c,
                        {.format = a.format.numbers, .scales = sharing_of(a.format)});
}

Result<void> multiply(Pipeline& on, const Tensor& a, const WeightMatrix& w, const Tensor& c,
                      const ProductEpilogue& epilogue, const ProductPrologue& prologue) {
  if (prologue && (w.order || w.format.scaled)) {
    throw Error("products with fp8 or with reordered columns have no prologue");
  }
  if (w.order) {
    WeightMatrix ordered = w;
    ordered.order = {};
    const std::string label = on.label();
    on.label(label + " columns");
    const Tensor columns = on.temporary(a.dtype(), {a.shape()[0], a.shape()[1]});
    if (auto done = on.gather_columns(w.order, a, columns); !done) return done;
    on.label(label);
    return multiply(on, columns, ordered, c, epilogue);
  }
  if (w.format.scaled) {
    if (epilogue) throw Error("products with fp8 have no epilogue");
    return multiply(on, quantise_rows(on, a, a.shape()[1], w.input), w, c);
  }
  if (!w.quantised()) {
    GemmOptions options = by_weight_rows();
    options.norm_weight = prologue.norm_weight;
    if (prologue) options.norm_epsilon = prologue.epsilon;
    options.bias = epilogue.bias;
    options.residual = epilogue.residual;
    if (epilogue.gated) options.activation = Activation::swiglu;
    return on.gemm(a, w.values, c, options);
  }
  QuantizedGemmOptions options;
  options.format = *w.format.quantised;
  options.scales = w.scales;
  options.zeros = w.zeros;
  options.norm_weight = prologue.norm_weight;
  if (prologue) options.norm_epsilon = prologue.epsilon;
  options.bias = epilogue.bias;
  options.residual = epilogue.residual;
  options.gated = epilogue.gated;
  if (w.format.panels) options.packing = kernels::WeightPacking::panels;
  return on.quantized_gemm(a, w.values, c, options);
}

std::int64_t Projection::rows() const {
  std::int64_t rows = 0;
  for (const WeightMatrix& segment : segments) rows += segment.rows();
  return rows;
}

std::optional<ScaledInput> Projection::scaled() const {
  const auto& first = segments.front().format.scaled;
  const bool alike =
      std::all_of(segments.begin(), segments.end(),
                  [&](const WeightMatrix& segment) { return segment.format.scaled == first; });
  return alike ? segments.front().scaled() : std::nullopt;
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
  const bool whole = one_matrix(parts);
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
