// What spaces and defaults assume of registers, against compilers: constraints reject only what
// spills, and estimates order gemm's matrix tiles as compilers do. Each compilation prints a line
// of results/2026-11-22-register-estimates.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "kernels/model/problem_rules.hpp"
#include "kernels/templates/gemm/matrix_kernel.hpp"
#include "runtime/device/hardware/architectures.hpp"
#include "tests/kernels/compiled/compilers.hpp"
#include "tests/kernels/compiled/samples.hpp"
#include "tests/layers.hpp"

namespace greta::test::registers_test {
namespace {

class Registers : public ::testing::TestWithParam<std::string> {
 protected:
  /// Figures of a configuration's first kernel, which may be one that constraints reject.
  KernelStatistics compile(const Operation& entry, const Problem& wanted, const Config& config) {
    const auto plan = entry.variant(config.variant).plan(entry.shape(wanted), device_, config);
    const KernelSource& source = plan.sources.at(0);
    const auto compiled = compiler_->compile(source, device_.architecture);
    if (!compiled) throw Error(compiled.failure());
    return test::read_statistics(device_, source, compiled->binary);
  }

  void print(const std::string& rest, const KernelStatistics& s, const Config& config,
             const Problem& wanted) const {
    fmt::print("CSV,{},{},{},{},{},{},{}\n", GetParam(), rest, s.registers, s.spilled_registers,
               s.scratch_bytes, config.text(), wanted.key());
  }

  /// `taken`: by the number of the sample.
  void check_rejected(int each, const std::function<bool(int)>& taken) {
    int number = 0, compiled = 0;
    test::for_each_rejected(
        device_, "registers", each,
        [&](const Operation& entry, const Problem& wanted, const Config& config) {
          if (!taken(number++)) return;
          SCOPED_TRACE(wanted.key() + " | " + config.text());
          ++compiled;
          try {
            const KernelStatistics statistics = compile(entry, wanted, config);
            print("rejected,,", statistics, config, wanted);
            EXPECT_TRUE(statistics.spills()) << statistics.registers << " registers";
          } catch (const Error& error) {
            // A warpgroup instruction whose sums a thread has no registers for.
            EXPECT_NE(std::string(error.what()).find("ptxas fatal"), std::string::npos)
                << error.what();
          }
        });
    EXPECT_GT(compiled, 0);
  }

  /// Every tile that gemm's matrix has as a default, each in one slice; `most` of a layout.
  void check_tiles(const std::vector<const char*>& layouts, std::size_t most);

  const DeviceInfo device_ = *architecture_info(GetParam());

 private:
  const std::unique_ptr<hip::Compiler> compiler_ = test::compiler_for(device_);
};

// Of compiled registers: estimates lie between so many below and above them.
constexpr int most_below = 12, most_above = 36;

void Registers::check_tiles(const std::vector<const char*>& layouts, std::size_t most) {
  const Operation& entry = built_in("gemm");
  for (const char* layout : layouts) {
    Problem wanted;
    wanted.op = entry.name;
    wanted.dtype = wanted.out_dtype = DType::f16;
    wanted.dims = {{"m", 4096}, {"n", 4096}, {"k", 4096}};
    if (std::string(layout) != "nn") wanted.attributes = {{"layout", layout}};
    ASSERT_TRUE(check_problem(entry, wanted));
    const auto shape = entry.shape(wanted);
    const gemm::MatrixKernel kernel(shape.as<gemm::Shape>(), device_);
    auto configs = entry.variant("matrix").defaults(shape, device_);
    std::erase_if(configs, [&](const Config& c) {
      return c["SPLIT"] != 1 || kernel.by_warpgroups(c) || !entry.space(wanted, device_).valid(c);
    });
    std::stable_sort(configs.begin(), configs.end(), [&](const Config& x, const Config& y) {
      return kernel.registers(x) - kernel.register_limit(x) >
             kernel.registers(y) - kernel.register_limit(y);
    });
    configs.resize(std::min(configs.size(), most));
    for (const Config& config : configs) {
      SCOPED_TRACE(wanted.key() + " | " + config.text());
      const KernelStatistics statistics = compile(entry, wanted, config);
      const std::int64_t estimate = kernel.registers(config), limit = kernel.register_limit(config);
      print(fmt::format("tile,{},{}", limit, estimate), statistics, config, wanted);
      if (estimate <= limit) {
        EXPECT_FALSE(statistics.spills());
      }
      if (statistics.spills()) continue;  // then `registers` says nothing
      EXPECT_GE(estimate + most_below, statistics.registers);
      EXPECT_LE(estimate, statistics.registers + most_above);
    }
  }
}

const std::vector<std::string> amd{"gfx90a",  "gfx942",  "gfx950",  "gfx1030", "gfx1103",
                                   "gfx1151", "gfx1201", "gfx1100", "gfx1200"};

// A space must hold what a compiler can do. Every fifth variant that rejects some.
TEST_P(Registers, SomeThatAreRejectedSpill) {
  check_rejected(1, [](int number) { return number % 5 == 0; });
}

/// scripts/test.sh --all.
TEST_P(Registers, MostThatAreRejectedSpill) {
  check_rejected(2, [](int) { return true; });
}

/// ctest -L long.
TEST_P(Registers, ManyThatAreRejectedSpill) {
  check_rejected(20, [](int) { return true; });
}

class RegistersOfTiles : public Registers {};

// The largest tile comes first where it fits: gfx950's had spilled nothing, and was rejected.
TEST_P(RegistersOfTiles, SomeAreEstimated) {
  check_tiles({"nt"}, 2);
}

/// scripts/test.sh --all.
TEST_P(RegistersOfTiles, MostAreEstimated) {
  check_tiles({"nn", "nt", "tn"}, 4);
}

/// ctest -L long.
TEST_P(RegistersOfTiles, ManyAreEstimated) {
  check_tiles({"nn", "nt", "tn"}, 100);
}

constexpr auto name_of = [](const auto& instance) { return instance.param; };

INSTANTIATE_TEST_SUITE_P(Amd, Registers, ::testing::ValuesIn(amd), name_of);
INSTANTIATE_TEST_SUITE_P(Amd, RegistersOfTiles,
                         ::testing::Values("gfx90a", "gfx942", "gfx950", "gfx1103", "gfx1201"),
                         name_of);

#ifdef GRETA_TEST_NVRTC
INSTANTIATE_TEST_SUITE_P(Nvidia, Registers, ::testing::Values("sm_80", "sm_90"), name_of);
INSTANTIATE_TEST_SUITE_P(Nvidia, RegistersOfTiles, ::testing::Values("sm_80"), name_of);
#endif

}  // namespace
}  // namespace greta::test::registers_test
