// Protects: the search space of GEMM is large, valid within the limits of every device, and
// contains a good default.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "kernels/model/problem_rules.hpp"
#include "runtime/device/hardware/architectures.hpp"
#include "tests/catalog.hpp"
#include "tests/kernels/gemm_cpu.hpp"

namespace greta::test::gemm_space_test {
namespace {

using test::gemm_problem;

DeviceInfo lavapipe() {
  DeviceInfo d;
  d.name = "lavapipe";
  d.kind = DeviceKind::cpu;
  d.max_workgroup_invocations = 1024;
  d.max_workgroup_size = {1024, 1024, 1024};
  d.max_grid = {65535, 65535, 65535};
  d.shared_memory_bytes = 32 << 10;
  d.subgroup_size = d.min_subgroup_size = d.max_subgroup_size = 8;
  d.memory_bytes = d.max_allocation_bytes = std::uint64_t{2} << 30;
  d.f16_storage = d.f16_arithmetic = true;
  return d;
}

DeviceInfo h200() {
  DeviceInfo d = lavapipe();
  d.name = "H200";
  d.kind = DeviceKind::discrete_gpu;
  d.max_grid = {0x7fffffff, 65535, 65535};
  d.shared_memory_bytes = 48 << 10;
  d.subgroup_size = d.min_subgroup_size = d.max_subgroup_size = 32;
  d.subgroup_size_control = true;
  d.compute_units = 132;
  d.memory_bytes = std::uint64_t{139} << 30;
  d.max_allocation_bytes = std::uint64_t{64} << 30;
  return d;
}

DeviceInfo rdna3() {
  DeviceInfo d = h200();
  d.name = "RDNA3";
  d.shared_memory_bytes = 64 << 10;
  d.max_subgroup_size = 64;
  d.compute_units = 0;
  return d;
}

DeviceInfo wave64() {
  DeviceInfo d = h200();
  d.name = "wave64";
  d.shared_memory_bytes = 32 << 10;
  d.subgroup_size = d.min_subgroup_size = d.max_subgroup_size = 64;
  d.subgroup_size_control = false;
  d.max_workgroup_invocations = 256;
  d.max_workgroup_size = {256, 256, 64};
  return d;
}

/// Returns the kinds of Vulkan devices and those of HIP.
std::vector<DeviceInfo> devices() {
  std::vector<DeviceInfo> list{lavapipe(), h200(), rdna3(), wave64()};
  for (const char* name : {"gfx942", "gfx1103", "sm_90"}) {
    list.push_back(architecture_info(name).value());
  }
  return list;
}

/// Returns all combinations of sizes, layouts and types. For HIP, whose spaces are larger, returns
/// every seventh, in which all values still meet each other.
std::vector<Problem> problems(const DeviceInfo& device) {
  const std::int64_t sizes[][3] = {{1, 1, 1},       {1, 4096, 4096},    {8, 11008, 4096},
                                   {7, 13, 4095},   {17, 31, 61},       {127, 509, 251},
                                   {512, 512, 512}, {1009, 1013, 997},  {16, 4096, 4096},
                                   {128, 4096, 64}, {4096, 4096, 4096}, {100000, 4, 3}};
  const std::size_t step = device.language == Language::hip ? 7 : 1;
  std::vector<Problem> chosen;
  std::size_t number = 0;
  for (const auto& [m, n, k] : sizes) {
    for (const char* layout : {"nn", "nt", "tn"}) {
      std::vector<std::pair<std::string, std::string>> attributes;
      if (layout != std::string("nn")) attributes = {{"layout", layout}};
      for (const DTypes& types : built_in("gemm").dtypes) {
        if (number++ % step != 0) continue;
        chosen.push_back(gemm_problem(m, n, k, types.in, types.out, attributes));
      }
    }
  }
  return chosen;
}

std::string rejection(const Problem& problem, const DeviceInfo& device, std::string_view variant,
                      std::vector<std::pair<std::string, int>> changes) {
  const Space space = built_in("gemm").space(problem, device);
  for (const Alternative& alternative : space.alternatives()) {
    if (alternative.variant != variant) continue;
    Config config{alternative.variant, {}};
    for (const Parameter& p : alternative.parameters) {
      const auto change = std::find_if(changes.begin(), changes.end(),
                                       [&](const auto& c) { return c.first == p.name; });
      config.values.emplace_back(p.name,
                                 change == changes.end() ? p.values.front() : change->second);
    }
    return space.rejects(config).value_or("valid");
  }
  return "no such variant";
}

TEST(GemmSpace, IsLargeForABigProblemOnEveryDevice) {
  for (const DeviceInfo& device : devices()) {
    const Space space = built_in("gemm").space(gemm_problem(4096, 4096, 4096), device);
    EXPECT_GE(space.count("tiled"), 5000U) << device.name;
    EXPECT_GE(space.count("split_k"), 5000U) << device.name;
    EXPECT_EQ(space.count("gemv"), 0U) << device.name;
    EXPECT_GE(built_in("gemm").space(gemm_problem(1, 4096, 4096), device).count("gemv"), 500U);
  }
}

TEST(GemmSpace, DefaultsAreValidOnEveryDevice) {
  for (const DeviceInfo& device : devices()) {
    for (const Problem& problem : problems(device)) {
      ASSERT_TRUE(check_problem(built_in("gemm"), problem)) << problem.key();
      const Space space = built_in("gemm").space(problem, device);
      const Config config = built_in("gemm").default_config(problem, device);
      EXPECT_EQ(space.rejects(config).value_or("valid"), "valid")
          << problem.key() << " on " << device.name << ": " << config.text();
      EXPECT_EQ(config.variant == "gemv", problem.dim("m") <= 8) << problem.key();
      EXPECT_TRUE(built_in("gemm").plan(problem, device, config)) << problem.key();
    }
  }
}

// Workgroups have a minimum size and tiles of small matrices a maximum one. Some configuration must
// remain.
TEST(GemmSpace, SmallMatricesHaveAKernelOnEveryDevice) {
  for (const DeviceInfo& device : devices()) {
    for (const std::int64_t m : {1, 2, 5, 8, 9, 16, 17}) {
      for (const std::int64_t n : {1, 3, 8, 9, 16, 17}) {
        const Problem problem = gemm_problem(m, n, 1, DType::f16, DType::f16);
        EXPECT_TRUE(built_in("gemm").plan(problem, device,
                                          built_in("gemm").default_config(problem, device)))
            << problem.key() << " on " << device.name;
      }
    }
  }
}

TEST(GemmSpace, DefaultOfABigProblemIsABigTile) {
  const Problem problem = gemm_problem(4096, 4096, 4096);
  const Config config = built_in("gemm").default_config(problem, h200());
  EXPECT_EQ(config.text(),
            "tiled BM=128 BN=128 TM=8 TN=8 LX=8 BK=16 STAGES=2 PAD=4 VA=4 VB=4 UNROLL=16 SWIZZLE=8 "
            "SUBGROUP=0");
}

TEST(GemmSpace, SampledConfigurationsRenderWithinTheDevicesLimits) {
  std::mt19937_64 random(1);
  for (const DeviceInfo& device : devices()) {
    for (const Problem& problem : problems(device)) {
      const Space space = built_in("gemm").space(problem, device);
      const Config config = space.sample(random);
      const auto plan = built_in("gemm").plan(problem, device, config);
      ASSERT_TRUE(plan) << plan.failure().message;
      const std::string first = device.language == Language::glsl ? "#version 460\n" : "";
      for (const KernelSource& source : plan->sources) {
        EXPECT_EQ(source.language, device.language);
        EXPECT_TRUE(source.text.starts_with(first + "#define IN_F16 ")) << source.name;
        EXPECT_EQ(source.text.find("#include"), std::string::npos) << source.name;
        EXPECT_LE(source.block[0], device.max_workgroup_invocations);
        const bool maps = config.variant.ends_with("tma") && source.dynamic_shared_bytes > 0;
        EXPECT_EQ(source.argument_bytes, maps ? 384U : 100U);  // with two tensor maps
      }
      EXPECT_LE(plan->workspace_bytes, device.memory_bytes / 4);
      for (const Launch& launch : plan->launches) {
        for (int i = 0; i < 3; ++i) EXPECT_LE(launch.grid.at(i), device.max_grid.at(i));
        // AMD counts threads in 32 bits.
        EXPECT_LE(std::uint64_t{launch.grid[0]} * plan->sources[launch.source].block[0],
                  0xffffffffU);
      }
    }
  }
}

// A grid with more threads than 32 bits can count is folded into two dimensions and covers every
// element.
TEST(GemmSpace, HugeGridsAreFolded) {
  const DeviceInfo device = architecture_info("gfx942").value();
  const Problem problem = gemm_problem(100000, 60000, 8);
  const auto plan = built_in("gemm").plan(problem, device, *built_in("gemm").naive);
  ASSERT_TRUE(plan) << plan.failure().message;
  const std::array<std::uint32_t, 3> grid = plan->launches[0].grid;
  EXPECT_EQ(grid[1], 2U);
  EXPECT_LE(std::uint64_t{grid[0]} * 256, 0xffffffffU);
  EXPECT_GE(std::uint64_t{grid[0]} * grid[1] * 256, 6000000000U);
}

TEST(GemmSpace, ConstraintsAreTold) {
  const Problem odd = gemm_problem(4096, 4098, 4095);
  EXPECT_EQ(rejection(odd, h200(), "tiled", {{"BM", 64}, {"BN", 64}, {"LX", 4}, {"VA", 4}}),
            "a_alignment: VA must divide 4095, the elements of a row of A as it is stored");
  EXPECT_EQ(rejection(odd, h200(), "tiled", {{"BM", 64}, {"BN", 64}, {"LX", 4}, {"VB", 4}}),
            "b_alignment: VB must divide 4098, the elements of a row of B as it is stored");
  EXPECT_EQ(rejection(odd, h200(), "gemv", {}), "few_rows: gemv needs m <= 8, m is 4096");
  EXPECT_EQ(rejection(gemm_problem(1, 64, 64), h200(), "tiled", {}),
            "many_rows: tiles need m >= 5, m is 1; gemv serves fewer");
  EXPECT_EQ(rejection(gemm_problem(20, 4096, 64), h200(), "tiled", {{"BM", 64}}),
            "tile_m: BM of more than 32 is mostly idle: m is 20");
  EXPECT_EQ(rejection(odd, h200(), "tiled", {{"BM", 256}, {"BN", 256}}),
            "workgroup_threads: BM/TM x BN/TN must be 32 to 1024 threads");
  EXPECT_EQ(rejection(gemm_problem(4096, 4096, 64), h200(), "split_k",
                      {{"BM", 64}, {"BN", 64}, {"LX", 4}, {"SPLIT", 32}}),
            "slices: SPLIT x BK must not exceed k, 64");
  EXPECT_EQ(
      rejection(
          odd, h200(), "tiled",
          {{"BM", 128}, {"BN", 128}, {"TM", 8}, {"TN", 8}, {"LX", 8}, {"BK", 32}, {"STAGES", 2}}),
      "shared_memory: both tiles, STAGES x BK x (BM + BN + 2 PAD) x 4 bytes, must fit 48 "
      "KiB");
  DeviceInfo no_f16 = h200();
  no_f16.f16_storage = false;
  EXPECT_EQ(rejection(gemm_problem(64, 64, 64, DType::f16, DType::f16), no_f16, "tiled", {}),
            "storage: the device can't load and store f16");
  EXPECT_THROW(
      built_in("gemm").default_config(gemm_problem(64, 64, 64, DType::f16, DType::f16), no_f16),
      Error);
}

// Tiles of powers of two would need 96 workgroups of 128 x 128, or two rounds of 64 x 128.
TEST(GemmSpace, DefaultHasATileForEachComputeUnit) {
  DeviceInfo device = architecture_info("sm_90").value();
  device.compute_units = 132;
  const auto workgroups = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
    const Config c = built_in("gemm").default_config(
        gemm_problem(m, n, k, DType::f16, DType::f16, {{"layout", "nt"}}), device);
    EXPECT_EQ(c["INSTR"], 64) << c.text();
    return ceil_div(m, c["BM"]) * ceil_div(n, c["BN"]) * c["SPLIT"];
  };
  EXPECT_EQ(workgroups(300, 4096, 1024), 130);   // 64 x 160
  EXPECT_EQ(workgroups(48, 11008, 4096), 116);   // 48 x 192 in two slices
  EXPECT_EQ(workgroups(4000, 4000, 4000), 378);  // 192 x 224
  EXPECT_EQ(workgroups(512, 4096, 11008), 128);  // 128 x 256 in two slices
}

// What a configuration of powers of two becomes by changing one value.
TEST(GemmSpace, ConstraintsOfWarpgroupsAreTold) {
  const DeviceInfo device = architecture_info("sm_90").value();
  const Problem problem = gemm_problem(300, 4096, 1024, DType::f16, DType::f16);
  const auto changed = [&](std::vector<std::pair<std::string, int>> changes) {
    std::vector<std::pair<std::string, int>> all{
        {"BM", 64}, {"BN", 128}, {"WM", 64},    {"WN", 128},  {"BK", 64},      {"INSTR", 64},
        {"VA", 8},  {"VB", 8},   {"STAGES", 3}, {"ASYNC", 1}, {"FRAGMENTS", 1}};
    for (const auto& [name, value] : changes) {
      std::erase_if(all, [&](const auto& one) { return one.first == name; });
      all.emplace_back(name, value);
    }
    const std::string text = rejection(problem, device, "matrix", all);
    return text.substr(0, text.find(':'));
  };
  EXPECT_EQ(changed({}), "valid");
  EXPECT_EQ(changed({{"BN", 80}}), "valid");  // a part of the whole tile
  EXPECT_EQ(changed({{"BN", 144}}), "columns_of_waves");
  EXPECT_EQ(changed({{"BN", 144}, {"WN", 192}}), "valid");
  EXPECT_EQ(changed({{"BN", 64}}), "columns_of_waves");  // WN=64 is that kernel
  EXPECT_EQ(changed({{"BM", 40}}), "valid");
  EXPECT_EQ(changed({{"BM", 40}, {"BN", 80}}), "warpgroup_tiles");
  EXPECT_EQ(changed({{"WALK", 1}}), "valid");
  EXPECT_EQ(changed({{"SPLIT", 3}, {"FOLD", 2}}), "valid");
  EXPECT_EQ(changed({{"SPLIT", 9}, {"FOLD", 2}}), "enough_workgroups");
  const std::vector<std::pair<std::string, int>> waves{
      {"INSTR", 16}, {"WM", 32}, {"WN", 32}, {"STAGES", 3}};
  const auto of_waves = [&](const char* name, int value) {
    auto all = waves;
    all.emplace_back(name, value);
    return changed(all);
  };
  EXPECT_EQ(of_waves("SPLIT", 2), "valid");
  EXPECT_EQ(of_waves("SPLIT", 3), "wave_slices");
  EXPECT_EQ(of_waves("BN", 96), "wave_tiles");
  EXPECT_EQ(of_waves("WALK", 1), "wave_walk");
  const std::string walk = rejection(gemm_problem(100, 4096, 1024, DType::f16, DType::f16),
                                     architecture_info("gfx942").value(), "matrix",
                                     {{"VA", 8}, {"VB", 8}, {"BK", 32}, {"WALK", 1}});
  EXPECT_EQ(walk.substr(0, walk.find(':')), "walk") << walk;
}

TEST(GemmSpace, PlanRefusesAnInvalidConfiguration) {
  const Problem problem = gemm_problem(64, 64, 64);
  Config config = built_in("gemm").default_config(problem, h200());
  config.values.front().second = 12345;
  const auto plan = built_in("gemm").plan(problem, h200(), config);
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.failure().status, Status::constraints);
}

