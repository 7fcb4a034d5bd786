// hipBLASLt's product. Source of names, arguments and numbers: AMD's documentation of hipBLASLt.
#include <atomic>

#include "runtime/capture/matmul.hpp"

using namespace greta::capture;  // the functions below are C's

namespace {

constexpr LayoutAttributes layout_attributes{.type = 2,
                                             .order = 3,
                                             .rows = 4,
                                             .columns = 5,
                                             .ld = 6,
                                             .batch = 0,
                                             .stride = 1,
                                             .batch_mode = -1};
constexpr MatmulAttributes matmul_attributes{.compute = -1,
                                             .scale = -1,
                                             .pointer_mode = 13,
                                             .op_a = 0,
                                             .op_b = 1,
                                             .epilogue = 2,
                                             .bias_type = 4,
                                             .a_scale = 5,
                                             .b_scale = 6,
                                             .d_scale = 8};

// A descriptor's address in the upper 48 bits, then both types, each plus one. A descriptor whose
// cell another one takes loses its types, which are then unknown.
std::atomic<std::uint64_t> descriptors[4096];

std::atomic<std::uint64_t>& cell_of(const void* descriptor) {
  return descriptors[(reinterpret_cast<std::uintptr_t>(descriptor) >> 4) % 4096];
}

void note_types(const void* descriptor, int compute, int scale) {
  const auto byte = [](int value) { return static_cast<std::uint64_t>((value + 1) & 255); };
  cell_of(descriptor)
      .store(static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(descriptor)) << 16 |
                 byte(hipblas_compute(compute)) << 8 | byte(scale >= 254 ? -1 : scale),
             std::memory_order_release);
}

ProductTypes types_of(const void* descriptor) {
  const std::uint64_t cell = cell_of(descriptor).load(std::memory_order_acquire);
  const auto address = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(descriptor));
  if (cell == 0 || cell >> 16 != (address << 16) >> 16) return {};
  const auto type = [](std::uint64_t byte) {
    return static_cast<std::int16_t>(static_cast<int>(byte & 255) - 1);
  };
  return {type(cell >> 8), type_of(type(cell))};
}

}  // namespace

GRETA_CAPTURED int hipblasLtMatmulDescCreate(void** descriptor, int compute, int scale) {
  GRETA_SYMBOL(hipblasLtMatmulDescCreate, hipblas_lt);
  return forward(
      symbol, GRETA_CALLER, [&](const Library&) { note_types(*descriptor, compute, scale); },
      descriptor, compute, scale);
}

GRETA_CAPTURED int hipblasLtMatmul(void* handle, void* descriptor, const void* alpha, const void* a,
                                   void* a_layout, const void* b, void* b_layout, const void* beta,
                                   const void* c, void* c_layout, void* d, void* d_layout,
                                   const void* algorithm, void* workspace, std::size_t bytes,
                                   void* stream) {
  GRETA_SYMBOL(hipblasLtMatmul, hipblas_lt);
  return forward_matmul(symbol, GRETA_CALLER, layout_attributes, matmul_attributes, types_of,
                        handle, descriptor, alpha, a, a_layout, b, b_layout, beta, c, c_layout, d,
                        d_layout, algorithm, workspace, bytes, stream);
}
