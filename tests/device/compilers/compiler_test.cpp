// Protects: compiling with the real compilers, hiprtc in its helper process and clang.

#include "runtime/device/hip/compiler.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "runtime/device/compile/listing.hpp"
#include "runtime/device/hip/code_object.hpp"
#include "runtime/device/hip/disassembler.hpp"
#include "tests/device/compilers/targets.hpp"
#include "tests/layers.hpp"
#include "tests/temporary_folder.hpp"

namespace greta::test::compiler_test {

using namespace device::hip;
namespace {

using test::amd_compiler;
using test::clang_compiler;
using test::hip_source;

OpenOptions with_compiler(const std::string& program) {
  OpenOptions options;
  options.compiler = program;
  return options;
}

const std::string store_one =
    "extern \"C\" __global__ void kernel(float* p) { p[__builtin_amdgcn_workitem_id_x()] = 1; }\n";

TEST(AmdCompiler, HiprtcIsUsedWhereItKnowsTheArchitecture) {
  for (const auto& architecture : test::hiprtc_architectures()) {
    EXPECT_EQ(amd_compiler().used_for(architecture).value().find("hiprtc 5."), 0U);
    const auto compiled = amd_compiler().compile(hip_source(store_one), architecture);
    ASSERT_TRUE(compiled) << compiled.failure().log;
    const auto statistics = read_statistics(compiled->binary, "kernel").value();
    EXPECT_GE(statistics.registers, 2U);
    EXPECT_LE(statistics.registers, 8U);
    EXPECT_GT(statistics.code_bytes, 16U);
  }
}

/// hiprtc aborts for architectures that are newer than itself: Debian's for all of these, Ubuntu's
/// for the last ones.
TEST(AmdCompiler, ClangIsUsedWhereHiprtcAborts) {
  ASSERT_FALSE(test::clang_architectures().empty());
  for (const auto& architecture : test::clang_architectures()) {
    const std::string used = amd_compiler().used_for(architecture).value();
    const bool youngest = architecture == "gfx950" || architecture == "gfx1201";
    EXPECT_TRUE(used.starts_with("clang ") || (!youngest && used.starts_with("hiprtc ")))
        << architecture << ": " << used;
    const auto compiled = amd_compiler().compile(hip_source(store_one), architecture);
    ASSERT_TRUE(compiled) << compiled.failure().log;
    EXPECT_TRUE(read_statistics(compiled->binary, "kernel"));
  }
  for (const char* name : {"hiprtc ", "clang "}) {
    EXPECT_NE(amd_compiler().version().find(name), std::string::npos);
  }
}

TEST(AmdCompiler, ManyThreadsMayMeetANewArchitectureAtOnce) {
  const auto compiler = create_amd_compiler({}).value();
  std::atomic<int> compiled{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&, i] {
      const auto& architecture = i % 2 == 0 ? "gfx90a" : test::clang_architectures().front();
      if (compiler->compile(hip_source(store_one), architecture)) ++compiled;
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(compiled, 6);
}

TEST(AmdCompiler, AnArchitectureThatNobodyKnowsIsOneLineThatNamesItAndTheCompilers) {
  const auto compiled = amd_compiler().compile(hip_source(store_one), "gfx9999");
  ASSERT_FALSE(compiled);
  EXPECT_EQ(compiled.failure().status, Status::unavailable);
  const auto& message = compiled.failure().message;
  EXPECT_EQ(message.find("nothing compiles for gfx9999: hiprtc "), 0U) << message;
  EXPECT_NE(message.find("; clang "), std::string::npos) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
}

TEST(AmdCompiler, ErrorsNameTheKernelAndTheLine) {
  const auto wrong = hip_source("// fine\nextern \"C\" __global__ void kernel() { oops; }\n");
  for (const std::string& architecture :
       {test::hiprtc_architectures().front(), test::clang_architectures().front()}) {
    const auto compiled = amd_compiler().compile(wrong, architecture);
    ASSERT_FALSE(compiled);
    EXPECT_EQ(compiled.failure().status, Status::compile);
    EXPECT_EQ(compiled.failure().message,
              "test/kernel:2:39: error: use of undeclared identifier 'oops'");
    EXPECT_NE(compiled.failure().log.find("1 error generated"), std::string::npos);
  }
}

TEST(AmdCompiler, OptionsOfTheKernelArePassedOn) {
  auto source = hip_source("extern \"C\" __global__ void kernel() { ONE }\n");
  source.options = {"-DONE=;"};
  EXPECT_TRUE(amd_compiler().compile(source, "gfx90a"));
  EXPECT_TRUE(clang_compiler().compile(source, "gfx90a"));
  source.options = {"-DTWO=;"};
  EXPECT_FALSE(amd_compiler().compile(source, "gfx90a"));
  EXPECT_FALSE(clang_compiler().compile(source, "gfx90a"));
}

TEST(AmdCompiler, OtherLanguagesAreRefused) {
  auto source = hip_source(store_one);
  source.language = Language::glsl;
  const auto compiled = amd_compiler().compile(source, "gfx90a");
  ASSERT_FALSE(compiled);
  EXPECT_EQ(compiled.failure().message, "test/kernel: the language glsl is not hip");
}

TEST(ClangCompiler, AGivenCompilerIsUsedAlone) {
  const auto compiler = create_amd_compiler(with_compiler(test::clang_name())).value();
  EXPECT_EQ(compiler->version().find("clang "), 0U);
  EXPECT_EQ(compiler->version().find(", clang"), std::string::npos);
  EXPECT_TRUE(compiler->compile(hip_source(store_one), "gfx90a"));
}

TEST(ClangCompiler, WhatIsNoClangIsRefused) {
  const auto why = [](const std::string& program) {
    const auto compiler = create_clang_compiler(with_compiler(program));
    return compiler ? "made" : compiler.failure().message;
  };
  EXPECT_EQ(why("/bin/echo"), "/bin/echo is not clang");
  EXPECT_EQ(why("/bin/false"), "/bin/false exited with 1");
  test::TemporaryFolder folder;
  const auto old = folder / "clang";
  std::ofstream(old) << "#!/bin/sh\necho Debian clang version 14.0.6\n";
  std::filesystem::permissions(old, std::filesystem::perms(0755));
  EXPECT_EQ(why(old), old.string() + " is clang 14.0.6, and 15 or newer is needed");
  EXPECT_EQ(why("/nowhere/clang"), "can't start /nowhere/clang: No such file or directory");
}

TEST(Disassembler, ListsInstructionsOfBothCompilers) {
  for (const std::string& architecture :
       {test::hiprtc_architectures().back(), test::clang_architectures().back()}) {
    const auto compiled = amd_compiler().compile(hip_source(store_one), architecture).value();
    const auto listing = disassemble(compiled.binary, {});
    ASSERT_TRUE(listing) << listing.failure().log;
    EXPECT_NE(listing->find("<kernel>:"), std::string::npos);
    EXPECT_NE(listing->find("s_endpgm"), std::string::npos);
    EXPECT_EQ(listing->find("s_code_end"), std::string::npos);
    EXPECT_EQ(count_matrix_instructions(*listing), 0U);
  }
}

TEST(Disassembler, FindsMatrixInstructions) {
  const auto source = hip_source(
      "typedef float f32x4 __attribute__((ext_vector_type(4)));\n"
      "extern \"C\" __global__ void kernel(const float* p, f32x4* q) {\n"
      "  const unsigned t = __builtin_amdgcn_workitem_id_x();\n"
      "  q[t] = __builtin_amdgcn_mfma_f32_16x16x4f32(p[t], p[t + 64], q[t], 0, 0, 0);\n"
      "}\n");
  const auto compiled = amd_compiler().compile(source, "gfx90a");
  ASSERT_TRUE(compiled) << compiled.failure().log;
  EXPECT_EQ(count_matrix_instructions(disassemble(compiled->binary, {}).value()), 1U);
}

TEST(Disassembler, GarbageIsAFailureWithALog) {
  const std::vector<std::byte> garbage(100, std::byte{7});
  const auto listing = disassemble(garbage, {});
  ASSERT_FALSE(listing);
  EXPECT_EQ(listing.failure().status, Status::unavailable);
  EXPECT_NE(listing.failure().log.find("llvm-objdump"), std::string::npos);
}

}  // namespace
}  // namespace greta::test::compiler_test
