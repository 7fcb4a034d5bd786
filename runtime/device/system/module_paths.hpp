#pragma once

#include <filesystem>

#include "runtime/device/layers.hpp"

namespace greta::device {

/// Returns the file of the running program.
std::filesystem::path program_file();

/// Returns the file of the program or shared library that contains GRETA's code: libgreta.so where
/// another program, such as a Python interpreter, has loaded it.
std::filesystem::path own_module_file();

}  // namespace greta::device
