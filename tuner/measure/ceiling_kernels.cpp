#include "tuner/measure/ceiling_kernels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "kernels/planning/plan.hpp"
#include "kernels/planning/render.hpp"
#include "runtime/device/hardware/architectures.hpp"

namespace greta::tuner {
namespace {

// Eight independent chains of four FMAs per thread hide the FMA latency on every device. The inner
// loop is unrolled, which makes its counter negligible. The final condition is never true, but the
// compiler can't prove it: it keeps the chains, and nothing is written.
constexpr std::string_view fma_glsl = R"(#version 460
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_control_flow_attributes : require
layout(local_size_x = 256) in;
layout(buffer_reference, std430, buffer_reference_align = 16) buffer Sink { vec4 values[]; };
layout(push_constant) uniform Arguments { Sink sink; uint iterations; float seed; };
void main() {
  vec4 a[8];
  [[unroll]] for (int i = 0; i < 8; ++i) a[i] = vec4(seed + float(gl_LocalInvocationIndex + i));
  const float m = 0.999 + seed * 1e-6;
  for (uint n = 0; n < iterations; ++n) {
    [[unroll]] for (int u = 0; u < 8; ++u) {
      [[unroll]] for (int i = 0; i < 8; ++i) a[i] = fma(a[i], vec4(m), vec4(m));
    }
  }
  vec4 sum = a[0] + a[1] + a[2] + a[3] + a[4] + a[5] + a[6] + a[7];
  if (sum.x == 12345.678) sink.values[gl_LocalInvocationIndex] = sum;
}
)";

constexpr std::string_view fma_hip = R"(
GRETA_KERNEL(256) greta_fma(float* sink, u32 iterations, float seed) {
  f32x2 a[16];
  GRETA_UNROLL
  for (int i = 0; i < 16; ++i) {
    const float start = seed + float(thread_index() + u32(i));
    a[i] = f32x2{start, start + 1.0f};
  }
  const float m = 0.999f + seed * 1e-6f;
  for (u32 n = 0; n < iterations; ++n) {
    GRETA_UNROLL
    for (int u = 0; u < 8; ++u) {
      GRETA_UNROLL
      for (int i = 0; i < 16; ++i) a[i] = multiply_add(m, a[i], f32x2{m, m});
    }
  }
  float sum = 0.0f;
  GRETA_UNROLL
  for (int i = 0; i < 16; ++i) sum += a[i][0] + a[i][1];
  if (sum == 12345.678f) sink[thread_index()] = sum;
}
)";

constexpr std::string_view copy_glsl = R"(#version 460
#extension GL_EXT_buffer_reference : require
layout(local_size_x = 256) in;
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer From { vec4 values[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) writeonly buffer To { vec4 values[]; };
layout(push_constant) uniform Arguments { From from; To to; };
void main() {
  const uint base = gl_WorkGroupID.x * (256 * 4) + gl_LocalInvocationIndex;
  vec4 v0 = from.values[base], v1 = from.values[base + 256];
  vec4 v2 = from.values[base + 512], v3 = from.values[base + 768];
  to.values[base] = v0; to.values[base + 256] = v1;
  to.values[base + 512] = v2; to.values[base + 768] = v3;
}
)";

constexpr std::string_view copy_hip = R"(
GRETA_KERNEL(256) greta_copy(const Words<16>* __restrict__ from, Words<16>* __restrict__ to) {
  const u64 base = u64(block_x()) * (256 * 4) + thread_index();
  Words<16> moved[4];
  GRETA_UNROLL
  for (int i = 0; i < 4; ++i) moved[i] = load_words<16>(from + base + i * 256);
  GRETA_UNROLL
  for (int i = 0; i < 4; ++i) store_words<16>(to + base + i * 256, moved[i]);
}
)";

// Nothing else reads this memory, so a rare write of the sum there does no harm.
constexpr std::string_view read_glsl = R"(#version 460
#extension GL_EXT_buffer_reference : require
layout(local_size_x = 256) in;
layout(buffer_reference, std430, buffer_reference_align = 16) buffer Memory { uvec4 values[]; };
layout(push_constant) uniform Arguments { Memory memory; uint pieces; uint groups; };
void main() {
  uvec4 sum = uvec4(0);
  for (uint piece = gl_WorkGroupID.x; piece < pieces; piece += groups) {
    const uint base = piece * (256 * 4) + gl_LocalInvocationIndex;
    sum += memory.values[base] ^ memory.values[base + 256] ^ memory.values[base + 512] ^
           memory.values[base + 768];
  }
  if (sum == uvec4(0x2545F491, 0x4F6CDD1D, 1, 2)) memory.values[gl_LocalInvocationIndex] = sum;
}
)";

