#include "runtime/device/dynamic_library.hpp"

#include <dlfcn.h>

namespace greta {

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
  static_cast<void>(new std::shared_ptr<void>(handle_));  // one reference that nobody gives back
}

}  // namespace greta
