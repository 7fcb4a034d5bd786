// Protects: kernels as people write them become operations: templates, headers of their own,
// constant memory, element types that no kernel of GRETA has, and options of compilers.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "kernels/described/compiler_options.hpp"
#include "kernels/described/glsl_text.hpp"
#include "kernels/described/kernel_file.hpp"
#include "kernels/described/source_text.hpp"
#include "kernels/sampling/small_problems.hpp"
#include "runtime/device/hardware/architectures.hpp"
#include "tests/kernels/plan_runner.hpp"
#include "tests/layers.hpp"
#include "tests/temporary_folder.hpp"

namespace greta::test::described_features_test {
namespace {

const std::filesystem::path data = std::filesystem::path(GRETA_TEST_DATA) / "kernels";

Problem scaled(std::int64_t n) {
  Problem problem;
  problem.op = "scale";
  problem.dtype = DType::u8;
  problem.out_dtype = DType::f64;
  problem.dims = {{"n", n}};
  return problem;
}

TEST(DescribedFeatures, TemplatesHeadersConstantsAndTypes) {
  const auto operation = load_described(data / "scale.jsonc", reference_devices());
  ASSERT_TRUE(operation) << operation.failure().message;
  for (const char* id : {"hip-host:0", "hip-host:1"}) {
    Device& on = device(id);
    for (const char* config :
         {"described BLOCK=64 ITEMS=1 UNROLL=0", "described BLOCK=256 ITEMS=3 UNROLL=3"}) {
      const Problem problem = scaled(1003);
      const auto parsed = operation->space(problem, on.info()).parse(config);
      expect_right(*operation, problem, operation->plan(problem, on.info(), parsed.value()), config,
                   3, on);
    }
  }
}

/// The copies of a library on several threads have the same constants, and each launch has its own.
TEST(DescribedFeatures, ConstantsAreWrittenBeforeEachLaunch) {
  const auto operation = load_described(data / "scale.jsonc", reference_devices());
  ASSERT_TRUE(operation) << operation.failure().message;
  Device& on = device("hip-host:0");
  const Problem problem = scaled(5000);
  const auto plan =
      operation->plan(problem, on.info(), operation->default_config(problem, on.info()));
  ASSERT_TRUE(plan) << plan.failure().message;
  ASSERT_EQ(plan->sources[0].constants, std::vector<std::string>{"factors"});
  for (const std::uint64_t seed : {1, 2, 3}) {
    const auto inputs = operation->inputs(problem, seed);
    const auto run = run_plan(on, *plan, operation->tensors(problem), inputs, 2);
    ASSERT_TRUE(run) << run.failure().message << run.failure().log;
    for (std::size_t i = 0; i < 5000; ++i) {
      ASSERT_EQ(run->outputs[0].at(i), inputs[0].at(i) * inputs[1].at(i % 4) + 0.125) << i;
    }
  }
}

/// Kernels that are right only where an extent is even, or all extents are, must not pass.
TEST(DescribedFeatures, TwoSmallProblemsAreOdd) {
  const DeviceInfo gpu = architecture_info("gfx942").value();
  for (const auto& [file, key] :
       {std::pair{"vector_add.jsonc", "vector_add dtype=f32 out=f32 n=4096"},
        std::pair{"row_sums.jsonc", "row_sums dtype=bf16 out=f32 rows=96 cols=128 factor=16"}}) {
    SCOPED_TRACE(file);
    const auto operation = load_described(data / file, reference_devices(), no_reference()).value();
    const Problem problem = Problem::parse(key).value();
    const Config config = operation.default_config(problem, gpu);
    const LaunchPlan plan = operation.plan(problem, gpu, config).value();
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      const auto small = SmallProblems(operation, problem, gpu, seed, config, plan)
                             .with_kernels_of(config, plan, operation.checks.small);
      ASSERT_EQ(small.size(), 3U);
      for (std::size_t i = 0; i < 2; ++i) {
        for (const auto& [name, extent] : small[i].problem.dims) {
          EXPECT_EQ(extent % 2, 1) << small[i].problem.key();
        }
      }
      EXPECT_NE(small[0].problem, small[1].problem);
    }
  }
}

TEST(DescribedFeatures, AReferenceRunsOnTheDeviceToo) {
  const auto operation = load_described(data / "scale.jsonc", reference_devices());
  ASSERT_TRUE(operation) << operation.failure().message;
  ASSERT_TRUE(operation->reference_on);
  Device& on = device("hip-host:2");
  const Problem problem = scaled(100);
  const auto inputs = operation->inputs(problem, 5);
  const auto there = operation->reference_on(on, problem, inputs);
  ASSERT_TRUE(there) << there.failure().message;
  const auto here = operation->reference(problem, inputs, 5);
  const auto expected = here->expected().value(), on_device = (*there)->expected().value();
  for (std::size_t i = 0; i < 100; ++i) {
    EXPECT_EQ(expected[0][i].value, on_device[0][i].value);
    EXPECT_EQ(expected[0][i].value, inputs[0].at(i) * inputs[1].at(i % 4) + 0.125);
  }
}

class DescribedFolder : public ::testing::Test {
 protected:
  DescribedFolder() {
    std::filesystem::copy(data, folder_.path(), std::filesystem::copy_options::recursive);
  }
  void replace(const std::string& name, const std::string& from, const std::string& to) const {
    std::ifstream file(folder_ / name);
    std::string text{std::istreambuf_iterator<char>(file), {}};
    ASSERT_NE(text.find(from), std::string::npos) << from;
    text.replace(text.find(from), from.size(), to);
    std::ofstream(folder_ / name) << text;
  }
  std::string message() const {
    const auto loaded = load_described(folder_ / "scale.jsonc", reference_devices());
    return loaded ? loaded->key() : loaded.failure().message.substr((folder_ / "").string().size());
  }
  /// The failure to compile or to run.
  Failure run_failure() const {
    const auto operation = load_described(folder_ / "scale.jsonc", reference_devices());
    if (!operation) return operation.failure();
    Device& on = device("hip-host:0");
    const Problem problem = scaled(100);
    const auto plan =
        operation->plan(problem, on.info(), operation->default_config(problem, on.info()));
    if (!plan) return plan.failure();
    const auto run =
        run_plan(on, *plan, operation->tensors(problem), operation->inputs(problem, 1));
    return run ? Failure{Status::invalid_argument, "it ran", {}} : run.failure();
  }

