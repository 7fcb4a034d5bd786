#include <fmt/format.h>
#include <gtest/gtest.h>

#include "runtime/device/backend.hpp"
#include "tests/catalog.hpp"
#include "tests/kernels/gemm_cpu.hpp"
#include "tests/kernels/plan_runner.hpp"

// Protects: the code paths of matrix.hip on the four kinds of matrix cores that hip-host emulates:
// copies of tiles to shared memory, reads of fragments, slices, and partial tiles everywhere; with
// tiles and numbers of slices that are no powers of two, and every order of tiles.
// hip-host executes asynchronous copies at the wait, so a missing or weak wait gives a wrong
// result. On AMD's GPUs, K is walked in a loop of whole steps and another one for the rest.
namespace greta::test::gemm_matrix_test {
namespace {

using test::gemm_problem;

struct Case {
  int imitated;  ///< index of hip-host's device: sm_80, gfx942, gfx1100, gfx1201
  const char* name;
  Problem problem;
  const char* config;
};

/// For GoogleTest's messages.
void PrintTo(const Case& value, std::ostream* out) {
  *out << value.name;
}

Problem problem(const char* layout, DType in, DType out, std::array<std::int64_t, 3> extents,
                std::vector<std::pair<std::string, std::string>> more = {}) {
  if (layout != std::string("nn")) more.insert(more.begin(), {"layout", layout});
  return gemm_problem(extents[0], extents[1], extents[2], in, out, more);
}

std::vector<Case> cases() {
  const auto f32 = DType::f32, f16 = DType::f16, bf16 = DType::bf16;
  return {
      {0, "copies_in_four_stages",
       problem("nn", f16, f16, {70, 90, 150}, {{"epilogue", "bias,residual,gelu"}, {"beta", "2"}}),
       "BM=64 BN=64 WM=32 WN=32 BK=32 INSTR=16 VA=2 VB=2 PAD=0 STAGES=4 ASYNC=1 FRAGMENTS=2 "
       "SWIZZLE=4 WALK=0 XCDS=1 SPLIT=1 FOLD=0 ALIGN=0"},
      {0, "aligned_copies_and_folded_slices", problem("tn", bf16, f32, {31, 61, 150}),
       "BM=32 BN=64 WM=32 WN=32 BK=32 INSTR=16 VA=8 VB=8 PAD=0 STAGES=3 ASYNC=1 FRAGMENTS=1 "
       "SWIZZLE=1 WALK=0 XCDS=1 SPLIT=4 FOLD=1 ALIGN=1"},
      {0, "elements_through_registers", problem("nt", f16, f16, {33, 47, 99}),
       "BM=32 BN=32 WM=16 WN=16 BK=32 INSTR=16 VA=1 VB=1 PAD=1 STAGES=1 ASYNC=0 FRAGMENTS=2 "
       "SWIZZLE=4 WALK=0 XCDS=1 SPLIT=2 FOLD=0 ALIGN=0"},
      {1, "copies_by_counting", problem("nt", f16, f16, {70, 90, 150}, {{"epilogue", "silu"}}),
       "BM=64 BN=64 WM=32 WN=64 BK=32 INSTR=32 VA=2 VB=2 PAD=0 STAGES=3 ASYNC=1 FRAGMENTS=2 "
       "SWIZZLE=1 WALK=0 XCDS=1 SPLIT=1 FOLD=0 ALIGN=0 PRIORITY=0 INTERLEAVE=0 PINGPONG=0"},
      {0, "gates_in_four_stages",
       problem("nt", f16, f16, {70, 90, 150}, {{"epilogue", "bias,swiglu"}}),
       "BM=64 BN=64 WM=32 WN=32 BK=32 INSTR=16 VA=2 VB=2 PAD=0 STAGES=4 ASYNC=1 FRAGMENTS=2 "
       "SWIZZLE=4 WALK=0 XCDS=1 SPLIT=1 FOLD=0 ALIGN=0"},
      {0, "gates_of_folded_slices",
       problem("nt", bf16, f32, {31, 61, 152}, {{"epilogue", "geglu"}}),
       "BM=32 BN=64 WM=32 WN=32 BK=32 INSTR=16 VA=8 VB=8 PAD=0 STAGES=3 ASYNC=1 FRAGMENTS=1 "
       "SWIZZLE=1 WALK=0 XCDS=1 SPLIT=4 FOLD=1 ALIGN=0"},
      {1, "gates_by_counting", problem("nt", f16, f16, {70, 90, 150}, {{"epilogue", "swiglu"}}),
       "BM=64 BN=64 WM=32 WN=64 BK=32 INSTR=32 VA=2 VB=2 PAD=0 STAGES=3 ASYNC=1 FRAGMENTS=2 "
       "SWIZZLE=1 WALK=0 XCDS=1 SPLIT=1 FOLD=0 ALIGN=0 PRIORITY=0 INTERLEAVE=0 PINGPONG=0"},
      {1, "gates_of_f32_in_slices",
       problem("nt", f32, f32, {40, 39, 100}, {{"epilogue", "swiglu"}}),
       "BM=32 BN=64 WM=16 WN=32 BK=32 INSTR=16 VA=4 VB=2 PAD=0 STAGES=2 ASYNC=0 FRAGMENTS=2 "
       "SWIZZLE=4 WALK=0 XCDS=1 SPLIT=2 FOLD=0 ALIGN=0 PRIORITY=0 INTERLEAVE=0 PINGPONG=0"},
      {2, "gates", problem("nt", bf16, f32, {70, 90, 150}, {{"epilogue", "bias,geglu"}}),
       "BM=64 BN=64 WM=32 WN=32 BK=32 INSTR=16 VA=2 VB=2 PAD=0 STAGES=2 ASYNC=0 FRAGMENTS=1 "
       "SWIZZLE=8 WALK=0 XCDS=1 SPLIT=1 FOLD=0 ALIGN=0 INTERLEAVE=0"},
      {3, "gates", problem("tt", f16, f16, {30, 96, 150}, {{"epilogue", "swiglu"}}),
       "BM=32 BN=64 WM=16 WN=32 BK=32 INSTR=16 VA=2 VB=2 PAD=0 STAGES=2 ASYNC=0 FRAGMENTS=1 "
       "SWIZZLE=1 WALK=0 XCDS=1 SPLIT=1 FOLD=0 ALIGN=0 INTERLEAVE=0 TURN=0"},
      {1, "f32", problem("nn", f32, f32, {40, 70, 100}, {{"alpha", "-0.5"}}),
       "BM=32 BN=64 WM=16 WN=32 BK=32 INSTR=16 VA=4 VB=2 PAD=0 STAGES=2 ASYNC=0 FRAGMENTS=2 "
       "SWIZZLE=4 WALK=0 XCDS=1 SPLIT=2 FOLD=0 ALIGN=0 PRIORITY=0 INTERLEAVE=0 PINGPONG=0"},
      {1, "turned_and_folded", problem("tn", bf16, bf16, {61, 93, 150}),
       "BM=64 BN=32 WM=64 WN=32 BK=64 INSTR=16 VA=4 VB=2 PAD=0 STAGES=1 ASYNC=0 FRAGMENTS=2 "
       "SWIZZLE=8 WALK=0 XCDS=1 SPLIT=2 FOLD=1 ALIGN=1 PRIORITY=0 INTERLEAVE=0 PINGPONG=0 TURN=0"},
      {0, "six_and_twelve_chunks_in_lines", problem("tn", f16, f16, {70, 90, 150}, {{"beta", "2"}}),
       "BM=96 BN=48 WM=32 WN=48 BK=16 INSTR=16 VA=2 VB=2 PAD=0 STAGES=3 ASYNC=1 FRAGMENTS=1 "
       "SWIZZLE=4 WALK=0 XCDS=1 SPLIT=3 FOLD=1 ALIGN=0"},
      {0, "48_columns_through_registers", problem("nn", bf16, f32, {30, 170, 90}),
       "BM=32 BN=96 WM=16 WN=48 BK=16 INSTR=16 VA=2 VB=2 PAD=1 STAGES=2 ASYNC=0 FRAGMENTS=1 "
       "SWIZZLE=1 WALK=0 XCDS=1 SPLIT=3 FOLD=0 ALIGN=0"},
      {1, "copies_of_three_waves_on_dies", problem("nt", f16, f16, {150, 250, 150}),
       "BM=96 BN=48 WM=32 WN=48 BK=32 INSTR=16 VA=2 VB=2 PAD=0 STAGES=3 ASYNC=1 FRAGMENTS=1 "
       "SWIZZLE=4 WALK=1 XCDS=8 SPLIT=1 FOLD=0 ALIGN=0 PRIORITY=0 INTERLEAVE=0 PINGPONG=0"},
      {1, "turned_on_dies_and_folded", problem("tn", bf16, f32, {90, 130, 150}),
       "BM=96 BN=96 WM=32 WN=96 BK=32 INSTR=16 VA=2 VB=2 PAD=0 STAGES=2 ASYNC=0 FRAGMENTS=1 "
       "SWIZZLE=1 WALK=0 XCDS=8 SPLIT=3 FOLD=1 ALIGN=0 PRIORITY=0 INTERLEAVE=0 PINGPONG=0 TURN=0"},
      {2, "turned_for_48_columns", problem("tn", f16, f16, {31, 140, 99}),
       "BM=32 BN=96 WM=16 WN=48 BK=32 INSTR=16 VA=1 VB=4 PAD=1 STAGES=1 ASYNC=0 FRAGMENTS=2 "
       "SWIZZLE=4 WALK=0 XCDS=1 SPLIT=3 FOLD=0 ALIGN=0 INTERLEAVE=0"},
      {2, "turned", problem("nn", bf16, f32, {70, 90, 150}, {{"epilogue", "residual"}}),
       "BM=64 BN=64 WM=32 WN=32 BK=32 INSTR=16 VA=2 VB=2 PAD=0 STAGES=2 ASYNC=0 FRAGMENTS=1 "
       "SWIZZLE=8 WALK=0 XCDS=1 SPLIT=1 FOLD=0 ALIGN=0 INTERLEAVE=0"},
      {0, "residual_of_odd_rows",
       problem("nt", f16, f16, {140, 135, 72}, {{"epilogue", "residual"}}),
       "BM=128 BN=128 WM=32 WN=64 BK=16 INSTR=16 VA=4 VB=4 PAD=1 STAGES=2 ASYNC=0 FRAGMENTS=1 "
       "SWIZZLE=1 WALK=0 XCDS=1 SPLIT=1 FOLD=0 ALIGN=0"},
      {2, "residual_of_odd_rows",
       problem("nt", f16, f16, {140, 135, 72}, {{"epilogue", "residual"}}),
       "BM=128 BN=128 WM=32 WN=64 BK=16 INSTR=16 VA=4 VB=4 PAD=1 STAGES=2 ASYNC=0 FRAGMENTS=1 "
       "SWIZZLE=1 WALK=0 XCDS=1 SPLIT=1 FOLD=0 ALIGN=0 INTERLEAVE=0"},
      {3, "residual_of_odd_rows",
       problem("nt", f16, f16, {140, 135, 72}, {{"epilogue", "residual"}}),
       "BM=128 BN=128 WM=32 WN=64 BK=16 INSTR=16 VA=4 VB=4 PAD=1 STAGES=2 ASYNC=0 FRAGMENTS=1 "
       "SWIZZLE=1 WALK=0 XCDS=1 SPLIT=1 FOLD=0 ALIGN=0 INTERLEAVE=0"},
      {0, "residual_of_odd_rows_of_folded_slices",
       problem("nt", f16, f16, {70, 135, 144}, {{"epilogue", "residual"}}),
       "BM=64 BN=128 WM=32 WN=64 BK=16 INSTR=16 VA=4 VB=4 PAD=1 STAGES=2 ASYNC=0 FRAGMENTS=1 "
       "SWIZZLE=1 WALK=0 XCDS=1 SPLIT=3 FOLD=1 ALIGN=0"},
      {0, "residual_of_odd_rows_of_slices",
       problem("nt", bf16, f32, {70, 135, 144}, {{"epilogue", "residual"}}),
       "BM=64 BN=128 WM=32 WN=64 BK=16 INSTR=16 VA=4 VB=4 PAD=1 STAGES=2 ASYNC=0 FRAGMENTS=1 "
       "SWIZZLE=1 WALK=0 XCDS=1 SPLIT=3 FOLD=0 ALIGN=0"},
      {2, "padded", problem("tn", f16, f16, {33, 64, 99}),
       "BM=32 BN=64 WM=16 WN=32 BK=32 INSTR=16 VA=1 VB=8 PAD=1 STAGES=1 ASYNC=0 FRAGMENTS=2 "
       "SWIZZLE=1 WALK=0 XCDS=1 SPLIT=2 FOLD=1 ALIGN=0 INTERLEAVE=0"},
      {3, "turned", problem("nn", f16, f16, {30, 96, 150}, {{"epilogue", "bias,silu"}}),
       "BM=32 BN=64 WM=16 WN=32 BK=64 INSTR=16 VA=2 VB=4 PAD=0 STAGES=2 ASYNC=0 FRAGMENTS=2 "
       "SWIZZLE=8 WALK=0 XCDS=1 SPLIT=2 FOLD=0 ALIGN=0 INTERLEAVE=0 TURN=0"},
      {3, "aligned", problem("nt", bf16, bf16, {71, 93, 149}),
       "BM=64 BN=32 WM=32 WN=32 BK=32 INSTR=16 VA=8 VB=8 PAD=0 STAGES=1 ASYNC=0 FRAGMENTS=1 "
       "SWIZZLE=1 WALK=0 XCDS=1 SPLIT=1 FOLD=0 ALIGN=1 INTERLEAVE=0"},
      {1, "whole_steps_copied", problem("nt", f16, f16, {70, 90, 430}),
       "BM=64 BN=64 WM=32 WN=64 BK=32 INSTR=16 VA=2 VB=2 PAD=0 STAGES=4 ASYNC=1 FRAGMENTS=1 "
       "SWIZZLE=1 WALK=0 XCDS=1 SPLIT=1 FOLD=0 ALIGN=0 PRIORITY=1 INTERLEAVE=0 PINGPONG=0"},
      {1, "whole_steps_copied_a_depth_ahead", problem("nt", bf16, f32, {70, 90, 650}),
       "BM=64 BN=64 WM=32 WN=32 BK=64 INSTR=32 VA=2 VB=2 PAD=0 STAGES=2 ASYNC=1 FRAGMENTS=2 "
       "SWIZZLE=1 WALK=0 XCDS=1 SPLIT=1 FOLD=0 ALIGN=0 PRIORITY=0 INTERLEAVE=0 PINGPONG=0"},
      {1, "whole_steps_transposed_by_reads", problem("tn", bf16, f32, {72, 90, 430}),
       "BM=64 BN=64 WM=32 WN=32 BK=32 INSTR=16 VA=2 VB=2 PAD=0 STAGES=3 ASYNC=1 FRAGMENTS=1 "
       "SWIZZLE=1 WALK=0 XCDS=1 SPLIT=1 FOLD=0 ALIGN=0 PRIORITY=0 INTERLEAVE=0 PINGPONG=0 TURN=1"},
      {1, "four_chunks_transposed_by_reads", problem("tn", f16, f32, {30, 34, 430}),
       "BM=32 BN=32 WM=32 WN=32 BK=32 INSTR=32 VA=2 VB=2 PAD=0 STAGES=2 ASYNC=1 FRAGMENTS=2 "
       "SWIZZLE=1 WALK=0 XCDS=1 SPLIT=1 FOLD=0 ALIGN=0 PRIORITY=0 INTERLEAVE=0 PINGPONG=0 TURN=1"},
      {1, "whole_steps_transposed_by_padded_reads", problem("nn", f16, f16, {40, 136, 300}),
       "BM=32 BN=64 WM=32 WN=64 BK=32 INSTR=16 VA=4 VB=8 PAD=1 STAGES=1 ASYNC=0 FRAGMENTS=1 "
       "SWIZZLE=1 WALK=0 XCDS=1 SPLIT=1 FOLD=0 ALIGN=0 PRIORITY=0 INTERLEAVE=0 PINGPONG=0 TURN=1"},
      {1, "whole_steps_turned", problem("nn", f16, f16, {70, 170, 300}),
       "BM=64 BN=96 WM=32 WN=48 BK=32 INSTR=16 VA=4 VB=2 PAD=0 STAGES=2 ASYNC=0 FRAGMENTS=1 "
       "SWIZZLE=1 WALK=0 XCDS=1 SPLIT=1 FOLD=0 ALIGN=0 PRIORITY=0 INTERLEAVE=0 PINGPONG=0 TURN=0"},
      {2, "whole_steps", problem("nt", bf16, bf16, {70, 90, 300}),
       "BM=64 BN=64 WM=32 WN=64 BK=32 INSTR=16 VA=4 VB=4 PAD=0 STAGES=2 ASYNC=0 FRAGMENTS=2 "
       "SWIZZLE=1 WALK=0 XCDS=1 SPLIT=1 FOLD=0 ALIGN=0 INTERLEAVE=0"},
      {3, "whole_steps_in_one_stage", problem("nn", bf16, bf16, {70, 94, 298}),
       "BM=64 BN=64 WM=32 WN=64 BK=32 INSTR=16 VA=2 VB=2 PAD=0 STAGES=1 ASYNC=0 FRAGMENTS=1 "
       "SWIZZLE=1 WALK=0 XCDS=1 SPLIT=1 FOLD=0 ALIGN=0 INTERLEAVE=0 TURN=0"},
      {1, "interleaved_through_registers", problem("nt", bf16, f16, {70, 90, 436}),
       "BM=64 BN=64 WM=32 WN=64 BK=32 INSTR=16 VA=4 VB=2 PAD=0 STAGES=2 ASYNC=0 FRAGMENTS=1 "
       "SWIZZLE=1 WALK=0 XCDS=1 SPLIT=1 FOLD=0 ALIGN=0 PRIORITY=1 INTERLEAVE=1 PINGPONG=0"},
      {1, "interleaved_a_depth_ahead", problem("nt", f16, f32, {70, 90, 652}),
       "BM=64 BN=64 WM=32 WN=32 BK=64 INSTR=16 VA=4 VB=4 PAD=1 STAGES=2 ASYNC=0 FRAGMENTS=2 "
       "SWIZZLE=1 WALK=0 XCDS=1 SPLIT=1 FOLD=0 ALIGN=0 PRIORITY=0 INTERLEAVE=2 PINGPONG=0"},
      {1, "interleaved_copies_a_depth_ahead", problem("nt", bf16, f32, {70, 90, 650}),
       "BM=64 BN=64 WM=32 WN=32 BK=64 INSTR=32 VA=2 VB=2 PAD=0 STAGES=3 ASYNC=1 FRAGMENTS=2 "
       "SWIZZLE=1 WALK=0 XCDS=1 SPLIT=1 FOLD=0 ALIGN=0 PRIORITY=0 INTERLEAVE=4 PINGPONG=0"},
      {1, "interleaved_in_one_stage", problem("nn", f32, f32, {40, 70, 200}),
       "BM=32 BN=64 WM=16 WN=32 BK=32 INSTR=16 VA=4 VB=2 PAD=0 STAGES=1 ASYNC=0 FRAGMENTS=1 "
       "SWIZZLE=4 WALK=0 XCDS=1 SPLIT=1 FOLD=0 ALIGN=0 PRIORITY=0 INTERLEAVE=1 PINGPONG=0"},
      {1, "interleaved_reads_that_transpose", problem("tn", bf16, f32, {72, 90, 430}),
       "BM=64 BN=64 WM=32 WN=32 BK=32 INSTR=16 VA=2 VB=2 PAD=0 STAGES=3 ASYNC=1 FRAGMENTS=1 "
       "SWIZZLE=1 WALK=0 XCDS=1 SPLIT=1 FOLD=0 ALIGN=0 PRIORITY=0 INTERLEAVE=2 PINGPONG=0 TURN=1"},
      {1, "ping_pong_of_half_rows", problem("nt", f16, f16, {130, 140, 440}),
       "BM=128 BN=128 WM=64 WN=32 BK=32 INSTR=16 VA=4 VB=8 PAD=0 STAGES=2 ASYNC=0 FRAGMENTS=1 "
       "SWIZZLE=1 WALK=0 XCDS=1 SPLIT=1 FOLD=0 ALIGN=0 PRIORITY=1 INTERLEAVE=0 PINGPONG=1"},
      {1, "ping_pong_of_an_odd_number_of_rows", problem("nn", bf16, f32, {100, 130, 300}),
       "BM=96 BN=128 WM=48 WN=32 BK=32 INSTR=16 VA=4 VB=2 PAD=1 STAGES=2 ASYNC=0 FRAGMENTS=1 "
       "SWIZZLE=1 WALK=0 XCDS=1 SPLIT=1 FOLD=0 ALIGN=0 PRIORITY=0 INTERLEAVE=0 PINGPONG=1 TURN=0"},
      {1, "ping_pong_of_depths", problem("nt", bf16, bf16, {70, 140, 648}),
       "BM=64 BN=128 WM=32 WN=32 BK=64 INSTR=32 VA=8 VB=8 PAD=0 STAGES=2 ASYNC=0 FRAGMENTS=1 "
       "SWIZZLE=1 WALK=0 XCDS=1 SPLIT=1 FOLD=0 ALIGN=0 PRIORITY=0 INTERLEAVE=0 PINGPONG=1"},
      {1, "ping_pong_with_copies", problem("nt", f16, f32, {70, 140, 430}),
       "BM=64 BN=128 WM=32 WN=32 BK=32 INSTR=16 VA=2 VB=2 PAD=0 STAGES=3 ASYNC=1 FRAGMENTS=1 "
       "SWIZZLE=1 WALK=0 XCDS=1 SPLIT=1 FOLD=0 ALIGN=0 PRIORITY=1 INTERLEAVE=0 PINGPONG=1"},
      {1, "ping_pong_with_copies_in_two_stages", problem("tn", f16, f16, {72, 136, 650}),
       "BM=64 BN=128 WM=32 WN=32 BK=64 INSTR=16 VA=2 VB=2 PAD=0 STAGES=2 ASYNC=1 FRAGMENTS=1 "
       "SWIZZLE=1 WALK=0 XCDS=1 SPLIT=1 FOLD=0 ALIGN=0 PRIORITY=1 INTERLEAVE=0 PINGPONG=1 TURN=1"},
      {1, "ping_pong_of_sixteen_waves", problem("nt", f16, f32, {130, 140, 300}),
       "BM=128 BN=128 WM=32 WN=32 BK=32 INSTR=16 VA=4 VB=4 PAD=0 STAGES=2 ASYNC=0 FRAGMENTS=1 "
       "SWIZZLE=1 WALK=0 XCDS=1 SPLIT=2 FOLD=1 ALIGN=0 PRIORITY=0 INTERLEAVE=0 PINGPONG=1"},
      {2, "interleaved", problem("nt", bf16, bf16, {70, 90, 300}),
       "BM=64 BN=64 WM=32 WN=64 BK=32 INSTR=16 VA=4 VB=4 PAD=0 STAGES=2 ASYNC=0 FRAGMENTS=1 "
       "SWIZZLE=1 WALK=0 XCDS=1 SPLIT=1 FOLD=0 ALIGN=0 INTERLEAVE=1"},
      {3, "interleaved", problem("nn", bf16, bf16, {70, 94, 298}),
       "BM=64 BN=64 WM=32 WN=64 BK=32 INSTR=16 VA=2 VB=2 PAD=0 STAGES=2 ASYNC=0 FRAGMENTS=2 "
       "SWIZZLE=1 WALK=0 XCDS=1 SPLIT=1 FOLD=0 ALIGN=0 INTERLEAVE=4 TURN=0"},
      {3, "turned_by_loads", problem("nn", bf16, f32, {70, 136, 298}, {{"epilogue", "residual"}}),
       "BM=64 BN=128 WM=32 WN=64 BK=32 INSTR=16 VA=2 VB=8 PAD=0 STAGES=2 ASYNC=0 FRAGMENTS=1 "
       "SWIZZLE=1 WALK=0 XCDS=1 SPLIT=1 FOLD=0 ALIGN=0 INTERLEAVE=0 TURN=2"},
      {3, "turned_by_loads_in_slices", problem("tn", f16, f16, {72, 88, 301}),
       "BM=64 BN=96 WM=16 WN=48 BK=64 INSTR=16 VA=8 VB=8 PAD=1 STAGES=1 ASYNC=0 FRAGMENTS=2 "
       "SWIZZLE=1 WALK=0 XCDS=1 SPLIT=2 FOLD=1 ALIGN=0 INTERLEAVE=2 TURN=2"},
      {3, "turned_by_loads_of_a_few_threads", problem("tt", f16, f32, {16, 30, 99}),
       "BM=16 BN=32 WM=16 WN=16 BK=16 INSTR=16 VA=8 VB=1 PAD=0 STAGES=2 ASYNC=0 FRAGMENTS=1 "
       "SWIZZLE=1 WALK=0 XCDS=1 SPLIT=1 FOLD=0 ALIGN=0 INTERLEAVE=0 TURN=2"},
      {3, "turned_by_loads_of_copies", problem("nn", bf16, bf16, {60, 93, 150}),
       "BM=64 BN=64 WM=32 WN=32 BK=32 INSTR=16 VA=8 VB=8 PAD=0 STAGES=2 ASYNC=0 FRAGMENTS=1 "
       "SWIZZLE=1 WALK=0 XCDS=1 SPLIT=1 FOLD=0 ALIGN=1 INTERLEAVE=0 TURN=2"},
  };
}

void expect_right(Device& device, const Case& c) {
  const Space space = built_in("gemm").space(c.problem, device.info());
  const auto config = space.parse(fmt::format("matrix {}", c.config));
  ASSERT_TRUE(config) << config.failure().message;
  test::expect_right(built_in("gemm"), c.problem,
                     built_in("gemm").plan(c.problem, device.info(), *config), config->text(), 1,
                     device);
}

class GemmMatrix : public ::testing::TestWithParam<Case> {};

TEST_P(GemmMatrix, IsRight) {
  expect_right(test::device(fmt::format("hip-host:{}", GetParam().imitated)), GetParam());
}

std::string name_of(const ::testing::TestParamInfo<GemmMatrix::ParamType>& instance) {
  constexpr std::array<const char*, 4> names{"sm_80_", "gfx942_", "gfx1100_", "gfx1201_"};
  return std::string(names.at(static_cast<std::size_t>(instance.param.imitated))) +
         instance.param.name;
}

INSTANTIATE_TEST_SUITE_P(Ways, GemmMatrix, ::testing::ValuesIn(cases()), name_of);

}  // namespace
}  // namespace greta::test::gemm_matrix_test
