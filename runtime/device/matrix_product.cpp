#include "runtime/device/matrix_product.hpp"

#include <fmt/format.h>

#include <string_view>

namespace greta::device {

namespace {

std::string_view text_of(MatrixScales scales) {
  switch (scales) {
    case MatrixScales::tensor:
      return " scales=tensor";
    case MatrixScales::row:
      return " scales=row";
    case MatrixScales::block:
      return " scales=block";
    default:
      return "";
  }
}

}  // namespace

std::string MatrixProduct::text() const {
  return fmt::format(
      "m={} n={} k={} in={} out={} a={} b={} bias={} alpha={} beta={} workspace={} rank={}{}{}{}{}",
      m, n, k, to_string(in), to_string(out), transposed_a ? 't' : 'n', transposed_b ? 't' : 'n',
      bias, alpha, beta, workspace_bytes, rank,
      lda + ldb + ldd == 0 ? "" : fmt::format(" ld={},{},{}", lda, ldb, ldd),
      alignment == 16 ? "" : fmt::format(" alignment={}", alignment),
      batch == 1 ? "" : fmt::format(" batch={} steps={},{},{}", batch, a_step, b_step, d_step),
      text_of(scales));
}

}  // namespace greta::device
