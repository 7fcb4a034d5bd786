// A load of gfx12 from device memory that turns 8 x 8 elements of 16 bits in each group of eight
// lanes: a lane names eight elements of one line, 16 bytes, and gets its own element of each of the
// group's lines, in the lanes' order. All lanes of the wave take part.
//
// Source: AMD's RDNA4 instruction set manual names the instruction; what lanes get was measured on a
// gfx1201 and published (Tessera, docs on WMMA fragment layouts).
#pragma once

#include "common/types.hip"

GRETA_DEVICE Words<16> load_turning(const u8* address) {
#if defined(GRETA_HOST) && GRETA_HOST == 1201
  Words<16> words;
  greta_host::load_transposed(words.word, address);
  return words;
#elif defined(__GFX12__)
  typedef short Elements __attribute__((ext_vector_type(8)));
  typedef __attribute__((address_space(1))) Elements Global;
  return __builtin_bit_cast(Words<16>, __builtin_amdgcn_global_load_tr_b128_v8i16((Global*)address));
#else
#error "TURN=2 needs loads that transpose"
#endif
}