constexpr std::string_view read_hip = R"(
GRETA_KERNEL(256) greta_read(Words<16>* memory, u32 pieces, u32 groups) {
  Words<16> sum = {};
  for (u32 piece = block_x(); piece < pieces; piece += groups) {
    const u64 base = u64(piece) * (256 * 4) + thread_index();
    GRETA_UNROLL
    for (int i = 0; i < 4; ++i) {
      const Words<16> some = load_words<16>(memory + base + i * 256);
      GRETA_UNROLL
      for (int w = 0; w < 4; ++w) sum.word[w] += some.word[w];
    }
  }
  if (sum.word[0] == 0x2545F491U && sum.word[1] == 0x4F6CDD1DU && sum.word[2] == 1) {
    store_words<16>(memory + thread_index(), sum);
  }
}
)";

constexpr std::string_view chase_glsl = R"(#version 460
#extension GL_EXT_buffer_reference : require
layout(local_size_x = 256) in;
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Memory { uint next[]; };
layout(push_constant) uniform Arguments { Memory memory; uint steps; uint unused; };
void main() {
  if (gl_LocalInvocationIndex != 0) return;
  uint at = 0;
  for (uint i = 0; i < steps; ++i) at = memory.next[at];
  if (at == 0xFFFFFFFF) memory.next[1] = at;
}
)";

constexpr std::string_view chase_hip = R"(
GRETA_KERNEL(256) greta_chase(u32* memory, u32 steps, u32 unused) {
  if (thread_index() != 0) return;
  u32 at = 0;
  for (u32 i = 0; i < steps; ++i) at = memory[at];
  if (at == 0xFFFFFFFFU) memory[1] = at + unused;
}
)";

// The values are kernel arguments, so the compiler can't compute any product. Adjacent lanes hold
// different fragments.
constexpr std::string_view matrix_hip = R"(
typedef CORE Core;

GRETA_DEVICE Core::Fragment filled(u32 word) {
  Core::Fragment fragment;
#if defined(GRETA_MATRIX_MMA)
  Chunk* const chunks = reinterpret_cast<Chunk*>(&fragment);  // of f32, two
#else
  Chunk* const chunks = fragment.chunk;
#endif
  GRETA_UNROLL
  for (int i = 0; i < int(sizeof(fragment) / sizeof(Chunk)); ++i) {
    GRETA_UNROLL
    for (int j = 0; j < 4; ++j) chunks[i].word[j] = word;
  }
  return fragment;
}

GRETA_KERNEL(256) greta_matrix(float* sink, u32 length, u32 inputs) {
  const Core::Fragment a = filled(inputs), b = filled(inputs ^ (lane_index() & 1));
  Core::Sums sums[CHAINS] = {};
  for (u32 k = 0; k < length; k += Core::depth) {
    GRETA_UNROLL
    for (int i = 0; i < CHAINS; ++i) Core::multiply(sums[i], a, b);
  }
  float sum = 0.0f;
  GRETA_UNROLL
  for (int i = 0; i < CHAINS; ++i) {
#if defined(GRETA_MATRIX_MMA) && !defined(BYTES)
    sum += sums[i].column[0][0] + sums[i].column[1][0];
#else
    sum += float(sums[i][0]);
#endif
  }
  if (sum == -12345.678f) sink[thread_index()] = sum;
}
)";

// The accumulators of a warpgroup fill its registers. While the MMA instructions of one warpgroup
// wait for their predecessors, those of the other run.
constexpr std::string_view warpgroup_matrix_hip = R"(
GRETA_KERNEL(256) greta_matrix(float* sink, u32 length, u32 inputs) {
  typedef PanelTile<64, 8> A;
  typedef PanelTile<256, 8> B;
  GRETA_PANELS_SHARED(u8, shared);
  const SharedMemory memory = shared_memory(shared);
  for (u32 i = thread_index() * 16; i < A::bytes + B::bytes; i += 256 * 16) {
    store_words<16>(shared + i, {{inputs, inputs ^ 1, inputs, inputs ^ 1}});
  }
  show_to_products();
  block_barrier();
#if defined(BYTES)
  ByteSums<256, decltype(SUM())> sums[1] = {};
#else
  WarpgroupSums<256> sums[1] = {};
#endif
#if defined(TF32)
  const u32 words[4] = {inputs, inputs ^ 1, inputs, inputs ^ 1};
#endif
  for (u32 k = 0; k < length; k += 8 * DEPTH) {
    products_begin();
    GRETA_UNROLL
    for (u32 step = 0; step < 128; step += 16) {
      const u32 b = A::bytes + B::part<true>(0, step % 64);
      const OperandPlace of_a = operand_place<A, true>(memory, A::part<true>(0, step % 64));
      const OperandPlace of_b = operand_place<B, true>(memory, b);
#if defined(BYTES)
      multiply_bytes<true>(INPUT(), sums[0], of_a, of_b);
#elif defined(TF32)
      multiply_async<true>(sums[0], words, of_b);
#else
      multiply_async<true, true, true>(INPUT(), sums[0], of_a, of_b);
#endif
    }
    close_products();
    wait_for_products<1>();
  }
#if defined(BYTES)
  wait_for_products<0>();
  claim_byte_sums(sums[0]);
#else
  finish_products(sums);
#endif
  float sum = 0.0f;
  GRETA_UNROLL
  for (int i = 0; i < 32; ++i) sum += float(sums[0].eight[i][0]);
  if (sum == -12345.678f) sink[thread_index()] = sum;
}
)";
constexpr std::uint32_t warpgroup_matrix_bytes = (64 + 256) * 128;

