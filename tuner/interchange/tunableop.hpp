#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <utility>
#include <vector>

#include "db/tuned_db.hpp"

namespace greta::tuner {

/// Bytes that a file of TunableOp may have.
inline constexpr std::uint64_t most_tunableop_bytes = std::uint64_t{64} << 20;

// PyTorch TunableOp's CSV files of GEMMs, as PyTorch 2.2 and later write them:
// `Validator,NAME,VALUE` lines, then
// `GemmTunableOp_Half_TN,tn_M_N_K_ld_A_B_C,SOLUTION,MILLISECONDS`; solution and time are missing in
// files of GEMMs that are still to be tuned. The product is BLAS's, in columns: its first operand
// is the second one of a product in rows, and its M the rows' n. Source:
// aten/src/ATen/cuda/tunable/README.md and torch/cuda/tunable.py of PyTorch.

/// A row that has no meaning here, and why.
struct Untranslated {
  std::string row;  ///< "line 7", or a problem's key
  std::string reason;
};

/// What a file says. GRETA has no use for PyTorch's solutions: they are kernels of BLAS libraries.
/// What carries over is which products there are, and how long those kernels take.
struct TunableOpFile {
  std::vector<std::pair<std::string, std::string>> validators;  ///< as written
  std::vector<Peer> peers;
  std::vector<Untranslated> untranslated;
  std::size_t assumed_packed = 0;  ///< rows of older files, which do not say that lines are packed
};

/// Name of the library that such rows are stored under.
inline constexpr const char* tunableop_library = "PyTorch TunableOp";

/// Never fails: what can't be read is untranslated.
TunableOpFile read_tunableop(std::istream& in);

/// "PT_VERSION=2.8.0, ROCM_VERSION=…", and the inverse.
std::string validators_text(const std::vector<std::pair<std::string, std::string>>& validators);
std::vector<std::pair<std::string, std::string>> validators_from_text(const std::string& text);

/// The first two fields of a problem's row: "GemmTunableOp_float_NN", "nn_512_512_512_ld_…". Fails
/// with the reason where TunableOp has no such product.
Result<std::pair<std::string, std::string>> tunableop_fields(const Problem& problem);

}  // namespace greta::tuner
