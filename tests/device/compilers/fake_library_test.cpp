// Protects: a kernel fails cleanly when the library that compiles it misbehaves. The real helper
// program loads fake libraries in place of NVRTC and hiprtc.

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>

#include "runtime/device/hip/compiler.hpp"
#include "tests/layers.hpp"

namespace greta::test::fake_library_test {

using namespace device::hip;
namespace {

using namespace std::chrono_literals;

KernelSource source(const std::string& wish) {
  KernelSource kernel;
  kernel.name = "test/kernel";
  kernel.language = Language::hip;
  kernel.text = wish + "\n";
  return kernel;
}

std::string text(const CodeObject& object) {
  return {reinterpret_cast<const char*>(object.binary.data()), object.binary.size()};
}

class FakeLibrary : public ::testing::Test {
 protected:
  void TearDown() override { setenv("PATH", path_.c_str(), 1); }

  /// Makes the helper, which inherits this process's environment, find the libraries of a folder.
  static void use(const std::string& folder) {
    setenv("LD_LIBRARY_PATH", (std::string(GRETA_TEST_FAKES "/") + folder).c_str(), 1);
  }
  static std::unique_ptr<Compiler> nvidia(Deadline deadline = 60s) {
    use("good");
    OpenOptions options;
    options.compile_deadline = deadline;
    return std::move(create_nvidia_compiler(options).value());
  }
  static Failure failure(Compiler& compiler, const std::string& wish) {
    const auto compiled = compiler.compile(source(wish), "sm_90");
    return compiled ? Failure{Status::invalid_argument, "it compiled", {}} : compiled.failure();
  }

 private:
  const std::string path_ = std::getenv("PATH");
};

TEST_F(FakeLibrary, OptionsGoInCodeComesOutAndNothingElse) {
  const auto compiler = nvidia();
  EXPECT_EQ(compiler->version(), "NVRTC 13.1, options 1");
  EXPECT_EQ(compiler->used_for("sm_90").value(), "NVRTC 13.1");
  auto kernel = source("please warn");
  kernel.options = {"-DX=1 2", "-lineinfo"};
  const auto compiled = compiler->compile(kernel, "sm_90").value();
  EXPECT_EQ(text(compiled),
            "\x7f"
            "ELF --std=c++17 --gpu-architecture=sm_90 -DX=1 2 -lineinfo");
  EXPECT_NE(compiled.log.find("kernel(3): warning: beware\n"), std::string::npos);
}

TEST_F(FakeLibrary, RefusedSourcesKeepTheWholeLog) {
  const auto why = failure(*nvidia(), "please refuse");
  EXPECT_EQ(why.status, Status::compile);
  EXPECT_EQ(why.message, "test/kernel: kernel(7): error: as you wish");
  EXPECT_NE(why.log.find("a note\n"), std::string::npos);
  EXPECT_NE(why.log.find("and more\n"), std::string::npos);
  EXPECT_NE(why.log.find("FAKE_ERROR_COMPILATION"), std::string::npos);
}

TEST_F(FakeLibrary, AnAbortIsOneCandidatesFailure) {
  const auto compiler = nvidia();
  const auto why = failure(*compiler, "please abort");
  EXPECT_EQ(why.status, Status::compile);
  EXPECT_EQ(why.message.find("test/kernel: the compiler aborted: NVRTC 13.1 "), 0U) << why.message;
  EXPECT_TRUE(compiler->compile(source("please work"), "sm_90"));
}

TEST_F(FakeLibrary, ACompilerThatHangsIsStopped) {
  const auto why = failure(*nvidia(5s), "please hang");
  EXPECT_EQ(why.status, Status::timeout);
  EXPECT_EQ(why.message, "test/kernel: NVRTC 13.1 was killed after 5 s");
}

TEST_F(FakeLibrary, NoCodeIsAFailure) {
  const auto why = failure(*nvidia(), "please give nothing");
  EXPECT_EQ(why.status, Status::compile);
  EXPECT_EQ(why.message, "test/kernel: NVRTC 13.1 gave 0 bytes that are not a code object");
}

TEST_F(FakeLibrary, AnUnknownArchitectureIsNamed) {
  const auto compiled = nvidia()->compile(source(""), "sm_1");
  ASSERT_FALSE(compiled);
  EXPECT_EQ(compiled.failure().status, Status::unavailable);
  EXPECT_EQ(compiled.failure().message,
            "nothing compiles for sm_1: NVRTC 13.1: error: invalid architecture");
}

TEST_F(FakeLibrary, MissingFunctionsAndOldVersionsAreNamed) {
  use("partial");
  const auto partial = create_nvidia_compiler({});
  ASSERT_FALSE(partial);
  EXPECT_EQ(partial.failure().status, Status::unavailable);
  EXPECT_EQ(partial.failure().message, "libnvrtc.so.13 has no function nvrtcGetProgramLog");
  use("old");
  const auto old = create_nvidia_compiler({});
  ASSERT_FALSE(old);
  EXPECT_EQ(old.failure().message, "libnvrtc.so.13 is NVRTC 11.1, and 12 or newer is needed");
}

TEST_F(FakeLibrary, AnUnfitHiprtcLeavesClangToAmd) {
  use("partial");
  const auto compiler = create_amd_compiler({}).value()->used_for("gfx90a");
  ASSERT_TRUE(compiler);
  EXPECT_EQ(compiler->find("clang "), 0U) << *compiler;
}

TEST_F(FakeLibrary, WithoutAnyCompilerForAmdTheReasonsAreNamed) {
  use("partial");
  setenv("PATH", "/nowhere", 1);
  const auto compiler = create_amd_compiler({});
  ASSERT_FALSE(compiler);
  EXPECT_EQ(compiler.failure().status, Status::unavailable);
  EXPECT_EQ(compiler.failure().message,
            "libhiprtc.so.7 has no function hiprtcGetProgramLog; and there is no clang 15 or newer "
            "on PATH");
}

TEST_F(FakeLibrary, HiprtcComesBeforeClangWhereItKnowsTheArchitecture) {
  use("good");
  const auto compiler = create_amd_compiler({}).value();
  EXPECT_EQ(compiler->version().find("hiprtc 9.1, clang "), 0U) << compiler->version();
  EXPECT_EQ(compiler->used_for("gfx90a").value(), "hiprtc 9.1");
  EXPECT_EQ(text(compiler->compile(source(""), "gfx90a").value()),
            "\x7f"
            "ELF -O3 -std=c++17 --offload-arch=gfx90a");
  EXPECT_EQ(compiler->used_for("gfx1030").value().find("clang "), 0U);
}

TEST_F(FakeLibrary, AMissingHelperIsOneClearLine) {
  OpenOptions options;
  options.compile_helper = "/nowhere/helper";
  const auto compiler = create_nvidia_compiler(options);
  ASSERT_FALSE(compiler);
  EXPECT_EQ(compiler.failure().status, Status::unavailable);
  EXPECT_EQ(compiler.failure().message, "can't start /nowhere/helper: No such file or directory");
}

}  // namespace
}  // namespace greta::test::fake_library_test
