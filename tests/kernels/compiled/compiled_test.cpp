// Protects: every HIP kernel of the catalog compiles for GPUs that this machine lacks: the defaults
// of each operation and samples of each variant. As for real devices, hiprtc compiles for the AMD
// architectures that it supports and clang for the others; NVRTC compiles for NVIDIA if it is
// installed.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <regex>
#include <sstream>
#include <string_view>

#include "kernels/sampling/candidates.hpp"
#include "runtime/device/compile/listing.hpp"
#include "runtime/device/hardware/architectures.hpp"
#include "runtime/device/hardware/occupancy.hpp"
#include "runtime/device/hip/compiler.hpp"
#include "runtime/device/hip/disassembler.hpp"
#include "runtime/device/text/hash.hpp"
#include "tests/kernels/compiled/compilers.hpp"
#include "tests/kernels/compiled/samples.hpp"
#include "tests/layers.hpp"

namespace greta::test::compiled_test {
namespace {

/// Counts branches of AMD's kernels without an instruction: LLVM 22 loses writes to elements of
/// vectors (docs/decisions/0036-masks-have-no-branches.md).
std::size_t empty_branches(const std::string& listing) {
  static const std::regex ends(R"(^\s*s_or_b(?:32|64) exec(?:_lo)?, exec(?:_lo)?, (\S+))");
  static const std::regex begins(R"(^\s*s_and_saveexec_b(?:32|64) (\S+),)");
  static const std::regex waits(R"(^\s*s_(?:delay|wait|nop))");
  std::istringstream lines(listing);
  std::size_t count = 0;
  std::string saved;  // where the instruction before has saved the mask of lanes
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (!saved.empty() && std::regex_search(line, waits)) continue;
    if (!saved.empty() && std::regex_search(line, match, ends) && match[1] == saved) ++count;
    saved.clear();
    if (line.find("saveexec") != std::string::npos && std::regex_search(line, match, begins)) {
      saved = match[1];
    }
  }
  return count;
}

class Compiled : public ::testing::TestWithParam<std::string> {
 protected:
  /// Compiles every kernel of a configuration that was not compiled before.
  void expect_good(const Operation& entry, const Problem& wanted, const Config& config,
                   bool is_default) {
    SCOPED_TRACE(wanted.key() + " | " + config.text());
    const auto plan = entry.plan(wanted, device_, config);
    ASSERT_TRUE(plan) << plan.failure().message;
    for (const auto& launch : plan->launches) {
      const bool maps = std::ranges::any_of(launch.arguments, [](const Argument& argument) {
        return std::holds_alternative<TensorMapArgument>(argument);
      });
      // Drivers place tensor maps by their own rule, so launches must know which argument is one.
      EXPECT_EQ(plan->sources.at(launch.source).argument_offsets.empty(), !maps);
    }
    bool uses_matrix_cores = false;
    for (const KernelSource& source : plan->sources) {
      const auto [seen, is_new] =
          uses_matrix_cores_.try_emplace(source.content_key({}, device_.architecture), false);
      if (is_new) seen->second = compile(source, is_default);
      uses_matrix_cores = uses_matrix_cores || seen->second;
    }
    const std::string& name = config.variant;
    const bool starts =
        std::ranges::any_of(std::array{"matrix", "tma", "tf32x3"},
                            [&](std::string_view begin) { return name.starts_with(begin); });
    EXPECT_EQ(uses_matrix_cores, starts || name == "cluster" || name == "stream" ||
                                     name == "digits" || name == "warpgroups" ||
                                     name == "pingpong");
  }

  /// Compiles `each` samples of every variant for which `taken(entry, variant)` holds.
  void sample(int each, const std::function<bool(const Operation&, const std::string&)>& taken) {
    test::for_each_sample(device_, each,
                          [&](const Operation& entry, const Problem& wanted, const Config& config) {
                            if (taken(entry, config.variant))
                              expect_good(entry, wanted, config, false);
                          });
  }

  void check_defaults(const test::Sizes& sizes) {
    test::for_each_default(
        device_, sizes,
        [this](const Operation& entry, const Problem& wanted, const Config& config) {
          expect_good(entry, wanted, config, true);
        });
  }

