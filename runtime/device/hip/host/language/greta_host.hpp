#pragma once

// Stands before the text of every kernel that hip-host builds. For kernels: GRETA_HOST is 80 (the
// device imitates sm_80 or sm_90), 942 (gfx942), 1100 (gfx1100) or 1201 (gfx1201). There are HIP's
// words (thread.hpp), wave operations (wave.hpp), atomics, vectors and arithmetic, and in namespace
// greta_host asynchronous copies (copies.hpp), clusters (clusters.hpp) and the matrix instructions
// (matrix_ptx.hpp, matrix_warpgroups.hpp, matrix_amd.hpp). Shared memory is declared as anywhere:
// `__shared__
// __attribute__((aligned(16))) float tile[64];`, `extern __shared__ float rest[];` (on one line),
// or in macros greta_host::dynamic_shared<float>(). It holds bytes 0xFF (NaN) when a block starts.
// Variables of a kernel's text that are neither const nor __shared__ are refused.

#include "runtime/device/hip/host/language/atomics.hpp"
#include "runtime/device/hip/host/language/clusters.hpp"
#include "runtime/device/hip/host/language/copies.hpp"
#include "runtime/device/hip/host/language/entry.hpp"
#include "runtime/device/hip/host/language/math.hpp"
#include "runtime/device/hip/host/language/matrix_amd.hpp"
#include "runtime/device/hip/host/language/matrix_bytes.hpp"
#include "runtime/device/hip/host/language/matrix_ptx.hpp"
#include "runtime/device/hip/host/language/matrix_warpgroups.hpp"
#include "runtime/device/hip/host/language/misuse_checks.hpp"
#include "runtime/device/hip/host/language/races.hpp"
#include "runtime/device/hip/host/language/vectors.hpp"
#include "runtime/device/hip/host/language/wave.hpp"