/// Returns whether it is a warpgroup operation; no other operation has 64 rows.
bool of_warpgroup(const MatrixOperation& operation) {
  return operation.m == 64;
}

// The matrices are loaded from shared memory and stored to it, each subgroup's at its own offset.
constexpr std::string_view matrix_glsl = R"(
layout(local_size_x = 256) in;
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Sink { float values[]; };
layout(push_constant) uniform Arguments { Sink sink; uint length; uint inputs; };
void main() {
  for (uint i = gl_LocalInvocationIndex; i < MATRIX_CHUNKS; i += 256)
    matrix_memory[i] = uvec4(inputs, inputs ^ 1, inputs, inputs ^ 1);
  barrier();
  MatrixA a;
  MatrixB b;
  load_matrix(a, 0, INSTR_K / 8, ROW_MAJOR);
  load_matrix(b, 0, INSTR_K / 8, COLUMN_MAJOR);
  MatrixC sums[CHAINS];
  [[unroll]] for (uint i = 0; i < CHAINS; ++i) sums[i] = zero_matrix();
  for (uint k = 0; k < length; k += INSTR_K) {
    [[unroll]] for (uint i = 0; i < CHAINS; ++i) sums[i] = multiply_add(a, b, sums[i]);
  }
  barrier();
  const uint place = gl_SubgroupID * PLACE;
  float sum = 0.0;
  [[unroll]] for (uint i = 0; i < CHAINS; ++i) {
    store_matrix(sums[i], place, INSTR_N / 4);
    subgroupBarrier();
    sum += uintBitsToFloat(matrix_memory[place].x);
  }
  if (sum == -12345.678) sink.values[gl_LocalInvocationIndex] = sum;
}
)";

std::string matrix_text_glsl(const DeviceInfo& device, const MatrixOperation& operation) {
  const std::uint32_t place = operation.m * operation.n / 4;  // in units of 16 bytes
  const std::uint32_t subgroups = ceiling_threads / std::max(1U, device.min_subgroup_size);
  const std::uint32_t operands = std::max(operation.m, operation.n) * operation.k / 8;
  const Defines defines{{"INSTR_M", std::to_string(operation.m)},
                        {"INSTR_N", std::to_string(operation.n)},
                        {"INSTR_K", std::to_string(operation.k)},
                        {"IN_BF16", operation.input == DType::bf16 ? "1" : "0"},
                        {"SUBGROUP", std::to_string(device.subgroup_size)},
                        {"PLACE", std::to_string(place)},
                        {"MATRIX_CHUNKS", std::to_string(std::max(subgroups * place, operands))},
                        {"CHAINS", std::to_string(matrix_chains)}};
  return "#version 460\n#extension GL_EXT_buffer_reference : require\n" +
         render("common/cooperative_matrix.glsl", defines) + std::string(matrix_glsl);
}

// NVIDIA's operations have 8 columns. The templates use them in pairs.
std::string matrix_text_hip(const MatrixOperation& operation) {
  const std::string input(traits(operation.input).hip);
  if (of_warpgroup(operation)) {
    const Defines defines{{"INPUT", input}, {"DEPTH", "16"}};
    return render("common/warpgroup_matrix.hip", defines) + std::string(warpgroup_matrix_hip);
  }
  const Defines defines{{"CORE", fmt::format("MatrixCore<{}, {}>", input, operation.m)},
                        {"CHAINS", std::to_string(matrix_chains)}};
  return render("common/matrix.hip", defines) + std::string(matrix_hip);
}

KernelSource make_source(const DeviceInfo& device, const std::string& name, std::string text) {
  KernelSource source;
  source.name = "ceiling/" + name;
  source.language = device.language;
  source.text = std::move(text);
  source.entry = device.language == Language::glsl ? "main" : "greta_" + name;
  source.argument_bytes = 16;
  source.block = {ceiling_threads, 1, 1};
  return source;
}

KernelSource warpgroup_source(const DeviceInfo& device, std::string text) {
  KernelSource source = make_source(device, "matrix", std::move(text));
  kernels::compile_for_warpgroups(source, device);
  source.dynamic_shared_bytes = warpgroup_matrix_bytes;
  return source;
}

}  // namespace