  const DeviceInfo device_ = *architecture_info(GetParam());

 private:
  /// Compiles a kernel. Returns whether it contains matrix instructions of this architecture.
  bool compile(const KernelSource& source, bool is_default) const {
    const auto compiled = compiler_->compile(source, device_.architecture);
    if (!compiled) {
      ADD_FAILURE() << compiled.failure().message << '\n' << compiled.failure().log;
      return false;
    }
    // ptxas lets products of warpgroups wait for each other, which takes twice as long, or waits
    // itself.
    for (const char* code : {"(C751", "(C752"}) {
      EXPECT_EQ(compiled->log.find(code), std::string::npos) << compiled->log;
    }
    const auto statistics = test::read_statistics(device_, source, compiled->binary);
    expect_fits(source, statistics, is_default);
    if (device_.vendor != "AMD") return statistics.matrix_instructions > 0;
    const MatrixCores cores = matrix_cores(device_.architecture);
    if (cores == MatrixCores::none || source.name.find("matrix") == std::string::npos) return false;
    const auto listing = hip::disassemble(compiled->binary, {}).value();
    EXPECT_EQ(empty_branches(listing), 0U);
    const auto mnemonic = cores == MatrixCores::mfma ? "v_mfma_" : "v_wmma_";
    return count_matrix_instructions(listing) > 0 && listing.find(mnemonic) != std::string::npos;
  }

  void expect_fits(const KernelSource& source, KernelStatistics statistics, bool is_default) const {
    statistics.shared_memory_bytes += source.dynamic_shared_bytes;
    EXPECT_LE(statistics.shared_memory_bytes, device_.shared_memory_bytes);
    const std::uint32_t threads = source.block[0] * source.block[1] * source.block[2];
    EXPECT_GE(occupancy(device_, statistics, threads).value().groups, 1U);
    EXPECT_GT(statistics.code_bytes, 0U);
    if (!is_default) return;
    EXPECT_EQ(statistics.spilled_registers, 0U);
    // A scalar is kept in a lane of a vector register, which takes an instruction and no memory.
    EXPECT_LE(statistics.spilled_scalar_registers, 48U);
    // ptxas keeps a few words in memory where that lets one more workgroup run: of a row of sample,
    // outside of its passes, where 1024 threads were 1.6 times as fast as 512 without. Clang keeps
    // one sum of three numbers of its search there, for gfx90a and gfx1030.
    // Blocks of GGUF's q4_0 and q8_0 by warpgroups are faster with 48 bytes there than without
    // (results/2026-11-30-nvidia-h200-quantized-steps, sums claimed).
    const bool samples = source.entry.starts_with("sample_");
    // A copying thread of latent attention's pingpong has 56 registers, and keeps addresses in
    // memory.
    const std::map<std::string_view, std::uint32_t> more{{"quantized_gemm_tma", 48},
                                                         {"latent_attention_pingpong", 144}};
    const auto found = more.find(source.entry);
    const std::uint32_t most = samples ? 72 : found != more.end() ? found->second : 32;
    EXPECT_LE(statistics.scratch_bytes, device_.vendor == "NVIDIA" ? most : samples ? 32U : 0U);
  }