TEST(GemmStandIn, KeepsTheKernelsOfEveryConfiguration) {
  std::mt19937_64 random(2);
  const Operation& gemm = built_in("gemm");
  for (const DeviceInfo& device : devices()) {
    for (const Problem& problem : problems(device)) {
      const Problem smaller = gemm.stand_in(problem, 0.01);
      for (const char* d : {"m", "n", "k"}) {
        EXPECT_LE(smaller.dim(d), problem.dim(d));
        EXPECT_EQ(smaller.dim(d) % 256, problem.dim(d) % 256);
      }
      const Space space = gemm.space(problem, device);
      for (int i = 0; i < 2; ++i) {
        const Config config = space.sample(random);
        const auto plan = gemm.plan(problem, device, config);
        const auto cheap = gemm.plan(smaller, device, config);
        ASSERT_TRUE(plan && cheap) << smaller.key() << ": " << config.text();
        ASSERT_EQ(plan->sources.size(), cheap->sources.size());
        for (std::size_t s = 0; s < plan->sources.size(); ++s) {
          EXPECT_EQ(plan->sources[s].text, cheap->sources[s].text);
        }
      }
    }
  }
}

TEST(GemmStandIn, CostsAboutWhatItIsAskedFor) {
  const auto share = [](const Problem& problem, double fraction) {
    const Problem smaller = built_in("gemm").stand_in(problem, fraction);
    return built_in("gemm").work(smaller).flops / built_in("gemm").work(problem).flops;
  };
  EXPECT_EQ(share(gemm_problem(4096, 4096, 4096), 1.0), 1.0);
  EXPECT_NEAR(share(gemm_problem(4096, 4096, 4096), 0.1), 0.09, 0.02);
  EXPECT_NEAR(share(gemm_problem(8192, 8192, 8192), 0.01), 0.009, 0.002);
  EXPECT_EQ(built_in("gemm").stand_in(gemm_problem(4096, 4096, 8192), 0.1).dim("k"), 8192);
  EXPECT_EQ(share(gemm_problem(100, 100, 100), 0.01), 1.0);
}

