#include "runtime/device/hip/host/modules.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/device/hardware/architectures.hpp"
#include "runtime/device/hip/host/elf_image.hpp"
#include "runtime/device/hip/host/functions.hpp"
#include "runtime/device/hip/host/state.hpp"

namespace greta::device::hip::host {

namespace {

/// Returns the argument block that `extra` refers to.
std::vector<unsigned char> argument_block(void** extra) {
  const unsigned char* bytes = nullptr;
  std::size_t size = 0;
  for (; *extra != HIP_LAUNCH_PARAM_END; extra += 2) {
    if (*extra == HIP_LAUNCH_PARAM_BUFFER_POINTER) bytes = static_cast<unsigned char*>(extra[1]);
    if (*extra == HIP_LAUNCH_PARAM_BUFFER_SIZE) size = *static_cast<std::size_t*>(extra[1]);
  }
  return {bytes, bytes + size};
}

}  // namespace

hipError_t load_module(hipModule_t* loaded, const void* image) {
  return on_device([&](Device& device) {
    if (!is_library(image))
      return explain(hipErrorInvalidImage, "it is not a library for this processor");
    const auto* const bytes = static_cast<const std::byte*>(image);
    auto library = Library::load({bytes, bytes + library_bytes(image)});
    if (!library) return explain(hipErrorInvalidImage, library.failure().message);
    if ((*library)->entry().imitates != imitated_number(device.number)) {
      return explain(hipErrorNoBinaryForGpu, "it was built for another device");
    }
    *loaded = device.modules.add(std::make_unique<hipModule>(hipModule{{*std::move(library)}}));
    return hipSuccess;
  });
}

hipError_t get_function(hipFunction_t* function, hipModule_t loaded, const char* name) {
  return on_device([&](Device& device) {
    if (!device.modules.has(loaded)) return hipErrorInvalidHandle;
    if (std::strcmp(loaded->function.library->entry().name, name) != 0) return hipErrorNotFound;
    *function = &loaded->function;
    return hipSuccess;
  });
}

hipError_t get_global(void** address, std::size_t* bytes, hipModule_t loaded, const char* name) {
  return on_device([&](Device& device) {
    if (!device.modules.has(loaded)) return hipErrorInvalidHandle;
    const auto memory = loaded->function.library->constant(name);
    if (memory.empty()) return hipErrorNotFound;
    *address = memory.data();
    *bytes = memory.size();
    return hipSuccess;
  });
}

hipError_t get_attribute(int* value, int attribute, hipFunction_t function) {
  return on_device([&](Device&) {
    const auto shared = static_cast<int>(function->library->summary().shared_bytes);
    const auto limit = static_cast<int>(function->library->entry().dynamic_bytes);
    switch (attribute) {
      case HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *value = static_cast<int>(max_block_threads);
        return hipSuccess;
      case HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
        *value = shared;
        return hipSuccess;
      case HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *value = std::max(0, limit - shared);
        return hipSuccess;
      case HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
      case HIP_FUNC_ATTRIBUTE_NUM_REGS:
        *value = 0;
        return hipSuccess;
      default:
        return hipErrorInvalidValue;
    }
  });
}

std::uint32_t argument_bytes(hipFunction_t function) {
  return function->library->entry().argument_bytes;
}

namespace {

hipError_t push_launch(hipFunction_t function, greta_host::Index grid, greta_host::Index block,
                       unsigned dynamic_bytes, hipStream_t stream, void** extra, bool overlaps) {
  const auto job = std::make_shared<Job>();
  job->library = function->library;
  job->arguments = argument_block(extra);
  BlockRunner::Launch& launch = job->launch;
  launch.grid = grid;
  launch.block = block;
  launch.dynamic_bytes = dynamic_bytes;
  launch.arguments = job->arguments.data();
  launch.summary = &job->library->summary();
  launch.wave_size = architecture_info(imitated(current_device()->number))->subgroup_size;
  const std::uint64_t threads = std::uint64_t{block.x} * block.y * block.z;
  const greta_host::Entry& entry = job->library->entry();
  const std::uint64_t shared = std::uint64_t{dynamic_bytes} + job->library->summary().shared_bytes;
  if (threads == 0 || threads > max_block_threads || shared > entry.dynamic_bytes) {
    return hipErrorLaunchOutOfResources;
  }
  if (job->arguments.size() < entry.argument_bytes || grid.x == 0 || grid.y == 0 || grid.z == 0) {
    return hipErrorInvalidValue;
  }
  const greta_host::Index of = entry.cluster;
  const std::uint64_t blocks = std::uint64_t{of.x} * of.y * of.z;
  if (blocks == 0 || blocks > max_cluster_blocks || grid.x % of.x != 0 || grid.y % of.y != 0 ||
      grid.z % of.z != 0) {
    return explain(hipErrorInvalidValue, "the grid has no whole clusters, or they are too large");
  }
  return push(stream, [&] {
    const auto run = [job](Execution& execution, Executor& executor,
                           const std::function<void()>& earlier) {
      auto fault = executor.run(*job, execution.cancelled, earlier);
      if (fault && !execution.cancelled) execution.failed->set(std::move(*fault));
    };
    return Command(run, overlaps);
  });
}

}  // namespace

hipError_t launch(hipFunction_t function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                  unsigned block_x, unsigned block_y, unsigned block_z, unsigned dynamic_bytes,
                  hipStream_t stream, void**, void** extra) {
  return push_launch(function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, dynamic_bytes,
                     stream, extra, false);
}

hipError_t launch_overlapping(hipFunction_t function, unsigned grid_x, unsigned grid_y,
                              unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,
                              unsigned dynamic_bytes, hipStream_t stream, void**, void** extra) {
  return push_launch(function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, dynamic_bytes,
                     stream, extra, true);
}

}  // namespace greta::device::hip::host
