#pragma once

#include <filesystem>
#include <string>

#include "tuner/diagnose/evidence.hpp"

namespace greta::tuner {

/// Draws an output as text: a character for each block of elements, at most 64 across and 24 down.
/// `.` correct, `:` some wrong, `#` all wrong, `N` NaN, `~` differs between runs, `_` not written.
std::string error_map(const ExaminedOutput& output);

/// Writes an image of an output: a pixel or a square for each element, or for each block of a large
/// output. Correct elements are grey; wrong ones are red, the brighter the larger the error;
/// violet: NaN; yellow: differs between runs; blue: not written. Lines are the borders of the tiles
/// of the kernel. Throws Error with `io`.
void write_error_image(const Evidence& evidence, const ExaminedOutput& output,
                       const std::filesystem::path& file);

}  // namespace greta::tuner
