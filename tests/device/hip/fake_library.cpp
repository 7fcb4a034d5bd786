#include "tests/device/hip/fake_library.hpp"

#include <dlfcn.h>

#include <cstring>

#include "tests/layers.hpp"

namespace greta::test {

namespace {

/// Attributes like those of MI250 and H100, by the numbers of HIP and of CUDA.
const std::map<int, int> hip_attributes{
    {56, 1024},  {26, 1024}, {27, 1024}, {28, 1024}, {29, 2147483647}, {30, 65536},    {31, 65536},
    {74, 65536}, {87, 64},   {63, 104},  {16, 0},    {71, 131072},     {10002, 65536}, {57, 2048}};
const std::map<int, int> cuda_attributes{
    {1, 1024},   {2, 1024},  {3, 1024},    {4, 64},  {5, 2147483647}, {6, 65535},
    {7, 65535},  {8, 49152}, {97, 232448}, {10, 32}, {16, 132},       {18, 0},
    {82, 65536}, {39, 2048}, {81, 233472}, {75, 9},  {76, 0}};

std::vector<std::byte> compile_for_amd() {
  KernelSource source = work_source();
  source.text =
      "extern \"C\" __attribute__((global)) void work(unsigned long long a, float b, int c) {}\n";
  auto compiler = hip::create_amd_compiler({}).value();
  return compiler->compile(source, "gfx90a").value().binary;
}

}  // namespace

std::string path_of(Fake fake) {
  switch (fake) {
    case Fake::hip6:
      return FAKE_HIP6_LIBRARY;
    case Fake::hip5:
      return FAKE_HIP5_LIBRARY;
    case Fake::incomplete:
      return FAKE_INCOMPLETE_LIBRARY;
    case Fake::cuda:
      return FAKE_CUDA_LIBRARY;
  }
  return {};
}

FakeHip& open_fake(Fake fake) {
  void* const library = dlopen(path_of(fake).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw Error(dlerror());
  const auto find = reinterpret_cast<FakeHip* (*)()>(dlsym(library, "greta_fake_hip"));
  FakeHip& hip = *find();
  hip = {};
  hip.attributes = fake == Fake::cuda ? cuda_attributes : hip_attributes;
  if (fake == Fake::cuda) {
    hip.version = 13000;
    hip.name = "Fake H100";
  }
  if (fake == Fake::hip6) hip.attributes[10017] = 100'000;
  if (fake == Fake::hip5) hip.version = 50'221'153;
  return hip;
}

std::unique_ptr<Backend> backend_of(Fake fake) {
  const std::vector<std::string> path{path_of(fake)}, none{"libgreta-nowhere.so"};
  return hip::create_backend(fake == Fake::cuda ? hip::Libraries{none, path}
                                                : hip::Libraries{path, none});
}

const std::vector<std::byte>& code_object_of(Fake fake) {
  static const auto* const amd = new std::vector<std::byte>(compile_for_amd());
  static const auto* const nvidia = [] {
    const char text[] = "kernel work";
    auto* const bytes = new std::vector<std::byte>(sizeof text);
    std::memcpy(bytes->data(), text, sizeof text);
    return bytes;
  }();
  return fake == Fake::cuda ? *nvidia : *amd;
}

KernelSource work_source() {
  KernelSource source;
  source.name = "test/work";
  source.language = Language::hip;
  source.entry = "work";
  source.block = {64, 1, 1};
  source.argument_bytes = 16;
  return source;
}

}  // namespace greta::test
