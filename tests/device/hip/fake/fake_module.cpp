// Code objects, their kernels and launches. Kernels are executed if there is an emulator; otherwise
// only the test's replacement runs.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>

#include "tests/device/hip/fake/fake_code_object.hpp"
#include "tests/device/hip/fake/fake_emulator.hpp"
#include "tests/device/hip/fake/fake_memory.hpp"
#include "tests/device/hip/fake/fake_stream.hpp"
#include "tests/layers.hpp"

namespace greta::test {

namespace {

constexpr double unexecuted_instructions = 100;  // per wave, if nothing executes them
constexpr unsigned assumed_wave = 64;

/// Returns whether a kernel only consumes time for measurements of rates, so that its output is
/// never read. Of each new kind of launch one workgroup is executed, and the others are counted
/// like it.
bool passes_time(const std::string& kernel) {
  static const std::set<std::string> kernels{"greta_fma", "greta_copy", "greta_read", "greta_chase",
                                             "greta_matrix"};
  return kernels.contains(kernel);
}

/// A loaded code object, shared with launches that have not run yet.
struct Code {
  std::vector<std::byte> image;
  FakeCodeObject described;  ///< AMD only
  std::map<std::vector<std::byte>, double> passed_instructions;

  Code() = default;
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;
  ~Code() {
    if (Emulator* const emulator = Emulator::instance()) emulator->unload(image);
  }
};

struct Function {
  std::string name;
  std::weak_ptr<Code> code;
  const FakeKernel* kernel = nullptr;  ///< AMD only
};

std::set<const Function*> functions;  ///< functions of loaded modules

struct Module {
  std::shared_ptr<Code> code;
  std::map<std::string, Function> functions;
};

/// Returns a complete ELF file whose sections come last, or a string.
std::vector<std::byte> whole_image(const void* image) {
  const auto* const bytes = static_cast<const std::byte*>(image);
  std::size_t size = 0;
  if (std::memcmp(bytes,
                  "\x7f"
                  "ELF",
                  4) != 0) {
    size = std::strlen(static_cast<const char*>(image)) + 1;
  } else {
    std::uint64_t sections = 0;
    std::uint16_t each = 0, count = 0;
    std::memcpy(&sections, bytes + 0x28, sizeof sections);
    std::memcpy(&each, bytes + 0x3a, sizeof each);
    std::memcpy(&count, bytes + 0x3c, sizeof count);
    size = sections + std::size_t{each} * count;
  }
  return {bytes, bytes + size};
}

int attribute_or(int number, int otherwise) {
  const auto found = fake.attributes.find(number);
  return found == fake.attributes.end() ? otherwise : found->second;
}

/// Checks the limits that a device enforces.
int check_limits(const Call& call, const FakeLaunch& launch, const FakeKernel* kernel) {
  const auto [max_threads, max_block, max_grid, shared] =
      std::tuple{NAME(56, 1), NAME(26, 2), NAME(29, 5), NAME(74, 97)};
  std::uint64_t threads = 1;
  for (int axis = 0; axis < 3; ++axis) {
    const auto i = static_cast<std::size_t>(axis);
    const auto block = launch.block[i], grid = launch.grid[i];
    threads *= block;
    if (block == 0 || grid == 0) return call.misused("an empty grid or block");
    if (block > static_cast<unsigned>(attribute_or(max_block + axis, 0)) ||
        grid > static_cast<unsigned>(attribute_or(max_grid + axis, 0))) {
      return call.misused("a grid or block beyond the device's limits");
    }
#ifndef FAKE_CUDA
    if (std::uint64_t{block} * grid > UINT32_MAX) return call.misused("2^32 threads or more");
#endif
  }
  if (threads > static_cast<unsigned>(attribute_or(max_threads, 0)) ||
      threads > static_cast<unsigned>(fake.max_threads_per_block) ||
      (kernel != nullptr && threads > static_cast<unsigned>(kernel->max_threads))) {
    return call.misused("more threads in a workgroup than the kernel allows");
  }
  const int needed = kernel != nullptr ? kernel->shared_bytes : fake.static_shared_bytes;
  if (launch.dynamic_shared_bytes + static_cast<unsigned>(needed) >
      static_cast<unsigned>(attribute_or(shared, 0))) {
    return call.misused("more shared memory than the device has", out_of_resources);
  }
  return success;
}

/// Compares the argument block with the parameters that the code object lists.
int check_arguments(const Call& call, const FakeLaunch& launch, const FakeKernel& kernel) {
  std::size_t declared = 0;
  for (const auto& parameter : kernel.parameters) {
    declared = std::max(declared, parameter.offset + parameter.bytes);
  }
  const std::size_t given = launch.arguments.size();
  if (given < declared) return call.misused("an argument block that is too short");
  if (given > std::max(declared, kernel.argument_bytes) + 15) {
    return call.misused("an argument block that is longer than the kernel's");
  }
  for (const auto& parameter : kernel.parameters) {
    const void* pointer = nullptr;
    if (!parameter.is_pointer) continue;
    std::memcpy(&pointer, launch.arguments.data() + parameter.offset, sizeof pointer);
    if (pointer != nullptr && !is_memory(pointer)) {
      return call.misused("a pointer outside of any allocation of the device");
    }
  }
  return success;
}

/// Fails like an AMD driver: an illegal address ends the process.
double fail(const FakeLaunch& launch, const Emulator::Outcome& outcome) {
  std::fprintf(stderr, "fake HIP: the kernel %s: %s: %s\n", launch.kernel.c_str(),
               outcome.error.c_str(), outcome.message.c_str());
  if (outcome.error == "fault") std::abort();
  if (outcome.error == "endless") fake.busy = true;
  if (outcome.error == "unsupported") fake.sticking[current_device] = launch_failure;
  return 0;
}

double pass_time(Code& code, FakeLaunch launch, Emulator& emulator) {
  double workgroups = 1;
  for (auto& extent : launch.grid) {
    workgroups *= extent;
    extent = 1;
  }
  auto& known = code.passed_instructions;
  auto found = known.find(launch.arguments);
  if (found == known.end()) {
    const auto outcome = emulator.launch(code.image, launch);
    if (!outcome.error.empty()) return fail(launch, outcome);
    found = known.emplace(launch.arguments, outcome.instructions).first;
  }
  return found->second * workgroups;
}

/// Returns the number of instructions executed by the waves.
double execute(Code& code, const FakeLaunch& launch) {
  if (Emulator* const emulator = Emulator::instance()) {
    if (passes_time(launch.kernel)) return pass_time(code, launch, *emulator);
    const auto outcome = emulator->launch(code.image, launch);
    return outcome.error.empty() ? outcome.instructions : fail(launch, outcome);
  }
  double waves = 1;
  for (const auto extent : launch.grid) waves *= extent;
  unsigned threads = 1;
  for (const auto extent : launch.block) threads *= extent;
  waves *= (threads + assumed_wave - 1) / assumed_wave;  // NOLINT(bugprone-integer-division)
  return waves * unexecuted_instructions;
}

}  // namespace

}  // namespace greta::test