  const std::unique_ptr<hip::Compiler> compiler_ = test::compiler_for(device_);
  std::map<std::string, bool> uses_matrix_cores_;  ///< by the key of each kernel that was compiled
};

const std::vector<std::string> amd{"gfx90a",  "gfx942",  "gfx950",  "gfx1030", "gfx1103",
                                   "gfx1151", "gfx1201", "gfx1100", "gfx1200"};

/// Two architectures of a generation share the sizes between them; others get all.
test::Sizes sizes_of(const std::string& architecture) {
  for (const auto& [one, other] : {std::pair{"gfx90a", "gfx942"}, {"gfx1103", "gfx1151"}}) {
    if (architecture == one) return {.first = 0, .step = 2};
    if (architecture == other) return {.first = 1, .step = 2};
  }
  return {};
}

/// Every architecture gets a third of the sizes, and the next ones get the others.
TEST_P(Compiled, DefaultsSpillNothing) {
  const auto own = std::find(amd.begin(), amd.end(), GetParam());
  check_defaults({.first = static_cast<std::size_t>(own - amd.begin()) % 3, .step = 3});
}

/// For scripts/test.sh --all.
TEST_P(Compiled, MostDefaultsSpillNothing) {
  check_defaults(sizes_of(GetParam()));
}

/// Takes minutes: ctest -L long.
TEST_P(Compiled, ManyDefaultsSpillNothing) {
  check_defaults({.all = true});
}

/// Takes minutes, too: attributes that the others do not have.
TEST_P(Compiled, ManyDrawsOfDefaultsSpillNothing) {
  for (const std::uint64_t seed : {2001, 2002, 2003}) check_defaults({.seed = seed});
}

TEST_P(Compiled, ManySamples) {
  sample(50, [](const auto&, const auto&) { return true; });
}

/// Panels need layout nt, which few samples have. Fragments that are loaded directly take
/// registers.
TEST_P(Compiled, Panels) {
  const Operation& gemm = built_in("gemm");
  for (const char* key :
       {"gemm dtype=bf16 out=bf16 layout=nt packing=panels m=2 n=4096 k=4096",
        "gemm dtype=f16 out=f16 layout=nt epilogue=swiglu packing=panels m=16 n=4096 k=4096",
        "gemm dtype=bf16 out=bf16 layout=nt epilogue=bias packing=panels m=64 n=4096 k=4096",
        "gemm dtype=f16 out=f16 layout=nt packing=panels m=4096 n=4096 k=4096"}) {
    const Problem problem = Problem::parse(key).value();
    expect_good(gemm, problem, gemm.default_config(problem, device_), true);
    for (const auto& [same, config] :
         kernels::sample_candidates(gemm, problem, device_, "matrix", 1, 5)) {
      expect_good(gemm, same, config, false);
    }
  }
}

/// One architecture per generation; ManySamples covers the others.
const std::vector<std::string> generations{"gfx90a", "gfx942", "gfx1030", "gfx1151", "gfx1201"};

class CompiledGeneration : public Compiled {
 protected:
  void sample_on(std::size_t count);
};

/// One sample of each variant on `count` of AMD's generations that have it.
void CompiledGeneration::sample_on(std::size_t count) {
  sample(1, [count](const Operation& entry, const std::string& variant) {
    std::vector<std::string> having;
    for (const std::string& name : generations) {
      if (test::has_variant(entry, variant, *architecture_info(name))) having.push_back(name);
    }
    const auto own = std::find(having.begin(), having.end(), GetParam());
    if (own == having.end()) return true;  // not AMD's
    const std::size_t first = Hash().add(entry.name).add(variant).low() % having.size();
    const auto place = static_cast<std::size_t>(own - having.begin());
    return (place + having.size() - first) % having.size() < count;
  });
}

/// Few samples have groups on matrix cores, whose main loops want addresses in scalar registers.
TEST_P(CompiledGeneration, Groups) {
  if (!test::has_variant(built_in("gemm"), "matrix", device_)) return;  // RDNA2
  for (const char* key :
       {"gemm dtype=bf16 out=bf16 m=512 n=512 k=128 batch=16",
        "grouped_gemm dtype=f16 out=f16 groups=16 m=512 n=512 k=128",
        "grouped_gemm dtype=f16 out=f16 form=masked groups=16 m=512 n=512 k=128",
        "grouped_gemm dtype=bf16 out=bf16 epilogue=swiglu groups=16 m=512 n=512 k=128"}) {
    const Problem problem = Problem::parse(key).value();
    const Operation& operation = built_in(problem.op);
    const auto configs = operation.variant("matrix").defaults(operation.shape(problem), device_);
    ASSERT_FALSE(configs.empty()) << key;
    expect_good(operation, problem, configs.front(), false);
  }
}

/// Protects: a tree's mask stays in the compiled kernel.
TEST_P(CompiledGeneration, MasksOfTrees) {
  const Problem problem =
      Problem::parse("tree_attention dtype=f16 out=f16 batch=1 heads=4 kv_heads=2 q=9 kv=70 dim=64")
          .value();
  const Operation& operation = built_in("tree_attention");
  if (device_.vendor != "AMD" || !test::has_variant(operation, "matrix", device_)) return;
  const Config config{"matrix",
                      {{"BK", 32},
                       {"WQ", 16},
                       {"WAVES", 1},
                       {"VWAVES", 1},
                       {"BUFFERS", 1},
                       {"QREG", 0},
                       {"SPLIT", 1},
                       {"FOLD", 1}}};
  expect_good(operation, problem, config, true);
}

/// Slices that a cluster adds, and slices of clusters, are in few samples.
TEST_P(CompiledGeneration, SlicesInClusters) {
  if (!has_clusters(device_.architecture)) return;  // their space has none
  const Problem problem = Problem::parse("gemm dtype=f16 out=f16 m=256 n=512 k=4096").value();
  const Operation& gemm = built_in("gemm");
  for (const char* variant : {"matrix", "tma"}) {
    const auto configs = gemm.variant(variant).defaults(gemm.shape(problem), device_);
    const auto found = std::find_if(configs.begin(), configs.end(),
                                    [](const Config& config) { return config["FOLD"] == 2; });
    ASSERT_NE(found, configs.end()) << variant;
    expect_good(gemm, problem, *found, false);
    if (found->variant != "tma") continue;
    Config shared = *found;
    shared.value("FOLD") = 1;
    shared.value("CLUSTER_M") = 2;
    expect_good(gemm, problem, shared, false);
  }
}

/// Several products of a warpgroup are in few samples.
TEST_P(CompiledGeneration, SeveralProductsOfAWarpgroup) {
  if (!has_warpgroup_products(device_.architecture)) return;
  const Operation& gemm = built_in("gemm");
  const Problem problem =
      Problem::parse("gemm dtype=f16 out=f16 layout=nt m=784 n=2880 k=6216").value();
  const Space space = gemm.space(problem, device_);
  for (const char* tile :
       {"BM=160 BN=128 BK=64 GROUPS=1 PINGPONG=0 STAGES=5 CLUSTER_M=1 CLUSTER_N=4 RESIDENT=0",
        "BM=256 BN=128 BK=64 GROUPS=2 PINGPONG=0 STAGES=4 CLUSTER_M=2 CLUSTER_N=1 RESIDENT=1",
        "BM=128 BN=144 BK=64 GROUPS=2 PINGPONG=1 STAGES=4 CLUSTER_M=1 CLUSTER_N=1 RESIDENT=1"}) {
    const auto config = space.parse(
        fmt::format("tma {} SWIZZLE=8 WALK=0 SPLIT=1 FOLD=0 ALIGN=0 DYNAMIC=0 STREAM_K=0", tile));
    ASSERT_TRUE(config) << config.failure().message;
    expect_good(gemm, problem, *config, false);
  }
}

TEST_P(CompiledGeneration, SomeSamples) {
  sample_on(1);
}

// scripts/test.sh --all. ManySamples covers all generations.
TEST_P(CompiledGeneration, MostSamples) {
  sample_on(2);
}

constexpr auto name_of = [](const auto& instance) { return instance.param; };

INSTANTIATE_TEST_SUITE_P(Amd, CompiledGeneration, ::testing::ValuesIn(generations), name_of);
INSTANTIATE_TEST_SUITE_P(Amd, Compiled, ::testing::ValuesIn(amd), name_of);

#ifdef GRETA_TEST_NVRTC
INSTANTIATE_TEST_SUITE_P(Nvidia, CompiledGeneration, ::testing::Values("sm_90"), name_of);
INSTANTIATE_TEST_SUITE_P(Nvidia, Compiled, ::testing::Values("sm_80", "sm_90"), name_of);
#endif

TEST(CompiledArchitectures, AreCompiledByHiprtcAndClang) {
  const auto compiler = std::move(hip::create_amd_compiler({}).value());
  for (const char* architecture : {"gfx90a", "gfx1030"}) {
    EXPECT_TRUE(compiler->used_for(architecture).value().starts_with("hiprtc ")) << architecture;
  }
  // For architectures between them the compiler depends on the distribution's hiprtc.
  for (const char* architecture : {"gfx950", "gfx1201"}) {
    EXPECT_TRUE(compiler->used_for(architecture).value().starts_with("clang ")) << architecture;
  }
}

}  // namespace
}  // namespace greta::test::compiled_test
