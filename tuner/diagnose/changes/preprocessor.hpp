#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::tuner {

/// Whether names and numbers may contain a character.
bool is_name_character(char c);

/// A source's lines as the preprocessor sees them.
struct CompiledLines {
  std::vector<char> active;  ///< of each line: whether it is compiled; 1 if unknown
  std::map<std::string, std::string> macros;  ///< the text of each macro that compiled lines define
};

/// Evaluates the conditions of a source. A condition with names that the source doesn't define, as
/// compilers' own, is unknown, and all its branches count as compiled.
CompiledLines compiled_lines(std::string_view source);

}  // namespace greta::tuner