using namespace greta::test;

extern "C" {

int NAME(hipModuleLoadData, cuModuleLoadData)(Module** loaded, const void* image) {
  const Call call("hipModuleLoadData");
  if (call.error() != success) return call.error();
  auto code = std::make_shared<Code>();
  code->image = whole_image(image);
#ifndef FAKE_CUDA
  try {
    code->described = read_code_object(code->image);
  } catch (const std::exception&) {
    return no_binary_for_gpu;
  }
  const std::string own = fake.architecture.substr(0, fake.architecture.find(':'));
  if (code->described.architecture != own) return no_binary_for_gpu;
#endif
  *loaded = new Module{std::move(code), {}};
  add_object(*loaded, "hipModuleUnload");
  return success;
}
int NAME(hipModuleUnload, cuModuleUnload)(Module* loaded) {
  const Call call("hipModuleUnload");
  if (call.error() != success) return call.error();
  if (!remove_object(call, loaded, "hipModuleUnload")) return invalid_handle;
  for (const auto& [name, function] : loaded->functions) functions.erase(&function);
  delete loaded;
  return success;
}
int NAME(hipModuleGetFunction, cuModuleGetFunction)(Function** function, Module* loaded,
                                                    const char* name) {
  const Call call("hipModuleGetFunction");
  if (call.error() != success) return call.error();
  if (!is_object(call, loaded, "hipModuleUnload")) return invalid_handle;
  Function made{name, loaded->code, nullptr};
#ifdef FAKE_CUDA
  const std::string text(reinterpret_cast<const char*>(loaded->code->image.data()));
  if (text.find(name) == std::string::npos) return not_found;
#else
  const auto& kernels = loaded->code->described.kernels;
  const auto found = kernels.find(name);
  if (found == kernels.end()) return not_found;
  made.kernel = &found->second;
#endif
  *function = &loaded->functions.insert_or_assign(name, std::move(made)).first->second;
  functions.insert(*function);
  return success;
}
/// No code object of the tests has variables in constant memory.
int NAME(hipModuleGetGlobal, cuModuleGetGlobal_v2)(void**, std::size_t*, Module* loaded,
                                                   const char*) {
  const Call call("hipModuleGetGlobal");
  if (call.error() != success) return call.error();
  return is_object(call, loaded, "hipModuleUnload") ? not_found : invalid_handle;
}
int NAME(hipFuncGetAttribute, cuFuncGetAttribute)(int* value, int attribute, Function* function) {
  const Call call("hipFuncGetAttribute");
  if (call.error() != success) return call.error();
  if (!functions.contains(function)) return call.misused("of no function", invalid_handle);
  std::map<int, int> known{
      {0, fake.max_threads_per_block}, {1, fake.static_shared_bytes}, {3, 16}, {4, 40}};
  if (const FakeKernel* const kernel = function->kernel) {
    known = {{0, std::min(fake.max_threads_per_block, kernel->max_threads)},
             {1, kernel->shared_bytes},
             {3, kernel->scratch_bytes},
             {4, kernel->registers}};
  }
  if (!known.contains(attribute)) return call.misused("an attribute that it does not know");
  *value = known.at(attribute);
  return success;
}
int NAME(hipModuleLaunchKernel, cuLaunchKernel)(Function* function, unsigned gx, unsigned gy,
                                                unsigned gz, unsigned bx, unsigned by, unsigned bz,
                                                unsigned dynamic, Stream* stream, void** parameters,
                                                void** extra) {
  const Call call("hipModuleLaunchKernel");
  if (call.error() != success) return call.error();
  if (!is_object(call, stream, "hipStreamDestroy")) return invalid_handle;
  if (!functions.contains(function)) return call.misused("of no function", invalid_handle);
  const auto word = [&](int i) { return reinterpret_cast<std::uintptr_t>(extra[i]); };
  if (parameters != nullptr || word(0) != 1 || word(2) != 2 || word(4) != NAME(3U, 0U)) {
    return call.misused("arguments that are no block of bytes");
  }
  const auto* const bytes = static_cast<const std::byte*>(extra[1]);
  const FakeLaunch launch{function->name,
                          {gx, gy, gz},
                          {bx, by, bz},
                          dynamic,
                          {bytes, bytes + *static_cast<std::size_t*>(extra[3])}};
  if (const int error = check_limits(call, launch, function->kernel)) return error;
  if (function->kernel != nullptr) {
    if (const int error = check_arguments(call, launch, *function->kernel)) return error;
  }
  add_command(*stream, [launch, code = function->code](const Call& later) {
    const auto held = code.lock();
    if (!held) {
      later.misused("a launch of a kernel that was unloaded before");
      return 0.0;
    }
    fake.launches.push_back(launch);
    if (fake.on_launch) fake.on_launch(launch);
    return command_ns + instruction_ns * execute(*held, launch);
  });
  return success;
}

}  // extern "C"
