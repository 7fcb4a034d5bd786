#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "tuner/interchange/tunableop.hpp"

namespace greta::tuner {

/// The tool of captures of libgreta-capture.so.
inline constexpr const char* captured_calls_tool = "libgreta-capture";

/// What a tool recorded of the GEMMs that a program ran.
struct GemmLog {
  /// "PyTorch TunableOp", "AITER", "hipblaslt-bench", "libgreta-capture"; empty: of no known tool
  std::string tool;
  std::vector<Peer> peers;  ///< with the tool's solutions and times where the file has them
  std::vector<Untranslated> untranslated;
  std::size_t assumed_packed = 0;  ///< rows that do not state leading dimensions
};

/// Reads a log of GEMMs, and recognises its tool by its lines:
///
/// - PyTorch TunableOp's recorded and tuned GEMMs (read_tunableop());
/// - AITER's `*_untuned_gemm.csv` and `*_tuned_gemm.csv`: a table whose columns are named, of
///   row-major products of A [M, K] and the transpose of B [N, K];
/// - logs with command lines of hipblaslt-bench (`HIPBLASLT_LOG_MASK=32`), its YAML problems
///   (`- { function: matmul, M: …`) and its results. They are column-major, as BLAS is: the first
///   operand is the second one of the row-major product, and M is the row-major n;
/// - captures of libgreta-capture.so (read_blas_capture()).
///
/// Never fails: unreadable rows are untranslated. Other lines of a log of hipblaslt-bench are
/// ignored. Sources: aiter/configs of ROCm/aiter; clients/bench and
/// how-to-use-hipblaslt-offline-tuning of hipBLASLt's documentation.
GemmLog read_gemm_log(std::istream& in);

}  // namespace greta::tuner
