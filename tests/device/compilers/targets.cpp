#include "tests/device/compilers/targets.hpp"

#include <chrono>

#include "runtime/device/hip/compiler_program.hpp"
#include "tests/layers.hpp"

namespace greta::test {
namespace {

std::unique_ptr<hip::Compiler> made(Result<std::unique_ptr<hip::Compiler>> compiler) {
  return std::move(compiler.value());
}

}  // namespace

const std::vector<std::string>& hiprtc_architectures() {
  static const std::vector<std::string> names{"gfx90a", "gfx1030"};
  return names;
}

const std::vector<std::string>& clang_architectures() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> known;
    for (const char* name : {"gfx942", "gfx950", "gfx1100", "gfx1103", "gfx1151", "gfx1201"}) {
      if (clang_compiler().used_for(name)) known.emplace_back(name);
    }
    return known;
  }();
  return names;
}

hip::Compiler& amd_compiler() {
  static const auto compiler = made(hip::create_amd_compiler({}));
  return *compiler;
}

hip::Compiler& clang_compiler() {
  static const auto compiler = made(hip::create_clang_compiler({}));
  return *compiler;
}

const std::string& clang_name() {
  static const std::string name = hip::clangs_on_path(std::chrono::seconds(60)).at(0).command.at(0);
  return name;
}

KernelSource hip_source(const std::string& body) {
  KernelSource source;
  source.name = "test/kernel";
  source.language = Language::hip;
  source.entry = "kernel";
  source.text =
      "#ifndef __HIPCC_RTC__\n"
      "#define __global__ __attribute__((global))\n"
      "#define __shared__ __attribute__((shared))\n"
      "#endif\n"
      "#line 1\n" +
      body;
  return source;
}

}  // namespace greta::test
