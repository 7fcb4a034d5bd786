// What all lanes of a wave have in common.
#pragma once

#include "common/device.hip"

// A number that is the same in all lanes, in a scalar register. AMD's compilers divide and load in
// vector registers, and some uses of the result then fail to compile.
GRETA_DEVICE u32 same_in_wave(u32 number) {
#if defined(GRETA_AMD)
  return u32(__builtin_amdgcn_readfirstlane(int(number)));
#else
  return number;
#endif
}