TEST(GemmTemplate, ChecksProblems) {
  const auto good = [](const std::vector<std::pair<std::string, std::string>>& attributes) {
    const Problem p = gemm_problem(2, 2, 2, DType::f32, DType::f32, attributes);
    return static_cast<bool>(check_problem(built_in("gemm"), p));
  };
  for (const char* epilogue : {"bias", "residual", "silu", "gelu", "bias,residual", "bias,gelu",
                               "residual,silu", "bias,residual,gelu", "none"}) {
    EXPECT_TRUE(good({{"epilogue", epilogue}})) << epilogue;
  }
  for (const char* epilogue : {"", ",", "bias,", ",bias", "silu,gelu", "silu,bias", "residual,bias",
                               "bias,bias", "biassilu", "relu", "bias,none"}) {
    EXPECT_FALSE(good({{"epilogue", epilogue}})) << epilogue;
  }
  for (const char* factor : {"0", "1", "-1", "0.5", "2", "1e-05"}) {
    EXPECT_TRUE(good({{"alpha", factor}})) << factor;
  }
  for (const char* factor : {"", "x", "0.50", "+1", "nan", "inf", "1e99", "1 ", "1.0"}) {
    EXPECT_FALSE(good({{"beta", factor}})) << factor;
  }
  EXPECT_FALSE(good({{"layout", "nx"}}));
  EXPECT_FALSE(good({{"lda", "1"}}));
  EXPECT_TRUE(good({{"lda", "2"}, {"ldc", "3"}, {"b_offset", "1"}}));
  EXPECT_FALSE(good({{"colour", "red"}}));
  EXPECT_FALSE(check_problem(built_in("gemm"), gemm_problem(0, 2, 2)));
  EXPECT_FALSE(check_problem(built_in("gemm"), gemm_problem(2, 2, 2, DType::f32, DType::f16)));
  EXPECT_TRUE(check_problem(built_in("gemm"), gemm_problem(2, 2, 2, DType::bf16, DType::bf16)));
  EXPECT_FALSE(check_problem(built_in("gemm"), gemm_problem(2, 2, 2, DType::bf16, DType::f16)));
}

