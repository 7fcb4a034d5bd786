#include "runtime/device/compile/listing.hpp"

#include <algorithm>
#include <array>

namespace greta::device {

namespace {

constexpr std::array<std::string_view, 10> matrix_mnemonics{
    "v_mfma_", "v_smfmac_", "v_wmma_", "v_swmmac_", "HMMA.",
    "HGMMA.",  "QGMMA.",    "IMMA.",   "IGMMA.",    "DMMA."};

/// Whether a line contains a matrix mnemonic after a space, a tab or the line's start. Addresses,
/// labels and predicates may precede it, and operands never look like one.
bool has_matrix_instruction(std::string_view line) {
  return std::any_of(matrix_mnemonics.begin(), matrix_mnemonics.end(),
                     [line](std::string_view mnemonic) {
                       const auto at = line.find(mnemonic);
                       if (at == std::string_view::npos) return false;
                       return at == 0 || line[at - 1] == ' ' || line[at - 1] == '\t';
                     });
}

}  // namespace

std::uint32_t count_matrix_instructions(std::string_view listing) {
  std::uint32_t count = 0;
  while (!listing.empty()) {
    const auto end = std::min(listing.find('\n'), listing.size());
    if (has_matrix_instruction(listing.substr(0, end))) ++count;
    listing.remove_prefix(std::min(end + 1, listing.size()));
  }
  return count;
}

}  // namespace greta::device
