#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/device/layers.hpp"

namespace greta::device {

/// Returns the number of matrix core instructions in a listing of machine code with one instruction
/// per line: AMD's v_mfma, v_smfmac, v_wmma and v_swmmac, NVIDIA's HMMA, HGMMA, QGMMA, IMMA, IGMMA
/// and DMMA.
std::uint32_t count_matrix_instructions(std::string_view listing);

}  // namespace greta::device
