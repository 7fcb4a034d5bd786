#pragma once

#include <string>
#include <string_view>

#include "runtime/device/layers.hpp"

namespace greta::device {

/// The text as a terminal may show it: every control character (C0, DEL, and C1, which is U+0080 to
/// U+009F) and every byte that is no UTF-8 becomes an escape as "\x1b". Newlines and tabs stay.
std::string printable(std::string_view text);

/// The same of a text that belongs on one line: newlines and tabs become escapes, too.
std::string one_line(std::string_view text);

/// JSON text with DEL and the C1 characters as "\u007f": JSON itself asks for the escapes of C0
/// alone. The text is UTF-8.
std::string printable_json(std::string_view text);

}  // namespace greta::device
