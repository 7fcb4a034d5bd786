#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::tuner {

/// A word or sign of a kernel's source.
struct SourceToken {
  enum class Kind { name, number, sign };
  Kind kind = Kind::sign;
  std::size_t start = 0;
  std::string_view text;
  /// The definition at file scope (function, structure, variable) to which it belongs.
  std::size_t definition = 0;

  std::size_t end() const { return start + text.size(); }
};

/// Whether a name is written as those of macros and constants: without lower-case letters.
bool is_constant_name(std::string_view name);
/// Whether a name is a keyword of HIP or GLSL, or a type of all kernels.
bool is_source_keyword(std::string_view name);

/// Returns the words and signs of a source in HIP or GLSL, without comments, strings and
/// preprocessor lines. `source` must outlive them.
std::vector<SourceToken> tokens_of(std::string_view source);

/// Returns those words and signs that a kernel's entry uses: of branches of the preprocessor that
/// are compiled as far as the source determines it, and of definitions whose name the entry's
/// definition contains, or one that it uses. What is uncertain counts as used.
std::vector<SourceToken> used_tokens(std::string_view source, std::string_view entry);

/// Returns the words and signs of each macro's text that a kernel's entry uses as an expression, in
/// compiled lines. Left out are macros before the first other line, which are a kernel's
/// parameters, and those in conditions of the preprocessor.
std::vector<std::vector<SourceToken>> used_macros(std::string_view source, std::string_view entry);

}  // namespace greta::tuner