KernelSource plain_kernel(const DeviceInfo& device, const std::string& name, std::string_view glsl,
                          std::string_view hip) {
  return make_source(device, name,
                     device.language == Language::glsl
                         ? std::string(glsl)
                         : render("common/types.hip", {}) + std::string(hip));
}

// hip-host runs the threads of a workgroup one after the other.
std::uint32_t ceiling_groups(const DeviceInfo& device) {
  if (!device.is_cpu()) return std::max(device.compute_units, 64U) * 16;
  return device.language == Language::hip ? 8 : 64;
}

KernelSource fma_kernel(const DeviceInfo& device) {
  return plain_kernel(device, "fma", fma_glsl, fma_hip);
}

KernelSource copy_kernel(const DeviceInfo& device) {
  return plain_kernel(device, "copy", copy_glsl, copy_hip);
}

KernelSource read_kernel(const DeviceInfo& device) {
  return plain_kernel(device, "read", read_glsl, read_hip);
}

KernelSource chase_kernel(const DeviceInfo& device) {
  return plain_kernel(device, "chase", chase_glsl, chase_hip);
}

KernelSource empty_kernel(const DeviceInfo& device) {
  auto source = plain_kernel(device, "empty",
                             "#version 460\nlayout(local_size_x = 256) in;\nvoid main() {}\n",
                             "GRETA_KERNEL(256) greta_empty() {}\n");
  source.argument_bytes = 0;
  return source;
}

KernelSource matrix_kernel(const DeviceInfo& device, const MatrixOperation& operation) {
  const bool glsl = device.language == Language::glsl;
  const std::string text = glsl ? matrix_text_glsl(device, operation) : matrix_text_hip(operation);
  return !glsl && of_warpgroup(operation) ? warpgroup_source(device, text)
                                          : make_source(device, "matrix", text);
}

bool has_matrix_kernel(const DeviceInfo& device, MatrixNumbers numbers) {
  return device.language == Language::hip && has_matrix_numbers(device.architecture, numbers);
}

// Where warpgroups multiply numbers of eight bits, waves do so by f16. Three products of TF32 count
// as one.
RateKernel matrix_kernel(const DeviceInfo& device, MatrixNumbers numbers) {
  const bool tf32 = numbers == MatrixNumbers::tf32x3, fp8 = numbers == MatrixNumbers::fp8;
  const std::string type = fp8 ? "E4m3" : "Int8", sum = fp8 ? "float" : "int";
  if (has_warpgroup_products(device.architecture)) {
    const Defines bytes{{"INPUT", type}, {"SUM", sum}, {"DEPTH", "32"}, {"BYTES", "1"}};
    const auto text = tf32 ? render("common/warpgroup_matrix.hip", {{"DEPTH", "8"}, {"TF32", "1"}})
                           : render("common/warpgroup_bytes.hip", bytes);
    return {warpgroup_source(device, text + std::string(warpgroup_matrix_hip)),
            matrix_flops(device, {.m = 64, .n = 256}) / (tf32 ? 3 : 1)};
  }
  constexpr double rows = 16;
  const std::string chains = std::to_string(matrix_chains);
  const std::string of_bytes = fmt::format("ByteCore<{}, {}>", type, sum);
  const auto text =
      tf32 ? render("common/matrix.hip", {{"CORE", "MatrixCore<float, 16>"}, {"CHAINS", chains}})
           : render("common/byte_matrix.hip",
                    {{"CORE", of_bytes}, {"CHAINS", chains}, {"BYTES", "1"}});
  return {make_source(device, "matrix", text + std::string(matrix_hip)),
          2 * rows * rows * matrix_chains};
}

// 2^-6 in OCP's e4m3, and 1: no sum overflows.
std::uint32_t matrix_input(MatrixNumbers numbers) {
  if (numbers == MatrixNumbers::tf32x3) return matrix_input(DType::f32);
  return numbers == MatrixNumbers::fp8 ? 0x08080808 : 0x01010101;
}

std::uint32_t matrix_input(DType type) {
  constexpr double small = 0.0009;  // a normal number in every type
  std::uint32_t word = 0;
  for (int i = 0; i < 32 / bits_of(type); ++i) {
    store_element(type, reinterpret_cast<std::byte*>(&word), static_cast<std::size_t>(i), small);
  }
  return word;
}

double matrix_flops(const DeviceInfo& device, const MatrixOperation& operation) {
  if (of_warpgroup(operation)) return 2.0 * operation.m * operation.n / 4;  // one of four subgroups
  const std::uint32_t columns = device.language == Language::glsl ? operation.n : operation.m;
  return 2.0 * operation.m * columns * matrix_chains;
}

}  // namespace greta::tuner
