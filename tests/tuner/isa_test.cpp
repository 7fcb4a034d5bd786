// Protects: instructions are read, classified and priced as AMD's assembler and manuals say; the
// main loop and the path of its turns are found in any order of blocks; and bank conflicts that are
// simulated are those of the addresses that a compiled kernel computes.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "runtime/device/hip/compiler.hpp"
#include "runtime/device/hip/disassembler.hpp"
#include "tests/layers.hpp"
#include "tuner/isa/instruction_kind.hpp"
#include "tuner/isa/loop_figures.hpp"
#include "tuner/isa/machine.hpp"
#include "tuner/isa/main_loop.hpp"
#include "tuner/isa/scalar_semantics.hpp"
#include "tuner/isa/vector_semantics.hpp"

namespace greta::test::isa_test {
namespace {

using Kind = InstructionKind;

/// Returns a listing of instructions of 4 bytes each. "@3" at the end of one is a branch to the
/// fourth.
std::string listing_of(const std::vector<std::string>& lines) {
  std::string text = "\n0000000000001000 <kernel>:\n";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto at = lines[i].find('@');
    long words = 0;
    if (at != std::string::npos) {
      words = std::stol(lines[i].substr(at + 1)) - static_cast<long>(i) - 1;
    }
    text += fmt::format("\t{}  // {:012X}: BF82{:04X}\n", lines[i].substr(0, at), 0x1000 + 4 * i,
                        static_cast<unsigned>(words) & 0xFFFFU);
  }
  return text;
}

std::vector<IsaInstruction> parsed(const std::vector<std::string>& lines) {
  return read_instructions(listing_of(lines), "kernel", 0);
}

IsaInstruction one(const std::string& line) {
  return parsed({line}).at(0);
}

TEST(IsaInstructions, OperandsAndModifiersAreRead) {
  const auto read = one("ds_read2_b64 v[4:7], v2 offset0:3 offset1:0x10");
  EXPECT_EQ(read.operation.mnemonic, "ds_read2_b64");
  ASSERT_EQ(read.operation.operands.size(), 2U);
  EXPECT_EQ(read.operation.operands[0].kind, IsaOperand::Kind::vector);
  EXPECT_EQ(read.operation.operands[0].index, 4U);
  EXPECT_EQ(read.operation.operands[0].count, 4U);
  EXPECT_EQ(modifier(read.operation, "offset0"), 3U);
  EXPECT_EQ(modifier(read.operation, "offset1"), 16U);

  const auto fma = one("v_fma_f32 v1, -v2, |s3|, 0x40000000");
  EXPECT_TRUE(fma.operation.operands[1].negated);
  EXPECT_TRUE(fma.operation.operands[2].absolute);
  EXPECT_EQ(fma.operation.operands[2].kind, IsaOperand::Kind::scalar);
  EXPECT_EQ(fma.operation.operands[3].literal, 0x40000000U);

  const auto dual = one("v_dual_mov_b32 v4, 0 :: v_dual_and_b32 v9, 15, v0");
  ASSERT_TRUE(dual.second);
  EXPECT_EQ(dual.second->mnemonic, "v_dual_and_b32");
  EXPECT_EQ(dual.second->operands[1].literal, 15U);
  EXPECT_EQ(one("v_add_u32_e32 v1, -4, v2").operation.mnemonic, "v_add_u32");
  EXPECT_EQ(one("v_add_u32_e32 v1, -4, v2").operation.operands[1].literal, 0xFFFFFFFCU);
}

TEST(IsaInstructions, ACodeObjectsOtherKernelsAreLeftOut) {
  const std::string two = listing_of({"s_nop 0", "s_endpgm"}) +
                          "\n0000000000002000 <other>:\n\ts_nop 1  // 000000002000: BF800001\n";
  EXPECT_EQ(read_instructions(two, "kernel", 8).size(), 2U);
  EXPECT_EQ(read_instructions(two, "other", 4).size(), 1U);
  EXPECT_TRUE(read_instructions(two, "none", 4).empty());
}

TEST(IsaInstructions, KindsBytesAndDrains) {
  EXPECT_EQ(kind_of(one("v_mfma_f32_32x32x8_f16 a[0:15], v[0:1], v[2:3], a[0:15]")), Kind::matrix);
  EXPECT_EQ(kind_of(one("v_wmma_f32_16x16x16_f16 v[0:7], v[8:15], v[16:23], v[0:7]")),
            Kind::matrix);
  EXPECT_EQ(kind_of(one("v_accvgpr_read_b32 v0, a1")), Kind::accumulator_move);
  EXPECT_EQ(kind_of(one("v_exp_f32_e32 v0, v1")), Kind::vector);
  EXPECT_EQ(kind_of(one("s_and_b64 s[0:1], s[2:3], vcc")), Kind::scalar);
  EXPECT_EQ(kind_of(one("s_cbranch_scc1 4")), Kind::other);
  EXPECT_EQ(kind_of(one("s_wait_dscnt 0x0")), Kind::wait);
  EXPECT_EQ(kind_of(one("global_load_dwordx4 v[0:3], v[4:5], off")), Kind::vector_memory);
  EXPECT_EQ(kind_of(one("global_inv scope:SCOPE_SE")), Kind::other);
  EXPECT_EQ(lane_bytes("ds_read_b128"), 16U);
  EXPECT_EQ(lane_bytes("ds_load_2addr_b64"), 16U);
  EXPECT_EQ(lane_bytes("ds_read_u16_d16_hi"), 2U);
  EXPECT_EQ(lane_bytes("global_load_dwordx3"), 12U);
  EXPECT_EQ(lane_bytes("buffer_load_ubyte"), 1U);
  EXPECT_EQ(lane_bytes("v_add_u32"), 0U);
  EXPECT_TRUE(writes_lds(one("buffer_load_dword v1, s[8:11], 0 offen lds")));
  EXPECT_TRUE(writes_lds(one("global_load_lds_dwordx4 v[0:1], off")));
  EXPECT_FALSE(writes_lds(one("global_load_dword v1, v[2:3], off")));
  EXPECT_TRUE(drains(one("s_waitcnt vmcnt(2) lgkmcnt(0)")));
  EXPECT_FALSE(drains(one("s_waitcnt vmcnt(2) lgkmcnt(1)")));
  EXPECT_TRUE(drains(one("s_wait_loadcnt 0x0")));
  EXPECT_FALSE(drains(one("s_wait_loadcnt 0x3")));
  EXPECT_FALSE(drains(one("s_wait_kmcnt 0x0")));
}

/// The passes in LLVM's SISchedule.td, four cycles each, and for RDNA the cycles at the stated
/// rate.
TEST(IsaMachines, MatrixCyclesAreThoseOfLlvmsModels) {
  struct Row {
    const char *architecture, *mnemonic;
    double cycles;
  };
  for (const Row& row :
       {Row{"gfx90a", "v_mfma_f32_32x32x8f16", 64}, Row{"gfx90a", "v_mfma_f32_16x16x16bf16_1k", 32},
        Row{"gfx90a", "v_mfma_f32_16x16x4f32", 32}, Row{"gfx942", "v_mfma_f32_32x32x8_f16", 32},
        Row{"gfx942", "v_mfma_f32_16x16x16_bf16", 16}, Row{"gfx942", "v_mfma_f32_16x16x4_f32", 32},
        Row{"gfx942", "v_mfma_f32_16x16x32_fp8_fp8", 16},
        Row{"gfx942", "v_mfma_f32_32x32x16_fp8_fp8", 32},
        Row{"gfx942", "v_mfma_f32_4x4x4_16b_f16", 8}, Row{"gfx950", "v_mfma_f32_32x32x8_f16", 32},
        Row{"gfx950", "v_mfma_f32_32x32x16_bf16", 32}, Row{"gfx950", "v_mfma_f32_16x16x16_f16", 16},
        Row{"gfx950", "v_mfma_f32_16x16x32_f16", 16}, Row{"gfx1100", "v_wmma_f32_16x16x16_f16", 32},
        Row{"gfx1201", "v_wmma_f32_16x16x16_bf16", 16}}) {
    EXPECT_EQ(IsaMachine::of(row.architecture).value().matrix_cycles(row.mnemonic), row.cycles)
        << row.architecture << " " << row.mnemonic;
  }
  // gfx950's f8f6f4 is twice as fast if both operands have less than eight bits.
  const IsaMachine cdna4 = IsaMachine::of("gfx950").value();
  const std::string scaled =
      "v_mfma_scale_f32_16x16x128_f8f6f4 v[0:3], v[4:11], v[12:19], v[20:23], "
      "v24, v25 op_sel_hi:[0,0,0]";
  EXPECT_EQ(cdna4.matrix_cycles(one(scaled).operation), 32);
  EXPECT_EQ(cdna4.matrix_cycles(one(scaled + " cbsz:4").operation), 32);
  EXPECT_EQ(cdna4.matrix_cycles(one(scaled + " cbsz:4 blgp:4").operation), 16);
  EXPECT_EQ(cdna4.peak_flops(matrix_type(one(scaled + " cbsz:4 blgp:4").operation)), 4096);
  EXPECT_FALSE(IsaMachine::of("sm_90"));
  EXPECT_FALSE(IsaMachine::of("gfx1030"));
}

TEST(IsaMachines, EachLaneIsServedOnce) {
  for (const char* architecture : {"gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"}) {
    const auto machine = IsaMachine::of(architecture).value();
    for (const bool write : {false, true}) {
      for (const std::uint32_t bytes : {1U, 4U, 8U, 12U, 16U}) {
        std::vector<int> served(machine.wave(), 0);
        for (const auto& group : machine.lds_groups(write, bytes)) {
          for (const std::uint32_t lane : group) ++served.at(lane);
        }
        EXPECT_EQ(served, std::vector<int>(machine.wave(), 1)) << architecture << " " << bytes;
      }
    }
  }
}

/// Blocks of a path by the mnemonics of its instructions.
std::vector<std::string> path_of(const std::vector<std::string>& lines, bool* loop = nullptr) {
  const auto instructions = parsed(lines);
  const ControlFlow flow(instructions);
  const MainLoop main = find_main_loop(instructions, flow);
  if (loop != nullptr) *loop = main.header.has_value();
  std::vector<std::string> names;
  for (const std::size_t block : main.path) {
    for (std::size_t i = flow.blocks[block].first; i < flow.blocks[block].last; ++i) {
      names.push_back(instructions[i].operation.mnemonic);
    }
  }
  return names;
}

const std::string mfma = "v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[6:7], v[0:3]";

TEST(MainLoops, TheInnermostLoopWithTheMostMatrixWorkIsFound) {
  bool loop = false;
  const auto path = path_of({"s_mov_b32 s0, 0",       // 0: outer loop
                             "v_add_u32 v1, v1, v2",  // 1: a loop without matrix instructions
                             "v_add_u32 v1, v1, v2",  //
                             "v_add_u32 v1, v1, v2",  //
                             "s_cbranch_scc1 @1",     //
                             mfma,                    // 5: the main loop
                             "s_add_i32 s0, s0, 1",   //
                             "s_cbranch_scc1 @5",     //
                             "s_cbranch_vccnz @0",    //
                             "s_endpgm"},
                            &loop);
  EXPECT_TRUE(loop);
  EXPECT_EQ(path,
            (std::vector<std::string>{"v_mfma_f32_16x16x16_f16", "s_add_i32", "s_cbranch_scc1"}));
}

/// The mask (3 to 4) is skipped, the next tile (6) is loaded, and a block of the loop lies behind
/// the kernel's end, where compilers put what they deem rare.
TEST(MainLoops, ATurnLoadsTheNextTileAndSkipsWhatEdgesDo) {
  const auto path = path_of({"s_mov_b32 s0, 0",                          // 0
                             mfma,                                       // 1: header
                             "s_cbranch_scc1 @5",                        // 2
                             "v_cndmask_b32 v1, v1, v2, vcc",            // 3
                             "v_cndmask_b32 v1, v1, v2, vcc",            // 4
                             "s_cbranch_execz @7",                       // 5
                             "global_load_dwordx4 v[0:3], v[4:5], off",  // 6
                             "s_cbranch_vccnz @10",                      // 7
                             "s_cbranch_scc1 @1",                        // 8
                             "s_endpgm",                                 // 9
                             "v_mul_f32 v1, v1, v2",                     // 10
                             "s_branch @8"});                            // 11
  EXPECT_EQ(path, (std::vector<std::string>{"v_mfma_f32_16x16x16_f16", "s_cbranch_scc1",
                                            "s_cbranch_execz", "global_load_dwordx4",
                                            "s_cbranch_vccnz", "s_cbranch_scc1"}));
}

TEST(MainLoops, AKernelWhoseMatrixWorkIsInNoLoopIsCountedWhole) {
  bool loop = true;
  const auto path =
      path_of({"s_nop 0", "v_add_u32 v1, v1, v2", "s_cbranch_scc1 @1", mfma, "s_endpgm"}, &loop);
  EXPECT_FALSE(loop);
  EXPECT_EQ(path.size(), 5U);
  EXPECT_TRUE(path_of({}).empty());
}

/// Runs instructions on lane numbers in v0, and returns v1; unknown lanes are UINT64_MAX.
std::vector<std::uint64_t> lanes_after(const std::vector<std::string>& lines) {
  WaveState state(64);
  LaneValues numbers;
  numbers.known = UINT64_MAX;
  for (std::uint32_t i = 0; i < 64; ++i) numbers.lane[i] = i;
  state.set_lanes({.kind = IsaOperand::Kind::vector, .index = 0}, 1, numbers);
  for (const auto& instruction : parsed(lines)) {
    const bool scalar = kind_of(instruction) == Kind::scalar;
    (scalar ? run_scalar : run_vector)(instruction.operation, state);
  }
  const auto result = state.lanes_of({.kind = IsaOperand::Kind::vector, .index = 1}, 1);
  std::vector<std::uint64_t> values;
  for (std::uint32_t i = 0; i < 64; ++i) {
    values.push_back((result.known >> i & 1) != 0 ? result.lane[i] : UINT64_MAX);
  }
  return values;
}

TEST(IsaSemantics, AddressesAreComputed) {
  EXPECT_EQ(lanes_after({"s_movk_i32 s0, 0x10", "v_mad_u32_u24 v1, v0, s0, 4"})[5], 84U);
  EXPECT_EQ(lanes_after({"v_bfe_u32 v1, v0, 2, 3"})[45], 3U);
  EXPECT_EQ(lanes_after({"v_mbcnt_lo_u32_b32 v1, -1, 0", "v_mbcnt_hi_u32_b32 v1, -1, v1"})[37],
            37U);
  EXPECT_EQ(lanes_after({"v_bitop3_b32 v1, v0, 6, 1 bitop3:0x78"})[7], (6U & 1U) ^ 7U);
  EXPECT_EQ(lanes_after({"v_lshl_add_u64 v[1:2], v[0:1], 3, 8"})[0], UINT64_MAX) << "v1 is unknown";
  EXPECT_EQ(lanes_after({"v_or_b32_sdwa v1, v0, v0 dst_sel:DWORD dst_unused:UNUSED_PAD "
                         "src0_sel:DWORD src1_sel:BYTE_1"})[9],
            9U);
}

TEST(IsaSemantics, HalvesOfRegistersAreWrittenApart) {
  EXPECT_EQ(lanes_after({"v_mov_b32 v1, 0x50000", "v_mul_lo_u16 v1.l, 3, v0.l"})[7], 0x50015U);
  EXPECT_EQ(lanes_after({"v_mov_b32 v1, 7", "v_mov_b16 v1.h, v0.l"})[9], 0x90007U);
  EXPECT_EQ(lanes_after({"v_mov_b16 v1.h, v0.l"})[9], UINT64_MAX) << "v1.l is unknown";
}

TEST(IsaSemantics, OnlyActiveLanesChangeAndUnknownOnesStayUnknown) {
  const auto values =
      lanes_after({"v_mov_b32 v1, 1", "v_cmp_gt_u32 vcc, 8, v0", "s_and_saveexec_b64 s[0:1], vcc",
                   "v_mov_b32 v1, 2", "s_mov_b64 exec, s[0:1]", "v_cmp_lt_f32 vcc, v0, v0",
                   "v_cndmask_b32 v2, v0, v1, vcc", "v_add_u32 v3, v1, v2"});
  EXPECT_EQ(values[7], 2U);
  EXPECT_EQ(values[8], 1U);
  EXPECT_EQ(lanes_after({"v_cmp_lt_f32 vcc, v0, v0", "v_cndmask_b32 v1, 3, v0, vcc"})[0],
            UINT64_MAX);
  EXPECT_EQ(lanes_after({"v_cmp_lt_f32 vcc, v0, v0", "v_cndmask_b32 v1, 3, v0, vcc"})[3], 3U)
      << "both are 3";
}

/// Compiles a kernel whose lanes are so many words apart in LDS, and returns the figures of its
/// loop.
LoopFigures compiled_loop(const std::string& architecture, unsigned apart, unsigned rotate) {
  const std::string text = fmt::format(R"(
extern "C" __attribute__((global)) void kernel(float* p, unsigned n) {{
  __attribute__((shared)) float shared[4096];
  const unsigned lane = __builtin_amdgcn_workitem_id_x();
  float sum = p[lane];
  for (unsigned i = 0; i < n; ++i) {{
    shared[(lane * {} + i % {}) & 4095] = sum;
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
    sum += shared[((lane ^ 1) * {} + i % {}) & 4095];
  }}
  p[lane] = sum;
}})",
                                       apart, rotate, apart, rotate);
  KernelSource source;
  source.name = source.entry = "kernel";
  source.language = Language::hip;
  source.text = text;
  const auto compiled = device::hip::create_amd_compiler({}).value()->compile(source, architecture);
  const auto listing = device::hip::disassemble(compiled->binary, {}).value();
  IsaLaunch launch;
  launch.descriptor = device::hip::read_descriptor(compiled->binary, "kernel").value();
  launch.arguments.resize(16);
  launch.arguments[8] = std::byte{100};
  launch.block = {64, 1, 1};
  return examine_main_loop({listing, "kernel", 0, architecture, 4}, launch).value();
}

