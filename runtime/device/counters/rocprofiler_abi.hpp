#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/device/layers.hpp"

/// The part of rocprofiler-sdk's binary interface (0.6 to 1.x, ROCm 6.4 and later) that GRETA uses,
/// so that no header of ROCm is needed to build. Names of functions and fields are its own, without
/// the prefix "rocprofiler_".
namespace greta::device::rocprofiler {

using StatusCode = int;
inline constexpr StatusCode success = 0;
inline constexpr StatusCode error_configuration_locked = 16;
inline constexpr StatusCode error_exceeds_hw_limit = 38;
inline constexpr StatusCode error_permission_denied = 40;

/// An opaque identifier: of a context, an agent, a counter or a set of counters.
struct Id {
  std::uint64_t handle = 0;
};
static_assert(sizeof(Id) == 8);

/// The beginning of an agent's description. Later fields are not used.
struct Agent {
  std::uint64_t size = 0;  ///< in bytes, of the library's structure
  Id id;
  std::uint32_t type = 0;
  std::uint32_t cpu_cores_count = 0;
  std::uint32_t simd_count = 0;
  std::uint32_t mem_banks_count = 0;
  std::uint32_t caches_count = 0;
  std::uint32_t io_links_count = 0;
  std::uint32_t cpu_core_id_base = 0;
  std::uint32_t simd_id_base = 0;
  std::uint32_t max_waves_per_simd = 0;
  std::uint32_t lds_size_in_kb = 0;
  std::uint32_t gds_size_in_kb = 0;
  std::uint32_t num_gws = 0;
  std::uint32_t wave_front_size = 0;
  std::uint32_t num_xcc = 0;
  std::uint32_t cu_count = 0;
  std::uint32_t array_count = 0;
  std::uint32_t num_shader_banks = 0;
  std::uint32_t simd_arrays_per_engine = 0;
  std::uint32_t cu_per_simd_array = 0;
  std::uint32_t simd_per_cu = 0;
  std::uint32_t max_slots_scratch_cu = 0;
  std::uint32_t gfx_target_version = 0;
  std::uint16_t vendor_id = 0;
  std::uint16_t device_id = 0;
  std::uint32_t location_id = 0;  ///< PCI bus << 8 | device << 3 | function
  std::uint32_t domain = 0;       ///< PCI domain
};
static_assert(offsetof(Agent, max_waves_per_simd) == 48 && offsetof(Agent, cu_count) == 72 &&
              offsetof(Agent, simd_per_cu) == 92 && offsetof(Agent, location_id) == 108 &&
              offsetof(Agent, domain) == 112);
inline constexpr std::uint32_t agent_type_gpu = 2;
inline constexpr int agent_info_version_0 = 1;
/// The size that is asked for, up to the last field above.
inline constexpr std::size_t agent_bytes = 116;

struct Dimensions {
  std::uint32_t x = 0, y = 0, z = 0;
};

/// A dispatch of a kernel. Callbacks receive it by value.
struct DispatchData {
  std::uint64_t size = 0;
  std::uint64_t correlation_internal = 0, correlation_external = 0;
  std::uint64_t start_timestamp = 0, end_timestamp = 0;  ///< nanoseconds; of a record only
  // kernel_dispatch_info_t
  std::uint64_t info_size = 0;
  Id agent_id, queue_id;
  std::uint64_t kernel_id = 0, dispatch_id = 0;
  std::uint32_t private_segment_size = 0, group_segment_size = 0;
  Dimensions workgroup_size, grid_size;
  std::uint8_t reserved_padding[56] = {};
};
static_assert(sizeof(DispatchData) == 168 && offsetof(DispatchData, agent_id) == 48);

/// The value of one instance of a counter, such as a shader engine's.
struct Record {
  std::uint64_t id = 0;  ///< of counter and instance
  double counter_value = 0;
  std::uint64_t dispatch_id = 0;
  std::uint64_t user_data = 0;
  Id agent_id;
};
static_assert(sizeof(Record) == 40);

struct CounterInfo {  ///< counter_info_v0_t
  Id id;
  const char* name = nullptr;
  const char* description = nullptr;
  const char* block = nullptr;
  const char* expression = nullptr;
  std::uint8_t flags = 0;
};
static_assert(sizeof(CounterInfo) == 48);
inline constexpr int counter_info_version_0 = 1;

struct ClientId {
  const char* name = nullptr;
  std::uint32_t handle = 0;
};

/// What a tool answers when it is asked to configure itself.
struct ToolConfigureResult {
  std::size_t size = 32;
  int (*initialize)(void (*finalize)(ClientId), void* tool_data) = nullptr;
  void (*finalize)(void* tool_data) = nullptr;
  void* tool_data = nullptr;
};
static_assert(sizeof(ToolConfigureResult) == 32);

using ConfigureFunction = ToolConfigureResult* (*)(std::uint32_t version, const char* text,
                                                   std::uint32_t priority, ClientId* client);
using DispatchCallback = void (*)(DispatchData data, Id* config, std::uint64_t* user_data,
                                  void* argument);
using RecordCallback = void (*)(DispatchData data, Record* records, std::size_t count,
                                std::uint64_t user_data, void* argument);
using AgentsCallback = StatusCode (*)(int version, const void** agents, std::size_t count,
                                      void* argument);
using CountersCallback = StatusCode (*)(Id agent, Id* counters, std::size_t count, void* argument);

struct Functions {
  StatusCode (*get_version)(std::uint32_t* major, std::uint32_t* minor,
                            std::uint32_t* patch) = nullptr;
  const char* (*get_status_string)(StatusCode status) = nullptr;
  StatusCode (*force_configure)(ConfigureFunction configure) = nullptr;
  StatusCode (*query_available_agents)(int version, AgentsCallback callback, std::size_t agent_size,
                                       void* argument) = nullptr;
  StatusCode (*create_context)(Id* context) = nullptr;
  StatusCode (*start_context)(Id context) = nullptr;
  StatusCode (*configure_callback_dispatch_counting_service)(Id context, DispatchCallback dispatch,
                                                             void* dispatch_argument,
                                                             RecordCallback record,
                                                             void* record_argument) = nullptr;
  StatusCode (*iterate_agent_supported_counters)(Id agent, CountersCallback callback,
                                                 void* argument) = nullptr;
  StatusCode (*query_counter_info)(Id counter, int version, void* info) = nullptr;
  /// create_profile_config before 1.0
  StatusCode (*create_counter_config)(Id agent, Id* counters, std::size_t count,
                                      Id* config) = nullptr;
  StatusCode (*destroy_counter_config)(Id config) = nullptr;
  StatusCode (*query_record_counter_id)(std::uint64_t record, Id* counter) = nullptr;
};

}  // namespace greta::device::rocprofiler
