#include "kernels/described/glsl_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "kernels/described/source_text.hpp"

namespace greta::kernels::described {

std::string glsl_text(const Description& description, const std::string& macros,
                      const std::string& sources, const std::string& entry,
                      const std::array<std::uint32_t, 3>& workgroup) {
  std::string version = "#version 460", body;
  bool found = false;
  for (std::string_view rest = sources; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    const bool is_version = directive(line, "version").has_value();
    if (is_version && !found) version = line;
    found = found || is_version;
    if (!is_version) body += line;
    body += '\n';
  }
  std::set<std::string> entries;
  const DescribedReference& reference = description.reference;
  if (description.language == SourceLanguage::glsl) {
    for (const DescribedLaunch& launch : description.launches) entries.insert(launch.entry);
  }
  if (reference.language == SourceLanguage::glsl) {
    for (const DescribedLaunch& launch : reference.launches) entries.insert(launch.entry);
  }
  std::string text = version + "\n#extension GL_GOOGLE_cpp_style_line_directive : require\n";
  for (const std::string& one : entries) {
    text += fmt::format("#define ENTRY_IS_{} {}\n", one, one == entry ? 1 : 0);
  }
  text += macros + body;
  text += fmt::format(
      "#line 1 \"workgroup of the description\"\n"
      "layout(local_size_x = {}, local_size_y = {}, local_size_z = {}) in;\n",
      workgroup[0], workgroup[1], workgroup[2]);
  if (entry != "main") {
    text += fmt::format("#line 1 \"entry of the description\"\nvoid main() {{ {}(); }}\n", entry);
  }
  return text;
}

}  // namespace greta::kernels::described