/// The arguments of a BLAS call are those of the transposed product, in the same memory.
TEST(GemmTemplate, ReadsColumnMajorProblems) {
  const auto made = [](std::vector<std::pair<std::string, std::string>> more) {
    std::vector<std::pair<std::string, std::string>> values{{"m", "8"}, {"n", "9"}, {"k", "10"}};
    values.insert(values.end(), more.begin(), more.end());
    const auto problem = make_problem(built_in("gemm"), {std::move(values), "", ""});
    return problem ? problem->key() : problem.failure().message;
  };
  EXPECT_EQ(made({{"order", "row"}}), "gemm dtype=f32 out=f32 m=8 n=9 k=10");
  EXPECT_EQ(
      made({{"order", "column"}, {"layout", "tn"}, {"lda", "12"}, {"ldb", "13"}, {"ldc", "14"}}),
      "gemm dtype=f32 out=f32 layout=nt lda=\"13\" ldb=\"12\" ldc=\"14\" m=9 n=8 k=10");
  EXPECT_EQ(made({{"order", "column"}, {"lda", "7"}}),
            "lda 7: must be at least the length of a row, 8");
  EXPECT_EQ(made({{"order", "diagonal"}}), "order diagonal: must be row or column");
  EXPECT_NE(made({{"order", "column"}, {"batch", "2"}, {"shared", "b"}}).find("B must differ"),
            std::string::npos);
}

