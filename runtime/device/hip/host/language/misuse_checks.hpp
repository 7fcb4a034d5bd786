#pragma once

// Where the runtime of UndefinedBehaviorSanitizer is not there, kernels are still built to check
// the alignment of what they access: the processor would let most of it pass, a GPU does not.

#include "runtime/device/hip/host/language/thread.hpp"

#if defined(GRETA_HOST_CHECKS_ALIGNMENT)

namespace greta_host {

// What the compiler hands over, by the interface of the sanitizer's runtime.
struct SourceLocation {
  const char* file;
  unsigned line, column;
};
struct TypeDescriptor {
  unsigned short kind, info;
  char name[1];
};
struct TypeMismatch {
  SourceLocation where;
  const TypeDescriptor& type;
  unsigned char log_alignment, access;
};
struct AlignmentAssumption {
  SourceLocation where, assumption;
  const TypeDescriptor& type;
};

[[noreturn]] inline void misaligned(const SourceLocation& where, const TypeDescriptor& type) {
  char why[120] = "the address is not aligned for ";
  char* end = why + __builtin_strlen(why);
  for (const char* from = type.name; *from != 0 && end < why + sizeof why - 1;) *end++ = *from++;
  *end = 0;
  fail({"an access", where.file, int(where.line)}, why);
}

}  // namespace greta_host

extern "C" {
__attribute__((used)) inline void __ubsan_handle_type_mismatch_v1_abort(
    greta_host::TypeMismatch* data, uintptr_t) {
  greta_host::misaligned(data->where, data->type);
}
__attribute__((used)) inline void __ubsan_handle_alignment_assumption_abort(
    greta_host::AlignmentAssumption* data, uintptr_t, uintptr_t, uintptr_t) {
  greta_host::misaligned(data->where, data->type);
}
}

#endif
