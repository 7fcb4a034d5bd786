#include "runtime/device/system/module_paths.hpp"

#include <dlfcn.h>

#include <system_error>

namespace greta::device {

std::filesystem::path program_file() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error);
}

std::filesystem::path own_module_file() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&own_module_file), &info) == 0) return {};
  std::error_code error;
  return std::filesystem::weakly_canonical(info.dli_fname, error);
}

}  // namespace greta::device
