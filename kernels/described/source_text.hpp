#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/described/description.hpp"
#include "runtime/device/result.hpp"

namespace greta::kernels::described {

/// Returns a file of the description's folder, or null if there is none.
using FindSource = std::function<const std::string*(const std::string& name)>;

/// Returns the text of these files, one after the other, with their own `#include` lines replaced
/// by the files that they name: relative to the file that includes, or in one of `folders`. So the
/// text contains everything of the folder that reaches the binary. `#line` names the files.
///
/// A file with `#pragma once` is included once, and none within itself. Headers that compilers at
/// run time have built in, such as hip/hip_runtime.h, are left out. Other includes stay as they
/// are, except in GLSL, where there are no others. Fails with `invalid_argument` for missing files
/// and for texts of more than 16 MiB.
Result<std::string> whole_text(const std::vector<std::string>& names,
                               const std::vector<std::string>& folders, const FindSource& find,
                               SourceLanguage language);

/// Returns what follows `#`, a word and blanks in a line, or nothing for other lines.
std::optional<std::string_view> directive(std::string_view line, std::string_view word);

}  // namespace greta::kernels::described
