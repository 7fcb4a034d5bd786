#include "runtime/device/hip/host/sanitizer.hpp"

#include <dlfcn.h>

namespace greta::device::hip::host {
namespace {

template <typename Function>
void find(Function*& function, const char* name) {
  function = reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

AddressSanitizer find_all() {
  AddressSanitizer found;
  find(found.start_switch, "__sanitizer_start_switch_fiber");
  find(found.finish_switch, "__sanitizer_finish_switch_fiber");
  find(found.poison, "__asan_poison_memory_region");
  find(found.unpoison, "__asan_unpoison_memory_region");
  find(found.symbolize, "__sanitizer_symbolize_pc");
  return found;
}

}  // namespace

const AddressSanitizer& address_sanitizer() {
  static const AddressSanitizer runtime = find_all();
  return runtime;
}

}  // namespace greta::device::hip::host
