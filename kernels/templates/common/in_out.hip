// Types of an operation's inputs and output in memory.
#pragma once

#if !defined(IN_F16) || !defined(IN_BF16) || !defined(OUT_F16) || !defined(OUT_BF16)
#error "{IN,OUT}_{F16,BF16} must be defined"
#endif

#include "common/types.hip"

#if IN_F16
typedef f16 In;
#elif IN_BF16
typedef bf16 In;
#else
typedef float In;
#endif
#if OUT_F16
typedef f16 Out;
#elif OUT_BF16
typedef bf16 Out;
#else
typedef float Out;
#endif
