#pragma once

#include <string>
#include <string_view>

#include "runtime/device/layers.hpp"

namespace greta::device {

/// Returns the text in a form that is safe for a terminal: every control character (C0, DEL, and
/// C1, which is U+0080 to U+009F) and every byte that is not UTF-8 becomes an escape such as
/// "\x1b". Newlines and tabs are kept.
std::string printable(std::string_view text);

/// Does the same for text that must stay on one line: newlines and tabs become escapes, too.
std::string one_line(std::string_view text);

/// Returns JSON text with DEL and the C1 characters escaped as "\u007f": JSON itself requires
/// escapes for C0 only. The text must be UTF-8.
std::string printable_json(std::string_view text);

}  // namespace greta::device
