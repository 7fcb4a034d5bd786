#include "kernels/model/embedded.hpp"

#include <string>

#include "runtime/device/result.hpp"

namespace greta {

std::string_view embedded_file(std::string_view path) {
  for (const EmbeddedFile& file : embedded_files()) {
    if (file.path == path) return file.text;
  }
  throw Error("no kernel source \"" + std::string(path) + "\" was built into the library");
}

}  // namespace greta
