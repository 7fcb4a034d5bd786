#pragma once

namespace greta::capture {

/// Prints "greta-capture: WHATWHY" as a line on standard error, in one piece and without memory of
/// the heap.
void report(const char* what, const char* why);

}  // namespace greta::capture