/// A wave's lanes that are 32 words apart all want the same bank, those that are 33 apart none.
class CompiledConflicts : public ::testing::TestWithParam<const char*> {};

TEST_P(CompiledConflicts, AreThoseOfTheAddresses) {
  const auto even = compiled_loop(GetParam(), 33, 3);
  ASSERT_TRUE(even.lds_cycles) << even.lds_unknown;
  EXPECT_TRUE(even.loop);
  EXPECT_EQ(*even.lds_cycles, even.lds_least_cycles);
  EXPECT_GT(even.lds_least_cycles, 0);
  const auto same = compiled_loop(GetParam(), 32, 3);
  ASSERT_TRUE(same.lds_cycles) << same.lds_unknown;
  EXPECT_EQ(*same.lds_cycles, 32 * same.lds_least_cycles);
}

INSTANTIATE_TEST_SUITE_P(Architectures, CompiledConflicts,
                         ::testing::Values("gfx90a", "gfx942", "gfx1100", "gfx1201"),
                         [](const auto& parameter) { return std::string(parameter.param); });

TEST(LoopFigures, AddressesThatDependOnMemoryAreUnknown) {
  const std::string listing =
      listing_of({"global_load_dword v1, v[2:3], off", "ds_read_b32 v4, v1", mfma, "s_endpgm"});
  const auto figures = examine_main_loop({listing, "kernel", 0, "gfx942", 2}, IsaLaunch{}).value();
  EXPECT_FALSE(figures.lds_cycles);
  EXPECT_EQ(figures.lds_unknown, "an address depends on data");
  EXPECT_EQ(figures.lds_least_cycles, 2);
  const auto none = examine_main_loop({listing, "kernel", 0, "gfx942", 2}, std::nullopt).value();
  EXPECT_EQ(none.lds_unknown, "the kernel's arguments are unknown");
}

/// One matrix instruction of 16 cycles, and seven others of the vector unit with four cycles each.
TEST(LoopFigures, TheBoundIsThatOfTheSlowestUnit) {
  std::vector<std::string> lines{mfma};
  for (int i = 0; i < 7; ++i) lines.emplace_back("v_add_f32 v8, v8, v9");
  lines.emplace_back("s_endpgm");
  const auto at = [&](double waves) {
    return examine_main_loop({listing_of(lines), "kernel", 0, "gfx942", waves}, std::nullopt)
        .value();
  };
  EXPECT_EQ(at(2).bounded_by, "vector unit");
  EXPECT_DOUBLE_EQ(at(2).bound.value(), 16.0 / 32);
  EXPECT_EQ(at(1).bounded_by, "instruction issue");
  EXPECT_DOUBLE_EQ(at(1).bound.value(), 16.0 / 36);
  EXPECT_DOUBLE_EQ(at(0.5).bound.value(), 16.0 / 72);
  EXPECT_DOUBLE_EQ(at(2).matrix_share(), 1.0 / 9);
  EXPECT_DOUBLE_EQ(at(2).vector_per_matrix(), 7);
}

}  // namespace
}  // namespace greta::test::isa_test
