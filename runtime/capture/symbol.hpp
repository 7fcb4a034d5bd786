#pragma once

#include <atomic>
#include <cstdint>

/// Finds the functions of the vendors' libraries that this library's functions of the same names
/// forward to.
namespace greta::capture {

struct EventNames;

/// A vendor's library: how its files are named, and its functions that describe a call.
struct Family {
  const char* name;                    ///< "cuBLAS"
  const char* file;                    ///< "libcublas": followed by "." or "-" in a file's name
  const char* pointer_mode = nullptr;  ///< where factors are: int (handle, int*); nullptr: none
  const char* math_mode = nullptr;     ///< whether TF32 is allowed: int (handle, int*)
  const char* layout_get = nullptr;    ///< an attribute of a matrix; of cuBLASLt and hipBLASLt
  const char* matmul_get = nullptr;    ///< an attribute of a product
  const char* stream_get = nullptr;    ///< where a handle's products run: int (handle, void**)
  const EventNames* events = nullptr;  ///< of the runtime that the library uses
};

/// A loaded file of a family.
struct Library {
  using Mode = int (*)(void* handle, int* mode);
  using Get = int (*)(const void* object, int attribute, void* value, std::size_t bytes,
                      std::size_t* written);
  const void* base;
  const Family* family;
  Mode pointer_mode, math_mode;  ///< nullptr: the file has none
  Get layout_get, matmul_get;
  int (*stream_get)(void* handle, void** stream);
  char path[512];
};

/// Where a call goes.
struct Route {
  void* function = nullptr;
  const Library* library = nullptr;
};

/// One captured function. Several copies of a vendor's library can be loaded, and each caller gets
/// the one that it is linked with.
class Symbol {
 public:
  constexpr Symbol(const char* name, const Family& family) : name_(name), family_(family) {}

  const char* name() const { return name_; }
  const Family& family() const { return family_; }
  std::uint16_t index() const { return index_; }
  void set_index(std::uint16_t index) { index_ = index; }

  /// Returns the function that the code at `caller` means; none if there is none.
  Route route(const void* caller) {
    const auto start = place_of(caller);
    for (unsigned i = 0; i < tries; ++i) {
      const Site& site = sites_[(start + i) % places];
      const void* const known = site.caller.load(std::memory_order_acquire);
      if (known == caller) return site.route;
      if (known == nullptr) break;
    }
    return find(caller);
  }

  /// Notes what dlsym() found. Returns whether calls of this library's function, which has no other
  /// way to know, will go there.
  bool give(void* function);

 private:
  static constexpr unsigned places = 64, tries = 8;
  struct Site {
    std::atomic<const void*> caller;
    Route route;
  };
  static unsigned place_of(const void* caller) {
    return static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(caller) >> 2) % places;
  }
  Route find(const void* caller);
  void* function_of(const void* caller) const;

  const char* name_;
  const Family& family_;
  std::uint16_t index_ = 0;
  std::atomic<void*> given_{nullptr};
  Site sites_[places] = {};
};

/// All symbols, by index, and their number.
Symbol* const* symbols();
std::uint16_t symbol_count();
/// Returns the symbol of this name; nullptr if there is none.
Symbol* symbol_of(const char* name);

/// Returns a function of a loaded file whose name begins so, as "libcuda" of libcuda.so.1, even if
/// that is visible to none but its user; nullptr if there is none.
void* function_in_loaded(const char* begin, const char* name);

/// Libraries that have been called so far.
const Library& library(unsigned index);
unsigned library_count();

/// In a child of fork: another thread of the parent may have held the lock of these lists.
void forget_lock();

/// The C library's dlsym(), since this library has one of its own; nullptr if it is not found.
using Dlsym = void* (*)(void*, const char*);
Dlsym library_dlsym();
/// Calls it.
void* next_dlsym(void* handle, const char* name);
/// Returns whether code or data belongs to this library.
bool is_own(const void* address);

}  // namespace greta::capture
