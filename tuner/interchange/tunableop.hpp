#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <utility>
#include <vector>

#include "db/tuned_db.hpp"

namespace greta::tuner {

/// Maximum size of a TunableOp file in bytes.
inline constexpr std::uint64_t most_tunableop_bytes = std::uint64_t{64} << 20;

// PyTorch TunableOp's CSV files of GEMMs, as PyTorch 2.2 and later write them:
// `Validator,NAME,VALUE` lines, then
// `GemmTunableOp_Half_TN,tn_M_N_K_ld_A_B_C,SOLUTION,MILLISECONDS`. Files of GEMMs that are not
// tuned yet have no solution and time. The convention is column-major as in BLAS: the first operand
// is the second one of the row-major product, and M is the row-major n. Source:
// aten/src/ATen/cuda/tunable/README.md and torch/cuda/tunable.py of PyTorch.

/// A row that can't be translated, and why.
struct Untranslated {
  std::string row;  ///< "line 7", or a problem key
  std::string reason;
};

/// The contents of a file. PyTorch's solutions are kernels of BLAS libraries, which GRETA can't
/// use. The list of GEMMs and the times of these kernels are imported.
struct TunableOpFile {
  std::vector<std::pair<std::string, std::string>> validators;  ///< as written
  std::vector<Peer> peers;
  std::vector<Untranslated> untranslated;
  std::size_t assumed_packed = 0;  ///< rows of older files, without leading dimensions
};

/// Name of the library under which such rows are stored.
inline constexpr const char* tunableop_library = "PyTorch TunableOp";

/// Never fails: unreadable rows are untranslated.
TunableOpFile read_tunableop(std::istream& in);

/// Returns "PT_VERSION=2.8.0, ROCM_VERSION=…"; the second function is its inverse.
std::string validators_text(const std::vector<std::pair<std::string, std::string>>& validators);
std::vector<std::pair<std::string, std::string>> validators_from_text(const std::string& text);

/// Returns the first two fields of a problem's row: "GemmTunableOp_float_NN",
/// "nn_512_512_512_ld_…". Fails with the reason if TunableOp has no such GEMM.
Result<std::pair<std::string, std::string>> tunableop_fields(const Problem& problem);

}  // namespace greta::tuner
