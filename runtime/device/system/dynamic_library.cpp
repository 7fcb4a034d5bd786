#include "runtime/device/system/dynamic_library.hpp"

#include <dlfcn.h>

#include <mutex>

namespace greta::device {

Result<DynamicLibrary> DynamicLibrary::open(const std::vector<std::string>& names) {
  std::string reasons;
  for (const auto& name : names) {
    if (void* const handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) {
      DynamicLibrary library;
      library.name_ = name;
      library.handle_ = {handle, [](void* opened) { dlclose(opened); }};
      return library;
    }
    reasons += (reasons.empty() ? "" : "; ") + std::string(dlerror());
  }
  return Failure{Status::unavailable, reasons, {}};
}

void* DynamicLibrary::find(const std::string& symbol) const {
  return dlsym(handle_.get(), symbol.c_str());
}

void DynamicLibrary::keep_open() const {
  static auto* const mutex = new std::mutex;
  static auto* const kept = new std::vector<std::shared_ptr<void>>;  // never destroyed
  const std::lock_guard lock(*mutex);
  kept->push_back(handle_);
}

}  // namespace greta::device
