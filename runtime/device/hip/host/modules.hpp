#pragma once

#include <cstdint>

#include "runtime/device/hip/functions.hpp"

namespace greta::device::hip::host {

// HIP's functions for modules and kernels, with the signatures of the function table.

hipError_t load_module(hipModule_t* loaded, const void* image);
hipError_t get_function(hipFunction_t* function, hipModule_t loaded, const char* name);
hipError_t get_global(void** address, std::size_t* bytes, hipModule_t loaded, const char* name);
hipError_t get_attribute(int* value, int attribute, hipFunction_t function);
hipError_t launch(hipFunction_t function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                  unsigned block_x, unsigned block_y, unsigned block_z, unsigned dynamic_bytes,
                  hipStream_t stream, void** parameters, void** extra);

/// Of a graph, the blocks of a launch may begin before the launch ahead of it (run_graph()).
hipError_t launch_overlapping(hipFunction_t function, unsigned grid_x, unsigned grid_y,
                              unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,
                              unsigned dynamic_bytes, hipStream_t stream, void** parameters,
                              void** extra);

/// Returns the size in bytes of a kernel's argument block.
std::uint32_t argument_bytes(hipFunction_t function);

}  // namespace greta::device::hip::host
