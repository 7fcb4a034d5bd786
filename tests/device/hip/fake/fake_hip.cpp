// A shared library that stands in for libamdhip64 (FAKE_HIP is 5 or 6) or libcuda (FAKE_CUDA): the
// same functions under the one or the other's names.

#include "tests/device/hip/fake/fake_hip.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "tests/device/hip/fake/fake_state.hpp"

using namespace greta::test;

namespace {

struct Object {
  int device = 0;
  std::string ended_by;
};
std::map<void*, Object> objects;

using Work = std::function<void()>;

struct Graph {
  std::vector<Work> work;
};
struct Stream {
  std::unique_ptr<Graph> capturing;
};
struct Event {
  double milliseconds = 0;
};
struct Function {
  std::string name;
};
struct Module {
  std::string image;
  std::vector<std::unique_ptr<Function>> functions;
};

void* add(void* object, const char* ended_by) {
  objects[object] = {current_device, ended_by};
  ++fake.live[ended_by];
  return object;
}

/// Takes an object out; false when it is not there.
bool remove(void* object, const char* ended_by) {
  const auto found = objects.find(object);
  if (found == objects.end() || found->second.ended_by != ended_by) {
    fake.misuse.emplace_back(ended_by);
    return false;
  }
  objects.erase(found);
  --fake.live[ended_by];
  return true;
}

void use(void* object, const char* call) {
  if (!objects.contains(object)) fake.misuse.emplace_back(call);
}

template <typename Type>
int make(Type** to, const char* ended_by) {
  *to = new Type;
  add(*to, ended_by);
  return success;
}

template <typename Type>
int end(Type* object, const char* call) {
  if (const int error = begin(call)) return error;
  if (remove(object, call)) delete object;
  return success;
}

void run(Stream* stream, Work work) {
  if (stream->capturing) {
    stream->capturing->work.push_back(std::move(work));
  } else {
    work();
  }
}

int query(const char* call) {
  if (const int error = begin(call)) return error;
  return fake.busy ? not_ready : success;
}

/// All of an ELF file whose sections come last, or a string.
std::string whole_image(const void* image) {
  const auto* const bytes = static_cast<const char*>(image);
  if (std::memcmp(bytes,
                  "\x7f"
                  "ELF",
                  4) != 0)
    return bytes;
  std::uint64_t sections = 0;
  std::uint16_t size = 0, count = 0;
  std::memcpy(&sections, bytes + 0x28, sizeof sections);
  std::memcpy(&size, bytes + 0x3a, sizeof size);
  std::memcpy(&count, bytes + 0x3c, sizeof count);
  return {bytes, sections + std::size_t{size} * count};
}

}  // namespace

