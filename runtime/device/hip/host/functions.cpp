#include "runtime/device/hip/host/functions.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/device/hip/host/modules.hpp"
#include "runtime/device/hip/host/state.hpp"

namespace greta::device::hip::host {

namespace {

constexpr std::size_t memory_alignment = 256;

template <typename T, Objects<T> Device::*objects>
hipError_t destroy(T* handle) {
  return on_device([&](Device& device) { return (device.*objects).remove(handle); });
}

hipError_t allocate(void** pointer, std::size_t bytes) {
  return on_device([&](Device& device) {
    if (bytes == 0 || bytes > PTRDIFF_MAX) return hipErrorInvalidValue;
    void* memory = nullptr;
    if (posix_memalign(&memory, memory_alignment, bytes) != 0) return hipErrorOutOfMemory;
    device.memory.emplace(memory, memory);
    *pointer = memory;
    return hipSuccess;
  });
}

hipError_t release(void* pointer) {
  return on_device([&](Device& device) {
    return device.memory.erase(pointer) == 1 ? hipSuccess : hipErrorInvalidValue;
  });
}

hipError_t copy_async(void* to, const void* from, std::size_t bytes, hipStream_t stream) {
  return push(stream, [=] { return [=](Execution&) { std::memcpy(to, from, bytes); }; });
}

bool is_device(int device) {
  return device >= 0 && device < device_count;
}

hipError_t can_access_peer(int* can, int device, int peer) {
  if (!is_device(device) || !is_device(peer)) return hipErrorInvalidDevice;
  *can = device != peer ? 1 : 0;
  return hipSuccess;
}

hipError_t copy_peer_async(void* to, int to_device, const void* from, int from_device,
                           std::size_t bytes, hipStream_t stream) {
  if (!is_device(to_device) || !is_device(from_device)) return hipErrorInvalidDevice;
  return copy_async(to, from, bytes, stream);
}

hipError_t fill_async(hipDeviceptr_t to, int value, std::size_t count, hipStream_t stream) {
  return push(stream, [=] {
    return [=](Execution&) { std::fill_n(static_cast<int*>(to), count, value); };
  });
}

hipError_t create_stream(hipStream_t* stream, unsigned) {
  return on_device([&](Device& device) {
    *stream = device.streams.add(std::make_unique<hipStream>(device.failed));
    return hipSuccess;
  });
}

void abandon(hipStream_t stream) {
  static_cast<void>(on_device([&](Device& device) {
    if (device.streams.has(stream)) stream->queue.cancel();
    return hipSuccess;
  }));
}

hipError_t query_stream(hipStream_t stream) {
  return on_device([&](Device& device) {
    if (!device.streams.has(stream)) return hipErrorInvalidHandle;
    if (!stream->queue.idle()) return hipErrorNotReady;
    return sticking(*device.failed);  // the last command may have failed in the meantime
  });
}

hipError_t begin_capture(hipStream_t stream, int) {
  return on_device([&](Device& device) {
    if (!device.streams.has(stream)) return hipErrorInvalidHandle;
    if (stream->captured) return hipErrorInvalidValue;
    stream->captured = std::make_unique<std::vector<Command>>();
    return hipSuccess;
  });
}

hipError_t end_capture(hipStream_t stream, hipGraph_t* graph) {
  return on_device([&](Device& device) {
    if (!device.streams.has(stream)) return hipErrorInvalidHandle;
    if (!stream->captured) return hipErrorInvalidValue;
    auto made = std::make_unique<hipGraph>();
    made->commands = std::move(*std::exchange(stream->captured, nullptr));
    *graph = device.graphs.add(std::move(made));
    return hipSuccess;
  });
}

hipError_t instantiate(hipGraphExec_t* executable, hipGraph_t graph, unsigned long long) {
  return on_device([&](Device& device) {
    if (!device.graphs.has(graph)) return hipErrorInvalidHandle;
    auto made = std::make_unique<hipGraphExec>();
    made->commands = std::make_shared<const std::vector<Command>>(graph->commands);
    *executable = device.executables.add(std::move(made));
    return hipSuccess;
  });
}

hipError_t launch_graph(hipGraphExec_t executable, hipStream_t stream) {
  return push(stream, [executable] {
    const bool turn = executable->replays++ % 2 == 1;
    return [commands = executable->commands, turn](Execution& execution) {
      run_graph(*commands, execution, turn);
    };
  });
}

hipError_t create_event(hipEvent_t* event, unsigned) {
  return on_device([&](Device& device) {
    *event = device.events.add(std::make_unique<hipEvent>());
    return hipSuccess;
  });
}

hipError_t record_event(hipEvent_t event, hipStream_t stream) {
  return push(stream, [event] {
    return [marker = event->marker, number = event->marker->start()](Execution&) {
      marker->reach(number);
    };
  });
}

hipError_t wait_event(hipStream_t stream, hipEvent_t event, unsigned) {
  return push(stream, [event] {
    return [marker = event->marker, number = event->marker->last()](Execution& execution) {
      marker->wait(number, execution);
    };
  });
}

hipError_t query_event(hipEvent_t event) {
  return on_device([&](Device& device) {
    if (!device.events.has(event)) return hipErrorInvalidHandle;
    return event->marker->reached().value_or(true) ? hipSuccess : hipErrorNotReady;
  });
}

hipError_t elapsed_time(float* milliseconds, hipEvent_t start, hipEvent_t stop) {
  return on_device([&](Device& device) {
    for (hipEvent_t event : {start, stop}) {
      if (!device.events.has(event) || !event->marker->reached()) return hipErrorInvalidHandle;
      if (!*event->marker->reached()) return hipErrorNotReady;
    }
    const auto elapsed = stop->marker->time() - start->marker->time();
    *milliseconds = std::chrono::duration<float, std::milli>(elapsed).count();
    return hipSuccess;
  });
}

/// Refuses what cuTensorMapEncodeTiled refuses.
hipError_t encode(const TensorMap& map, std::uint64_t address, std::byte* to) {
  constexpr std::uint64_t most = std::uint64_t{1} << 32;
  const bool extents = map.columns >= 1 && map.columns <= most && map.rows >= 1 && map.rows <= most;
  if (!extents || address % 16 != 0 || map.row_bytes % 16 != 0 || map.box_rows < 1 ||
      map.box_rows > 256 || map.pair_bytes % 16 != 0 || map.plain_bytes % 16 != 0 ||
      map.plain_bytes > 512 || (map.plain_bytes != 0 && map.pair_bytes != 0) ||
      (map.pair_bytes != 0 && (map.rows % 2 != 0 || map.box_rows % 2 != 0)) ||
      (bits_of(map.type) != 16 && map.type != DType::f32)) {
    return hipErrorInvalidValue;
  }
  greta_host::TensorMap encoded{};
  static_assert(sizeof encoded == tensor_map_bytes && alignof(greta_host::TensorMap) == 64);
  encoded.matrix = reinterpret_cast<const unsigned char*>(address);
  encoded.columns = map.columns;
  encoded.rows = map.rows;
  encoded.row_bytes = map.row_bytes;
  encoded.pair_bytes = map.pair_bytes;
  encoded.box_rows = map.box_rows;
  encoded.plain_bytes = map.plain_bytes;
  encoded.element_bytes = static_cast<unsigned>(bits_of(map.type) / 8);
  std::memcpy(to, &encoded, sizeof encoded);
  return hipSuccess;
}

}  // namespace

const char* imitated(int device) {
  constexpr std::array names{"sm_80", "gfx942", "gfx1100", "gfx1201", "sm_90"};
  static_assert(names.size() == device_count);
  return names[static_cast<std::size_t>(device)];
}

int imitated_number(int device) {
  constexpr std::array numbers{80, 942, 1100, 1201, 80};
  static_assert(numbers.size() == device_count);
  return numbers[static_cast<std::size_t>(device)];
}

Functions functions() {
  Functions hip;
  hip.hipMalloc = &allocate;
  hip.hipFree = &release;
  hip.hipHostMalloc = [](void** pointer, std::size_t bytes, unsigned) {
    return allocate(pointer, bytes);
  };
  hip.hipHostFree = &release;
  hip.hipMemsetD32Async = &fill_async;
  hip.hipStreamCreateWithFlags = &create_stream;
  hip.hipStreamDestroy = &destroy<hipStream, &Device::streams>;
  hip.hipStreamQuery = &query_stream;
  hip.hipStreamWaitEvent = &wait_event;
  hip.hipStreamBeginCapture = &begin_capture;
  hip.hipStreamEndCapture = &end_capture;
  hip.hipGraphInstantiateWithFlags = &instantiate;
  hip.hipGraphLaunch = &launch_graph;
  hip.hipGraphExecDestroy = &destroy<hipGraphExec, &Device::executables>;
  hip.hipGraphDestroy = &destroy<hipGraph, &Device::graphs>;
  hip.hipEventCreateWithFlags = &create_event;
  hip.hipEventDestroy = &destroy<hipEvent, &Device::events>;
  hip.hipEventRecord = &record_event;
  hip.hipEventQuery = &query_event;
  hip.hipEventElapsedTime = &elapsed_time;
  hip.hipModuleLoadData = &load_module;
  hip.hipModuleUnload = &destroy<hipModule, &Device::modules>;
  hip.hipModuleGetFunction = &get_function;
  hip.hipModuleGetGlobal = &get_global;
  hip.hipFuncGetAttribute = &get_attribute;
  hip.hipModuleLaunchKernel = &launch;
  hip.launch_overlapping = &launch_overlapping;
  hip.set_device = &set_device;
  hip.reset_device = &reset_device;
  hip.abandon = &abandon;
  hip.copy_async = &copy_async;
  hip.can_access_peer = &can_access_peer;
  hip.enable_peer_access = [](int device, int peer) {
    return is_device(device) && is_device(peer) ? hipSuccess : hipErrorInvalidDevice;
  };
  hip.copy_peer_async = &copy_peer_async;
  hip.encode = &encode;
  hip.launch_param_end = HIP_LAUNCH_PARAM_END;
  hip.error_name = &error_name;
  hip.error_string = &error_string;
  return hip;
}

}  // namespace greta::device::hip::host
