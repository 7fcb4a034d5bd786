#pragma once

#include <cstddef>
#include <cstdio>

#include "runtime/device/layers.hpp"

namespace greta::tuner {

/// The size of a terminal in characters; 0 where it is unknown.
struct TerminalSize {
  std::size_t columns = 0;
  std::size_t rows = 0;
};

/// Sets the width of standard output where it is not a terminal.
void set_output_columns(std::size_t columns);

/// Returns the size of the terminal that a stream writes to; for standard output that is not a
/// terminal, the width of set_output_columns().
TerminalSize terminal_size(std::FILE* stream);

}  // namespace greta::tuner