extern "C" {

/// Everything on the device goes.
static int reset(int device) {
  ++fake.resets[device];
  fake.sticking.erase(device);
  for (auto object = objects.begin(); object != objects.end();) {
    const bool there = object->second.device == device;
    if (there) --fake.live[object->second.ended_by];
    object = there ? objects.erase(object) : std::next(object);
  }
  return fake.reset_error;
}
#ifdef FAKE_CUDA
int cuDevicePrimaryCtxReset_v2(int device) {
  return reset(device);
}
#else
int hipDeviceReset() {
  return reset(current_device);
}
#endif

int NAME(hipMalloc, cuMemAlloc_v2)(void** pointer, std::size_t bytes) {
  if (const int error = begin("hipMalloc")) return error;
  *pointer = add(std::aligned_alloc(256, (bytes + 255) / 256 * 256), "hipFree");
  return success;
}
int NAME(hipHostMalloc, cuMemHostAlloc)(void** pointer, std::size_t bytes, unsigned) {
  if (const int error = begin("hipHostMalloc")) return error;
  *pointer = add(std::aligned_alloc(256, (bytes + 255) / 256 * 256), "hipHostFree");
  return success;
}
int NAME(hipFree, cuMemFree_v2)(void* pointer) {
  if (const int error = begin("hipFree")) return error;
  if (remove(pointer, "hipFree")) std::free(pointer);
  return success;
}
int NAME(hipHostFree, cuMemFreeHost)(void* pointer) {
  if (const int error = begin("hipHostFree")) return error;
  if (remove(pointer, "hipHostFree")) std::free(pointer);
  return success;
}

#ifdef FAKE_CUDA
int cuMemcpyAsync(void* to, const void* from, std::size_t bytes, Stream* stream) {
#else
int hipMemcpyAsync(void* to, const void* from, std::size_t bytes, int kind, Stream* stream) {
  if (kind != 4) return invalid_value;  // hipMemcpyDefault
#endif
  if (const int error = begin("hipMemcpyAsync")) return error;
  use(stream, "hipMemcpyAsync");
  run(stream, [=] { std::memcpy(to, from, bytes); });
  return success;
}
int NAME(hipMemsetD32Async, cuMemsetD32Async)(void* to, int value, std::size_t count,
                                              Stream* stream) {
  if (const int error = begin("hipMemsetD32Async")) return error;
  use(stream, "hipMemsetD32Async");
  run(stream, [=] { std::fill_n(static_cast<int*>(to), count, value); });
  return success;
}

int NAME(hipStreamCreateWithFlags, cuStreamCreate)(Stream** stream, unsigned) {
  const int error = begin("hipStreamCreateWithFlags");
  return error != success ? error : make(stream, "hipStreamDestroy");
}
int NAME(hipStreamDestroy, cuStreamDestroy_v2)(Stream* stream) {
  return end(stream, "hipStreamDestroy");
}
int NAME(hipStreamQuery, cuStreamQuery)(Stream* stream) {
  use(stream, "hipStreamQuery");
  return query("hipStreamQuery");
}
int NAME(hipStreamWaitEvent, cuStreamWaitEvent)(Stream* stream, Event* event, unsigned) {
  use(stream, "hipStreamWaitEvent");
  use(event, "hipStreamWaitEvent");
  return begin("hipStreamWaitEvent");
}
int NAME(hipStreamBeginCapture, cuStreamBeginCapture_v2)(Stream* stream, int) {
  if (const int error = begin("hipStreamBeginCapture")) return error;
  stream->capturing = std::make_unique<Graph>();
  return success;
}
int NAME(hipStreamEndCapture, cuStreamEndCapture)(Stream* stream, Graph** graph) {
  if (const int error = begin("hipStreamEndCapture")) return error;
  *graph = stream->capturing.release();
  add(*graph, "hipGraphDestroy");
  return success;
}

#ifndef FAKE_WITHOUT_GRAPHS
int NAME(hipGraphInstantiateWithFlags,
         cuGraphInstantiateWithFlags)(Graph** executable, Graph* graph, unsigned long long) {
  if (const int error = begin("hipGraphInstantiateWithFlags")) return error;
  make(executable, "hipGraphExecDestroy");
  **executable = *graph;
  return success;
}
#endif
int NAME(hipGraphLaunch, cuGraphLaunch)(Graph* executable, Stream* stream) {
  if (const int error = begin("hipGraphLaunch")) return error;
  use(executable, "hipGraphLaunch");
  use(stream, "hipGraphLaunch");
  for (const auto& work : executable->work) work();
  return success;
}
int NAME(hipGraphExecDestroy, cuGraphExecDestroy)(Graph* executable) {
  return end(executable, "hipGraphExecDestroy");
}
int NAME(hipGraphDestroy, cuGraphDestroy)(Graph* graph) {
  return end(graph, "hipGraphDestroy");
}

int NAME(hipEventCreateWithFlags, cuEventCreate)(Event** event, unsigned) {
  const int error = begin("hipEventCreateWithFlags");
  return error != success ? error : make(event, "hipEventDestroy");
}
int NAME(hipEventDestroy, cuEventDestroy_v2)(Event* event) {
  return end(event, "hipEventDestroy");
}
int NAME(hipEventRecord, cuEventRecord)(Event* event, Stream* stream) {
  if (const int error = begin("hipEventRecord")) return error;
  use(stream, "hipEventRecord");
  static double clock = 0;
  event->milliseconds = clock += 0.25;
  return success;
}
int NAME(hipEventQuery, cuEventQuery)(Event* event) {
  use(event, "hipEventQuery");
  return query("hipEventQuery");
}
int NAME(hipEventElapsedTime, cuEventElapsedTime)(float* milliseconds, Event* start, Event* stop) {
  if (const int error = begin("hipEventElapsedTime")) return error;
  *milliseconds = static_cast<float>(stop->milliseconds - start->milliseconds);
  return success;
}

int NAME(hipModuleLoadData, cuModuleLoadData)(Module** loaded, const void* image) {
  if (const int error = begin("hipModuleLoadData")) return error;
  make(loaded, "hipModuleUnload");
  (*loaded)->image = whole_image(image);
  return success;
}
int NAME(hipModuleUnload, cuModuleUnload)(Module* loaded) {
  return end(loaded, "hipModuleUnload");
}
int NAME(hipModuleGetFunction, cuModuleGetFunction)(Function** function, Module* loaded,
                                                    const char* name) {
  if (const int error = begin("hipModuleGetFunction")) return error;
  if (loaded->image.find(name) == std::string::npos) return not_found;
  loaded->functions.push_back(std::make_unique<Function>(Function{name}));
  *function = loaded->functions.back().get();
  return success;
}
int NAME(hipFuncGetAttribute, cuFuncGetAttribute)(int* value, int attribute, Function*) {
  if (const int error = begin("hipFuncGetAttribute")) return error;
  const std::map<int, int> known{
      {0, fake.max_threads_per_block}, {1, fake.static_shared_bytes}, {3, 16}, {4, 40}};
  *value = known.at(attribute);
  return success;
}
int NAME(hipModuleLaunchKernel, cuLaunchKernel)(Function* function, unsigned gx, unsigned gy,
                                                unsigned gz, unsigned bx, unsigned by, unsigned bz,
                                                unsigned dynamic, Stream* stream, void** parameters,
                                                void** extra) {
  if (const int error = begin("hipModuleLaunchKernel")) return error;
  use(stream, "hipModuleLaunchKernel");
  const auto word = [&](int i) { return reinterpret_cast<std::uintptr_t>(extra[i]); };
  if (parameters != nullptr || word(0) != 1 || word(2) != 2 || word(4) != NAME(3U, 0U)) {
    return invalid_value;
  }
  const auto* const bytes = static_cast<const std::byte*>(extra[1]);
  FakeLaunch launch{function->name,
                    {gx, gy, gz},
                    {bx, by, bz},
                    dynamic,
                    {bytes, bytes + *static_cast<std::size_t*>(extra[3])}};
  run(stream, [launch] {
    fake.launches.push_back(launch);
    if (fake.on_launch) fake.on_launch(launch);
  });
  return success;
}

}  // extern "C"