TEST(GemmTemplate, OptionsHaveOneSpelling) {
  const auto key = [](const std::string& name, const std::string& value) {
    const auto made = make_problem(built_in("gemm"),
                                   {{{"m", "1"}, {"n", "1"}, {"k", "1"}, {name, value}}, "", ""});
    return made ? made->key() : made.failure().message;
  };
  const std::string plain = key("layout", "nn");
  for (const char* one : {"1", "1.0", "+1", "1e0"}) EXPECT_EQ(key("alpha", one), plain) << one;
  for (const char* zero : {"0", "-0", "0.0", ".0"}) EXPECT_EQ(key("beta", zero), plain) << zero;
  EXPECT_EQ(key("alpha", "1e3"), key("alpha", "1000"));
  EXPECT_EQ(key("epilogue", "silu,bias"), key("epilogue", "bias,silu"));
  for (const char* bad : {"", "x", "1x", "nan", "inf", "1e99"}) {
    EXPECT_NE(key("alpha", bad).find("a finite number"), std::string::npos) << bad;
  }
  for (const char* bad : {"", "bias,", "bias,bias", "silu,gelu", "relu", "none,bias"}) {
    EXPECT_NE(key("epilogue", bad).find("comma list"), std::string::npos) << bad;
  }
}

TEST(GemmTemplate, CountsWorkAndOperands) {
  const Problem problem =
      gemm_problem(2, 3, 5, DType::f16, DType::f32,
                   {{"layout", "tn"}, {"epilogue", "bias,residual"}, {"beta", "2"}});
  const auto tensors = built_in("gemm").tensors(problem);
  ASSERT_EQ(tensors.size(), 5U);
  EXPECT_EQ(tensors[0].rows, 5);
  EXPECT_EQ(tensors[0].cols, 2);
  EXPECT_EQ(tensors[4].name, "C");
  EXPECT_EQ(tensors[4].role, Role::input_output);
  EXPECT_EQ(built_in("gemm").work(problem).flops, 60);
  EXPECT_EQ(built_in("gemm").work(problem).bytes, 20 + 30 + 12 + 24 + 48);
  EXPECT_EQ(built_in("gemm").key().size(), 32U);
}

}  // namespace
}  // namespace greta::test::gemm_space_test
