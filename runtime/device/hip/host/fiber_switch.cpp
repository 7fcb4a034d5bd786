// Switches between stacks, in the assembly language of each processor.

#include "runtime/device/hip/host/fiber_switch.hpp"

#if defined(__x86_64__) || defined(__aarch64__)

extern "C" void greta_fiber_start();

#if defined(__x86_64__)

// Saves the registers that a function must preserve by the System V ABI. The floating-point control
// words are the same in all fibers. A fiber starts with the body in r13 and its argument in r12.
asm(R"(
.text
.p2align 4
.hidden greta_fiber_switch
.globl greta_fiber_switch
.type greta_fiber_switch, @function
greta_fiber_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size greta_fiber_switch, .-greta_fiber_switch

.p2align 4
.hidden greta_fiber_start
.globl greta_fiber_start
.type greta_fiber_start, @function
greta_fiber_start:
  .cfi_startproc
  .cfi_undefined rip
  movq %r12, %rdi
  call *%r13
  ud2
  .cfi_endproc
.size greta_fiber_start, .-greta_fiber_start
)");

namespace {
constexpr int saved_words = 7;  // r15 r14 r13 r12 rbx rbp and the return address
constexpr int argument_word = 3, body_word = 2, start_word = 6;
}  // namespace

#else

// Saves x19 to x30 and d8 to d15, by AAPCS64. A fiber starts with the body in x20 and its argument
// in x19.
asm(R"(
.text
.p2align 4
.hidden greta_fiber_switch
.globl greta_fiber_switch
.type greta_fiber_switch, %function
greta_fiber_switch:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size greta_fiber_switch, .-greta_fiber_switch

.p2align 4
.hidden greta_fiber_start
.globl greta_fiber_start
.type greta_fiber_start, %function
greta_fiber_start:
  .cfi_startproc
  .cfi_undefined x30
  mov x0, x19
  blr x20
  brk #0
  .cfi_endproc
.size greta_fiber_start, .-greta_fiber_start
)");

namespace {
constexpr int saved_words = 20;
constexpr int argument_word = 0, body_word = 1, start_word = 11;
}  // namespace

#endif

namespace greta::device::hip::host {

void* prepare_stack(std::byte* top, void (*body)(void*), void* argument) {
  void** const words = reinterpret_cast<void**>(top) - saved_words - 2;  // null return address
  for (int i = 0; i < saved_words + 2; ++i) words[i] = nullptr;
  words[argument_word] = argument;
  words[body_word] = reinterpret_cast<void*>(body);
  words[start_word] = reinterpret_cast<void*>(&greta_fiber_start);
  return words;
}

}  // namespace greta::device::hip::host

#else

#include <ucontext.h>

#include <new>

// Uses the C library's functions, which also make a system call to change the signal mask each
// time.
extern "C" void greta_fiber_switch(void** save, void* load) {
  ucontext_t here;
  *save = &here;
  swapcontext(&here, static_cast<ucontext_t*>(load));
}

namespace greta::device::hip::host {

namespace {

void start(unsigned body_high, unsigned body_low, unsigned argument_high, unsigned argument_low) {
  const auto join = [](unsigned high, unsigned low) {
    return static_cast<std::uintptr_t>(static_cast<std::uint64_t>(high) << 32 | low);
  };
  reinterpret_cast<void (*)(void*)>(join(body_high, body_low))(
      reinterpret_cast<void*>(join(argument_high, argument_low)));
}

}  // namespace

void* prepare_stack(std::byte* top, void (*body)(void*), void* argument) {
  constexpr std::size_t room = (sizeof(ucontext_t) + 63) / 64 * 64;
  auto* const context = new (top - room) ucontext_t;
  getcontext(context);
  constexpr std::size_t enough = 16384;  // the real stack extends below this
  context->uc_stack.ss_sp = top - room - enough;
  context->uc_stack.ss_size = enough;
  context->uc_link = nullptr;
  const auto high = [](auto pointer) {
    return static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(pointer) >> 32);
  };
  const auto low = [](auto pointer) {
    return static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(pointer));
  };
  makecontext(context, reinterpret_cast<void (*)()>(&start), 4, high(body), low(body),
              high(argument), low(argument));
  return context;
}

}  // namespace greta::device::hip::host

#endif