  TemporaryFolder folder_;
};

/// What was measured with another header must be measured again.
TEST_F(DescribedFolder, HeadersArePartOfTheKey) {
  const std::string before = message();
  replace("include/rounding.h", "static_cast<T>(value)", "static_cast<T>(value + 0)");
  EXPECT_NE(message(), before);
}

TEST_F(DescribedFolder, LaunchesAndWordsArePartOfTheKey) {
  std::vector<std::string> keys{message()};
  replace("scale.jsonc", "\"ceil_div(n, BLOCK * ITEMS)\"", "\"ceil_div(n, BLOCK * ITEMS) + 1\"");
  keys.push_back(message());
  replace("scale.jsonc", "\"value\": 0.125", "\"value\": 0.25");
  keys.push_back(message());
  replace("scale.jsonc", "\"UNROLL\": [0, 3]", "\"UNROLL\": [0, 3], \"W\": [\"a\", \"b\"]");
  keys.push_back(message());
  replace("scale.jsonc", "[\"a\", \"b\"]", "[\"b\", \"a\"]");
  keys.push_back(message());
  std::sort(keys.begin(), keys.end());
  EXPECT_EQ(std::adjacent_find(keys.begin(), keys.end()), keys.end());
}

TEST_F(DescribedFolder, AReferenceHasTheMacrosOfAValidDefault) {
  replace("scale.jsonc", "\"BLOCK\": [64, 256]", "\"BLOCK\": [64, 2048]");
  replace("scale.jsonc", "\"operands\"",
          "\"constraints\": [{\"if\": \"BLOCK < 2000\", \"reason\": \"threads\"}], \"operands\"");
  const auto operation = load_described(folder_ / "scale.jsonc", reference_devices());
  ASSERT_TRUE(operation) << operation.failure().message;
  const Problem problem = scaled(100);
  EXPECT_NO_THROW(operation->reference(problem, operation->inputs(problem, 5), 5)->expected());
}

TEST_F(DescribedFolder, LinksOfHeadersDoNotLeadOut) {
  std::filesystem::remove(folder_ / "include/rounding.h");
  std::filesystem::create_symlink("/etc/hostname", folder_ / "include/rounding.h");
  EXPECT_EQ(message(), "scale.jsonc: include/rounding.h is not within the description's folder");
}

TEST_F(DescribedFolder, EntriesAndConstantsMustExist) {
  replace("scale.jsonc", "\"constant\": \"factors\"", "\"constant\": \"factor\"");
  EXPECT_NE(run_failure().message.find("there is no variable \"factor\" in constant memory"),
            std::string::npos)
      << run_failure().message;
  replace("scale.jsonc", "\"constant\": \"factor\"", "\"constant\": \"factors\"");
  replace("scale.jsonc", "shop::scale<double", "shop::scales<double");
  EXPECT_EQ(run_failure().status, Status::compile);
  EXPECT_NE(run_failure().log.find("scales"), std::string::npos) << run_failure().log;
}

TEST_F(DescribedFolder, AConstantHasRoomForItsOperand) {
  replace("scale.jsonc", "\"shape\": 4", "\"shape\": 5");
  EXPECT_EQ(run_failure().message, "40 bytes for a variable in constant memory of 32");
}

TEST_F(DescribedFolder, CompilersNameTheFileAndTheLine) {
  replace("include/rounding.h", "return static_cast<T>(value);", "return no_such(value);");
  EXPECT_NE(run_failure().log.find("include/rounding.h:5"), std::string::npos) << run_failure().log;
}

std::string expanded(const std::map<std::string, std::string>& files,
                     const std::vector<std::string>& folders = {}) {
  const described::FindSource find = [&](const std::string& name) {
    const auto file = files.find(name);
    return file == files.end() ? nullptr : &file->second;
  };
  const auto text = described::whole_text({"a.cu"}, folders, find, SourceLanguage::hip);
  return text ? *text : text.failure().message;
}

TEST(SourceText, IncludesOwnFilesOnly) {
  EXPECT_EQ(expanded({{"a.cu", "1\n #  include \"b.h\" // b\n2\n"}, {"b.h", "3"}}),
            "#line 1 \"a.cu\"\n1\n#line 1 \"b.h\"\n3\n#line 3 \"a.cu\"\n2\n");
  EXPECT_EQ(expanded({{"a.cu", "#include <math.h>\n#include \"../b.h\"\n"}, {"../b.h", "3"}}),
            "#line 1 \"a.cu\"\n#include <math.h>\n#include \"../b.h\"\n");
  EXPECT_EQ(
      expanded(
          {{"a.cu", "#include <x/b.h>\n"}, {"lib/x/b.h", "#include \"c.h\""}, {"lib/x/c.h", "4"}},
          {"lib"}),
      "#line 1 \"a.cu\"\n#line 1 \"lib/x/b.h\"\n#line 1 \"lib/x/c.h\"\n4\n"
      "#line 2 \"lib/x/b.h\"\n#line 2 \"a.cu\"\n");
  EXPECT_EQ(expanded({{"a.cu", "#include <cuda_runtime.h>\n5\n"}}), "#line 1 \"a.cu\"\n\n5\n");
  EXPECT_EQ(expanded({}), "the source a.cu is missing");
}

TEST(SourceText, EndsForFilesThatIncludeThemselves) {
  EXPECT_EQ(expanded({{"a.cu", "#include \"b.h\"\n"}, {"b.h", "#include \"a.cu\"\n6\n"}}),
            "#line 1 \"a.cu\"\n#line 1 \"b.h\"\n#line 2 \"b.h\"\n6\n#line 2 \"a.cu\"\n");
  std::map<std::string, std::string> files{{"a.cu", "#include \"0.h\"\n#include \"0.h\"\n"}};
  for (int i = 0; i < 40; ++i) {
    const std::string next = "#include \"" + std::to_string(i + 1) + ".h\"\n";
    files[std::to_string(i) + ".h"] = next + next;
  }
  EXPECT_EQ(expanded(files), "the sources have more than 16 MiB");
}

/// GLSL demands that the version comes first, and that each size of a workgroup is declared once.
TEST(GlslText, HasMacrosAfterTheVersionAndMainAtTheEnd) {
  Description d;
  d.language = d.reference.language = SourceLanguage::glsl;
  d.launches.resize(2);
  d.launches[0].entry = "first";
  d.launches[1].entry = "second";
  d.reference.launches.resize(1);
  d.reference.launches[0].entry = "main";
  const std::string source = "#line 1 \"a.comp\"\n// A\n# version 450\nvoid second() {}\n";
  const std::string text = described::glsl_text(d, "#define B 1\n", source, "second", {8, 4, 1});
  EXPECT_EQ(text,
            "# version 450\n#extension GL_GOOGLE_cpp_style_line_directive : require\n"
            "#define ENTRY_IS_first 0\n#define ENTRY_IS_main 0\n#define ENTRY_IS_second 1\n"
            "#define B 1\n#line 1 \"a.comp\"\n// A\n\nvoid second() {}\n"
            "#line 1 \"workgroup of the description\"\n"
            "layout(local_size_x = 8, local_size_y = 4, local_size_z = 1) in;\n"
            "#line 1 \"entry of the description\"\nvoid main() { second(); }\n");
  const std::string plain = described::glsl_text(d, "", "void main() {}\n", "main", {1, 1, 1});
  EXPECT_TRUE(plain.starts_with("#version 460\n")) << plain;
  EXPECT_TRUE(plain.ends_with("local_size_z = 1) in;\n")) << plain;
}

TEST(CompilerOptions, AreThoseOfTheDevicesCompiler) {
  const std::vector<std::string> options{
      "-DA=1",           "-UB", "-O3", "-std=c++11", "--std=c++20", "-use_fast_math", "-lineinfo",
      "-maxrregcount=64"};
  for (const auto& option : options) EXPECT_TRUE(described::is_allowed_option(option)) << option;
  DeviceInfo nvidia, amd, vulkan;
  nvidia.language = amd.language = Language::hip;
  EXPECT_EQ(described::options_for(vulkan, options), std::vector<std::string>{"-DA=1"});
  nvidia.vendor = "NVIDIA";
  nvidia.kind = amd.kind = DeviceKind::discrete_gpu;
  EXPECT_EQ(described::options_for(nvidia, options),
            (std::vector<std::string>{"-DA=1", "-UB", "--std=c++20", "--use_fast_math",
                                      "--generate-line-info", "--maxrregcount=64"}));
  EXPECT_EQ(described::options_for(amd, options),
            (std::vector<std::string>{"-DA=1", "-UB", "-O3", "-std=c++20", "-ffast-math"}));
  for (const char* option :
       {"-fplugin=x.so", "-o", "-I/", "-include", "@file", "-D", "-D=1", "-Ofast", "-std=gnu++17",
        "--maxrregcount=many", "-fmad=maybe", "-lineinfox", "-Wl,x", "-B.", "x.cu", ""}) {
    EXPECT_FALSE(described::is_allowed_option(option)) << option;
  }
}

}  // namespace
}  // namespace greta::test::described_features_test
