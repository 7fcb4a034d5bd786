#include "runtime/capture/symbol.hpp"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>

#include <cstdio>
#include <cstring>

#include "runtime/capture/process.hpp"

// The bounds of the list that GRETA_SYMBOL() makes, set by the linker.
extern "C" {
extern greta::capture::Symbol* const __start_greta_symbols[] __attribute__((visibility("hidden")));
extern greta::capture::Symbol* const __stop_greta_symbols[] __attribute__((visibility("hidden")));
}

namespace greta::capture {
namespace {

constexpr unsigned most_libraries = 32;
Library libraries[most_libraries];
std::atomic<unsigned> libraries_used;
// Held for moments only, and never while the loader is called, which has a lock of its own.
pthread_mutex_t tables = PTHREAD_MUTEX_INITIALIZER;

class Locked {
 public:
  Locked() { pthread_mutex_lock(&tables); }
  ~Locked() { pthread_mutex_unlock(&tables); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;
};

/// Returns a function of a loaded file, which stays loaded from now on.
void* function_in(const char* path, const char* name) {
  if (path == nullptr || *path == '\0' || name == nullptr) return nullptr;
  void* const handle = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) return nullptr;
  void* const function = next_dlsym(handle, name);
  return function != nullptr && !is_own(function) ? function : nullptr;
}

/// The paths of loaded files whose name begins as a family's does.
struct Loaded {
  const char* begin;
  char paths[8][sizeof(Library::path)];
  unsigned count;
};

int note_loaded(dl_phdr_info* info, std::size_t, void* context) {
  Loaded& loaded = *static_cast<Loaded*>(context);
  const char* const slash = std::strrchr(info->dlpi_name, '/');
  const char* const file = slash != nullptr ? slash + 1 : info->dlpi_name;
  const std::size_t length = std::strlen(loaded.begin);
  if (std::strncmp(file, loaded.begin, length) != 0) return 0;
  if (file[length] != '.' && file[length] != '-') return 0;
  if (loaded.count < 8) {
    std::snprintf(loaded.paths[loaded.count++], sizeof loaded.paths[0], "%s", info->dlpi_name);
  }
  return 0;
}

const Library* find_library(const void* base) {
  const unsigned count = libraries_used.load(std::memory_order_acquire);
  for (unsigned i = 0; i < count; ++i) {
    if (libraries[i].base == base) return &libraries[i];
  }
  return nullptr;
}

/// Returns the library that a function belongs to; nullptr if there are too many.
const Library* library_of(void* function, const Family& family) {
  Dl_info info{};
  if (dladdr(function, &info) == 0) return nullptr;
  if (const Library* const known = find_library(info.dli_fbase)) return known;
  Library fresh{};
  fresh.base = info.dli_fbase;
  fresh.family = &family;
  std::snprintf(fresh.path, sizeof fresh.path, "%s", info.dli_fname);
  const auto get = [&](const char* name) { return function_in(fresh.path, name); };
  fresh.pointer_mode = reinterpret_cast<Library::Mode>(get(family.pointer_mode));
  fresh.math_mode = reinterpret_cast<Library::Mode>(get(family.math_mode));
  fresh.layout_get = reinterpret_cast<Library::Get>(get(family.layout_get));
  fresh.matmul_get = reinterpret_cast<Library::Get>(get(family.matmul_get));
  fresh.stream_get = reinterpret_cast<decltype(fresh.stream_get)>(get(family.stream_get));
  const Locked locked;
  if (const Library* const known = find_library(info.dli_fbase)) return known;
  const unsigned index = libraries_used.load();
  if (index == most_libraries) return nullptr;
  libraries[index] = fresh;
  libraries_used.store(index + 1, std::memory_order_release);
  return &libraries[index];
}

}  // namespace

void* function_in_loaded(const char* begin, const char* name) {
  Loaded loaded{};
  loaded.begin = begin;
  dl_iterate_phdr(note_loaded, &loaded);
  for (unsigned i = 0; i < loaded.count; ++i) {
    if (void* const function = function_in(loaded.paths[i], name)) return function;
  }
  return nullptr;
}

Symbol* const* symbols() {
  return __start_greta_symbols;
}

std::uint16_t symbol_count() {
  return static_cast<std::uint16_t>(__stop_greta_symbols - __start_greta_symbols);
}

Symbol* symbol_of(const char* name) {
  if (std::strstr(name, "blas") == nullptr) return nullptr;  // as most names that are looked up
  for (Symbol* const* symbol = __start_greta_symbols; symbol != __stop_greta_symbols; ++symbol) {
    if (std::strcmp((*symbol)->name(), name) == 0) return *symbol;
  }
  return nullptr;
}

const Library& library(unsigned index) {
  return libraries[index];
}
unsigned library_count() {
  return libraries_used.load(std::memory_order_acquire);
}

void forget_lock() {
  pthread_mutex_init(&tables, nullptr);
}

Dlsym library_dlsym() {
  static std::atomic<Dlsym> next;
  Dlsym found = next.load(std::memory_order_relaxed);
  if (found != nullptr) return found;
  for (const char* const version : {"GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5", "GLIBC_2.27"}) {
    found = reinterpret_cast<Dlsym>(dlvsym(RTLD_NEXT, "dlsym", version));
    if (found != nullptr) break;
  }
  next.store(found, std::memory_order_relaxed);
  return found;
}

void* next_dlsym(void* handle, const char* name) {
  const Dlsym next = library_dlsym();
  return next != nullptr ? next(handle, name) : nullptr;
}

bool is_own(const void* address) {
  static const void* own = nullptr;
  Dl_info info{};
  if (own == nullptr && dladdr(reinterpret_cast<const void*>(&is_own), &info) != 0) {
    own = info.dli_fbase;
  }
  return dladdr(address, &info) != 0 && info.dli_fbase == own;
}

bool Symbol::give(void* function) {
  void* known = nullptr;
  if (given_.compare_exchange_strong(known, function)) known = function;
  if (known != function) return false;
  void* const linked = next_dlsym(RTLD_NEXT, name_);
  return linked == nullptr || linked == function;
}

/// In the order in which the loader looks: what the caller is linked with, what all see. Then what
/// only dlsym() or dlopen() can have given it.
void* Symbol::function_of(const void* caller) const {
  Dl_info info{};
  link_map* map = nullptr;
  if (dladdr1(caller, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) != 0) {
    if (void* const function = function_in(map->l_name, name_)) return function;
  }
  if (void* const function = next_dlsym(RTLD_NEXT, name_)) return function;
  if (void* const function = given_.load()) return function;
  return function_in_loaded(family_.file, name_);
}

Route Symbol::find(const void* caller) {
  start_once();
  Route route;
  route.function = function_of(caller);
  if (route.function == nullptr) return route;  // a library that has it may be loaded later
  route.library = library_of(route.function, family_);
  const Locked locked;
  const unsigned start = place_of(caller);
  for (unsigned i = 0; i < tries; ++i) {
    Site& site = sites_[(start + i) % places];
    const void* const known = site.caller.load(std::memory_order_relaxed);
    if (known == caller) break;
    if (known != nullptr) continue;
    site.route = route;
    site.caller.store(caller, std::memory_order_release);
    break;
  }
  return route;
}

}  // namespace greta::capture
