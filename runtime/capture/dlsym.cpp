// dlsym() of applications that open the vendors' libraries themselves: the names of captured
// functions give this library's functions, which forward to what the C library found.
#include <dlfcn.h>

#include <cstdint>

#include "runtime/capture/symbol.hpp"

using namespace greta::capture;  // the functions below are C's

extern "C" {

/// Where dlsym() below goes on if the name is no captured function's.
__attribute__((visibility("hidden"))) Dlsym greta_capture_next_dlsym;

/// Returns a function of this library; 0 if the C library's dlsym() is to answer; 1 if the answer
/// is none.
__attribute__((visibility("hidden"))) std::uintptr_t greta_capture_find(void* handle,
                                                                        const char* name);
}

namespace {

/// This library's function of a name.
void* own_function(const char* name) {
  static void* own = nullptr;
  if (own == nullptr) {
    Dl_info info{};
    if (dladdr(reinterpret_cast<const void*>(&greta_capture_find), &info) == 0) return nullptr;
    own = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  }
  return own != nullptr ? next_dlsym(own, name) : nullptr;
}

}  // namespace

std::uintptr_t greta_capture_find(void* handle, const char* name) {
  if (greta_capture_next_dlsym == nullptr) greta_capture_next_dlsym = library_dlsym();
  if (name == nullptr || handle == RTLD_NEXT) return 0;
  Symbol* const symbol = symbol_of(name);
  if (symbol == nullptr) return 0;
  void* found = handle == RTLD_DEFAULT ? nullptr : next_dlsym(handle, name);
  // The program's own handle sees this library as well; what comes after it is what was meant.
  if (handle == RTLD_DEFAULT || (found != nullptr && is_own(found))) {
    found = next_dlsym(RTLD_NEXT, name);
  }
  if (found == nullptr) return 1;
  if (!symbol->give(found)) return reinterpret_cast<std::uintptr_t>(found);
  void* const own = own_function(name);
  return reinterpret_cast<std::uintptr_t>(own != nullptr ? own : found);
}

// The C library's dlsym() looks at its caller for RTLD_NEXT and RTLD_DEFAULT, so that this one
// jumps there instead of calling it.
#if defined(__x86_64__)
asm(R"(
  .text
  .globl dlsym
  .type dlsym, @function
dlsym:
  .cfi_startproc
  endbr64
  pushq %rdi
  .cfi_adjust_cfa_offset 8
  pushq %rsi
  .cfi_adjust_cfa_offset 8
  subq $8, %rsp
  .cfi_adjust_cfa_offset 8
  call greta_capture_find
  addq $8, %rsp
  .cfi_adjust_cfa_offset -8
  popq %rsi
  .cfi_adjust_cfa_offset -8
  popq %rdi
  .cfi_adjust_cfa_offset -8
  cmpq $1, %rax
  jb 1f
  je 2f
  ret
1:
  jmp *greta_capture_next_dlsym(%rip)
2:
  xorl %eax, %eax
  ret
  .cfi_endproc
  .size dlsym, . - dlsym
)");
#elif defined(__aarch64__)
asm(R"(
  .text
  .globl dlsym
  .type dlsym, %function
dlsym:
  .cfi_startproc
  stp x29, x30, [sp, #-32]!
  .cfi_adjust_cfa_offset 32
  .cfi_rel_offset x29, 0
  .cfi_rel_offset x30, 8
  stp x0, x1, [sp, #16]
  bl greta_capture_find
  mov x9, x0
  ldp x0, x1, [sp, #16]
  ldp x29, x30, [sp], #32
  .cfi_adjust_cfa_offset -32
  .cfi_restore x29
  .cfi_restore x30
  cmp x9, #1
  b.eq 2f
  b.lo 1f
  mov x0, x9
  ret
1:
  adrp x9, greta_capture_next_dlsym
  ldr x9, [x9, :lo12:greta_capture_next_dlsym]
  br x9
2:
  mov x0, #0
  ret
  .cfi_endproc
  .size dlsym, . - dlsym
)");
#else
#error "dlsym() needs a jump for this processor"
#endif
