#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/model/tensor.hpp"
#include "runtime/device/result.hpp"

namespace greta::kernels::described {

/// Returns the elements that a file contains: all of it, or what follows the header of a .npy file.
/// `shape` is the operand's. Fails with `invalid_argument` if the number of bytes differs, or if a
/// .npy file has another type, byte order, order of elements or shape. Extents of 1 are not
/// compared, and an operand of one extent takes every shape.
Result<std::string_view> elements_of(const std::string& name, std::string_view file,
                                     const TensorSpec& spec,
                                     const std::vector<std::int64_t>& shape);

}  // namespace greta::kernels::described
