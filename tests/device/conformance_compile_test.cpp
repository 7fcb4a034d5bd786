// Protects: compiling kernels on every device: errors, limits, options, subgroup sizes, threads and
// the disk cache.

#include <fmt/format.h>

#include <fstream>
#include <future>

#include "runtime/device/system/log.hpp"
#include "tests/device/conformance.hpp"
#include "tests/layers.hpp"

namespace greta::test::conformance_compile_test {

namespace {

using ConformanceCompile = Conformance;
INSTANTIATE_TEST_SUITE_P(All, ConformanceCompile, ::testing::ValuesIn(usable_devices()),
                         parameter_name);

/// Returns a kernel that writes one number; `value` is an expression in both languages.
KernelSource number_source(const DeviceInfo& device, const std::string& value) {
  return source_of(device, {R"(
layout(local_size_x = 1) in;
layout(push_constant, scalar) uniform Arguments { Numbers to; };
void main() { to.at[0] = )" + value +
                                "; }\n",
                            "GRETA_KERNEL(1) work(u32* to) { to[0] = " + value + "; }\n"});
}

/// Launches a kernel that writes one number and returns the number.
std::uint32_t run(Device& device, const Kernel& kernel) {
  const auto buffer = device.allocate(4).value();
  const std::uint64_t address = buffer->address();
  const auto stream = device.create_stream().value();
  stream->launch(kernel, {1, 1, 1}, bytes_of(address)).value();
  stream->synchronize(patience).value();
  std::uint32_t result = 0;
  device.download(*buffer, 0, std::as_writable_bytes(std::span(&result, 1))).value();
  return result;
}

Failure failure_of(Device& device, const KernelSource& source) {
  const auto kernel = device.compile(source);
  if (kernel) return {Status::invalid_argument, "it compiled", {}};
  return kernel.failure();
}

TEST_P(ConformanceCompile, AnErrorKeepsTheWholeLog) {
  const auto failure = failure_of(*device_, source_of(device_->info(), {R"(
layout(local_size_x = 1) in;
void main() { first_mistake = 1; second_mistake = 2; }
)",
                                                                        R"(
GRETA_KERNEL(1) work(u32* to) { first_mistake = 1; second_mistake = 2; }
)"}));
  EXPECT_EQ(failure.status, Status::compile);
  EXPECT_NE(failure.message.find("test/kernel"), std::string::npos) << failure.message;
  EXPECT_NE(failure.message.find("first_mistake"), std::string::npos) << failure.message;
  EXPECT_EQ(failure.message.find('\n'), std::string::npos) << failure.message;
  EXPECT_NE(failure.log.find("first_mistake"), std::string::npos) << failure.log;
  EXPECT_TRUE(device_->compile(affine_source(device_->info()))) << "the device goes on";
}

TEST_P(ConformanceCompile, RefusesAnotherLanguageEntryAndOptions) {
  KernelSource source = affine_source(device_->info());
  source.language = device_->info().language == Language::hip ? Language::glsl : Language::hip;
  EXPECT_EQ(failure_of(*device_, source).status, Status::compile);
  source = affine_source(device_->info());
  source.entry = "start";
  EXPECT_EQ(failure_of(*device_, source).status, Status::compile);
  source = affine_source(device_->info());
  source.options = {"--no-such-option"};
  EXPECT_NE(failure_of(*device_, source).message.find("no-such-option"), std::string::npos);
}

TEST_P(ConformanceCompile, OptionsDefineMacros) {
  KernelSource source = number_source(device_->info(), R"(
#ifdef FLAG
VALUE
#endif
)");
  EXPECT_EQ(failure_of(*device_, source).status, Status::compile) << "there is no number";
  source.options = {"-DFLAG", "-DVALUE=42"};
  const auto kernel = device_->compile(source).value();
  EXPECT_EQ(run(*device_, *kernel), 42U);
  source.options = {"-DFLAG", "-DVALUE=43"};
  EXPECT_NE(device_->compile(source).value()->content_key(), kernel->content_key());
}

/// Returns a kernel with an array of `words` in shared memory, which HIP launches allocate.
KernelSource shared_source(const DeviceInfo& device, std::uint32_t words) {
  KernelSource source = source_of(device, {fmt::format(R"(
layout(local_size_x = 1) in;
layout(push_constant, scalar) uniform Arguments {{ Numbers to; }};
shared uint pad[{}];
void main() {{ pad[to.at[0]] = to.at[1]; barrier(); to.at[2] = pad[to.at[3]]; }}
)",
                                                       words),
                                           R"(
GRETA_KERNEL(1) work(u32* to) {
  GRETA_DYNAMIC_SHARED(u32, pad);
  pad[to[0]] = to[1];
  block_barrier();
  to[2] = pad[to[3]];
}
)"});
  if (device.language == Language::hip) source.dynamic_shared_bytes = words * 4;
  return source;
}

TEST_P(ConformanceCompile, RefusesWhatTheDeviceCannotHold) {
  const auto& info = device_->info();
  const std::uint32_t words = info.shared_memory_bytes / 4;
  const auto kernel = device_->compile(shared_source(info, words)).value();
  EXPECT_EQ(kernel->statistics().shared_memory_bytes, words * 4);
  const auto failure = failure_of(*device_, shared_source(info, words + 1));
  EXPECT_EQ(failure.status, Status::compile);
  EXPECT_NE(failure.message.find(fmt::format("{} bytes of shared memory", words * 4 + 4)),
            std::string::npos)
      << failure.message;

  const KernelSource wide = source_of(info,
                                      {"layout(local_size_x = 1024, local_size_y = 1024) in;\n"
                                       "void main() {}\n",
                                       "GRETA_KERNEL(1024) work() {}\n"},
                                      {1024, 1024, 1});
  EXPECT_EQ(failure_of(*device_, wide).status, Status::compile);
  KernelSource greedy = affine_source(info);
  greedy.argument_bytes = info.max_argument_bytes + 1;
  EXPECT_EQ(failure_of(*device_, greedy).status, Status::compile);
}

TEST_P(ConformanceCompile, SharedMemoryIsThereToItsLastWord) {
  const std::uint32_t words = device_->info().shared_memory_bytes / 4;
  const auto kernel = device_->compile(shared_source(device_->info(), words)).value();
  const std::array<std::uint32_t, 4> sent{words - 1, 4711, 0, words - 1};
  const auto buffer = device_->allocate(sizeof sent).value();
  device_->upload(*buffer, 0, std::as_bytes(std::span(sent))).value();
  const std::uint64_t address = buffer->address();
  const auto stream = device_->create_stream().value();
  stream->launch(*kernel, {1, 1, 1}, bytes_of(address)).value();
  stream->synchronize(patience).value();
  std::array<std::uint32_t, 4> back{};
  device_->download(*buffer, 0, std::as_writable_bytes(std::span(back))).value();
  EXPECT_EQ(back[2], 4711U);
}

TEST_P(ConformanceCompile, OnlyHipHasDynamicSharedMemory) {
  KernelSource source = shared_source(device_->info(), 16);
  source.dynamic_shared_bytes = 64;
  EXPECT_EQ(bool(device_->compile(source)), device_->info().language == Language::hip);
}

TEST_P(ConformanceCompile, RefusesASourceThatContradictsItsText) {
  const auto& info = device_->info();
  KernelSource source = affine_source(info);
  source.argument_bytes -= 4;
  const auto failure = failure_of(*device_, source);
  EXPECT_EQ(failure.status, Status::compile);
  EXPECT_NE(failure.message.find("24 bytes of arguments"), std::string::npos) << failure.message;
  if (info.backend == Api::hip_host) return;  // hip-host accepts blocks of any size
  source = affine_source(info);
  source.block = {128, 1, 1};
  EXPECT_NE(failure_of(*device_, source).message.find("64"), std::string::npos);
}

TEST_P(ConformanceCompile, SubgroupSize) {
  const auto& info = device_->info();
  ASSERT_LE(info.min_subgroup_size, info.max_subgroup_size);
  const auto sized = [&](std::uint32_t size) {
    // HIP: the second wave begins with the first thread after a whole wave.
    KernelSource source = source_of(info,
                                    {R"(
#extension GL_KHR_shader_subgroup_basic : require
layout(local_size_x = 128) in;
layout(push_constant, scalar) uniform Arguments { Numbers to; };
void main() { if (gl_LocalInvocationID.x == 0) to.at[0] = gl_SubgroupSize; }
)",
                                     R"(
GRETA_KERNEL(128) work(u32* to) {
  const u32 first = shuffle(thread_index(), 0);
  if (thread_index() == wave_size) to[0] = first;
  block_barrier();
  if (thread_index() == wave_size - 1 && first != 0) to[0] = 0;
}
)"},
                                    {128, 1, 1});
    source.required_subgroup_size = size;
    return source;
  };
  if (info.subgroup_size_control) {
    for (std::uint32_t size = info.min_subgroup_size; size <= info.max_subgroup_size; size *= 2) {
      const auto kernel = device_->compile(sized(size)).value();
      EXPECT_EQ(run(*device_, *kernel), size);
    }
  }
  const auto failure = failure_of(*device_, sized(info.max_subgroup_size * 2));
  EXPECT_EQ(failure.status, Status::compile);
  EXPECT_NE(failure.message.find(fmt::format("subgroup size {}", info.max_subgroup_size * 2)),
            std::string::npos)
      << failure.message;
  EXPECT_EQ(failure_of(*device_, sized(3)).status, Status::compile);
}

TEST_P(ConformanceCompile, HalfPrecision) {
  if (!device_->info().f16_arithmetic || !device_->info().f16_storage) {
    EXPECT_FALSE(device_->info().is_cpu()) << "lavapipe has both";
    return;
  }
  const auto kernel = device_
                          ->compile(source_of(device_->info(), {R"(
layout(local_size_x = 1) in;
layout(buffer_reference, scalar) buffer Halves { float16_t at[]; };
layout(push_constant, scalar) uniform Arguments { Halves to; };
void main() { to.at[0] = float16_t(1.5) * float16_t(2); to.at[1] = to.at[0] + float16_t(0.5); }
)",
                                                                R"(
GRETA_KERNEL(1) work(f16* to) {
  to[0] = narrow<f16>(to_float(narrow<f16>(1.5f)) * 2);
  to[1] = narrow<f16>(to_float(to[0]) + 0.5f);
}
)"}))
                          .value();
  EXPECT_EQ(run(*device_, *kernel), 0x4300'4200U);  // 3.5 and 3
}

TEST_P(ConformanceCompile, SeveralThreadsAtOnce) {
  using Compiled = std::vector<Result<std::unique_ptr<Kernel>>>;
  std::vector<std::future<Compiled>> workers;  // exceptions are rethrown by get()
  for (unsigned worker = 0; worker < 4; ++worker) {
    workers.push_back(std::async(std::launch::async, [this, worker] {
      Compiled kernels;
      for (unsigned i = 0; i < 3; ++i) {
        kernels.push_back(
            device_->compile(number_source(device_->info(), std::to_string(worker * 10 + i))));
      }
      return kernels;
    }));
  }
  for (unsigned worker = 0; worker < 4; ++worker) {
    const Compiled kernels = workers[worker].get();
    for (unsigned i = 0; i < 3; ++i) {
      ASSERT_TRUE(kernels[i]) << kernels[i].failure().message;
      EXPECT_EQ(run(*device_, **kernels[i]), worker * 10 + i);
    }
  }
}

TEST_P(ConformanceCompile, TheDiskCacheServesASecondDevice) {
  const TemporaryFolder folder;
  device_ = open(folder.path());
  const auto first = device_->compile(affine_source(device_->info())).value();
  EXPECT_FALSE(first->from_cache());
  device_ = open(folder.path());
  const auto second = device_->compile(affine_source(device_->info())).value();
  EXPECT_TRUE(second->from_cache());
  EXPECT_EQ(first->content_key(), second->content_key());
}

TEST_P(ConformanceCompile, ADamagedCacheEntryIsWrittenAgain) {
  const TemporaryFolder folder;
  device_ = open(folder.path());
  const auto source = number_source(device_->info(), "7");
  const auto key = device_->compile(source).value()->content_key();
  const auto entry = folder.path() / "kernels" / key;
  ASSERT_TRUE(std::filesystem::exists(entry));
  const auto size = std::filesystem::file_size(entry);
  const auto flip = [&](std::uintmax_t at) {
    std::fstream file(entry, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(at));
    const auto byte = static_cast<char>(file.get() ^ 1);
    file.seekp(static_cast<std::streamoff>(at));
    file.put(byte);
  };
  const std::vector<std::function<void()>> damages{
      [&] { flip(0); }, [&] { flip(size / 2); }, [&] { flip(size - 1); },
      [&] { std::filesystem::resize_file(entry, size - 5); },
      [&] { std::filesystem::resize_file(entry, 0); }};
  for (const auto& damage : damages) {
    damage();
    const auto again = device_->compile(source).value();
    EXPECT_FALSE(again->from_cache());
    EXPECT_EQ(run(*device_, *again), 7U);
    EXPECT_TRUE(device_->compile(source).value()->from_cache()) << "it was written again";
  }
}

TEST_P(ConformanceCompile, ACacheThatCannotBeWrittenIsSaidOnce) {
  int warnings = 0;
  set_log_sink([&](LogLevel level, std::string_view) { warnings += level == LogLevel::warning; });
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "file") << "not a folder";
  device_ = open(folder.path() / "file");
  EXPECT_FALSE(device_->compile(affine_source(device_->info())).value()->from_cache());
  EXPECT_FALSE(device_->compile(affine_source(device_->info())).value()->from_cache());
  EXPECT_EQ(warnings, 1);
  set_log_sink({});
}

}  // namespace

}  // namespace greta::test::conformance_compile_test
