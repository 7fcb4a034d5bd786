// A library with rocprofiler-sdk's binary interface. It counts nothing: a dispatch has the values
// that tests set, for each instance of a counter.

#include "tests/device/counters/fake/fake_rocprofiler.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <iterator>
#include <thread>

#include "runtime/device/counters/rocprofiler_abi.hpp"

using namespace greta::device::rocprofiler;

namespace {

using State = greta::test::FakeRocprofiler;

struct Tool {
  DispatchCallback dispatch = nullptr;
  RecordCallback record = nullptr;
  void* argument = nullptr;
};

Tool tool;
std::map<std::uint64_t, std::vector<std::string>> sets;
std::vector<std::jthread> threads;
std::uint64_t last_set = 0x100, last_dispatch = 0;
bool initializing = false;
constexpr std::uint64_t context_handle = 77;

State& state();

/// The handle of a counter: its position from 1 on.
std::uint64_t handle_of(const std::string& name) {
  const auto& all = state().counters;
  return 1 + static_cast<std::uint64_t>(std::distance(all.begin(), all.find(name)));
}

void dispatch(std::uint64_t agent) {
  DispatchData data;
  data.size = sizeof data;
  data.agent_id.handle = agent;
  data.dispatch_id = ++last_dispatch;
  Id set;
  std::uint64_t user_data = 0;
  if (tool.dispatch != nullptr) tool.dispatch(data, &set, &user_data, tool.argument);
  if (set.handle == 0) {
    ++state().ignored;
    return;
  }
  if (!sets.contains(set.handle)) {
    state().misuse.emplace_back("a set that was destroyed");
    return;
  }
  state().counted.push_back(sets[set.handle]);
  if (state().drops_records) return;
  std::vector<Record> records;
  for (const std::string& name : sets[set.handle]) {
    const auto& instances = state().counters[name];
    for (std::size_t i = 0; i < instances.size(); ++i) {
      records.push_back({.id = i << 32U | handle_of(name),
                         .counter_value = instances[i],
                         .dispatch_id = data.dispatch_id,
                         .user_data = 0,
                         .agent_id = {agent}});
    }
  }
  data.start_timestamp = 1000;
  data.end_timestamp = 1000 + state().dispatch_ns;
  threads.emplace_back([data, records, user_data]() mutable {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    tool.record(data, records.data(), records.size(), user_data, tool.argument);
  });
}

void settle() {
  threads.clear();  // joins them
}

State& state() {
  static State it;
  it.dispatch = dispatch;
  it.settle = settle;
  return it;
}

StatusCode result_of(const char* function) {
  const auto found = state().results.find(function);
  return found == state().results.end() ? success : found->second;
}

}  // namespace

extern "C" {

State* fake_rocprofiler() {
  return &state();
}

StatusCode rocprofiler_get_version(std::uint32_t* major, std::uint32_t* minor,
                                   std::uint32_t* patch) {
  *major = state().major;
  *minor = state().minor;
  *patch = 3;
  return success;
}

const char* rocprofiler_get_status_string(StatusCode status) {
  return status == error_permission_denied  ? "Permission denied"
         : status == error_exceeds_hw_limit ? "Request exceeds the hardware"
         : status == 12                     ? "Context conflict"
                                            : nullptr;
}

StatusCode rocprofiler_force_configure(ConfigureFunction configure) {
  if (const StatusCode wanted = result_of("force_configure"); wanted != success) return wanted;
  if (state().on_configure) state().on_configure();
  ClientId client;
  const ToolConfigureResult* const answer = configure(10000, "fake", 0, &client);
  if (answer == nullptr || answer->size != 32) {
    state().misuse.emplace_back("no answer to the configuration");
    return success;
  }
  initializing = true;
  answer->initialize(nullptr, answer->tool_data);
  initializing = false;
  return success;
}

StatusCode rocprofiler_query_available_agents(int version, AgentsCallback callback,
                                              std::size_t bytes, void* argument) {
  constexpr std::size_t whole = 320;  // the real structure is longer than what GRETA reads
  if (version != 1 || bytes > whole) state().misuse.emplace_back("another size of agents");
  std::vector<std::vector<std::uint8_t>> memory;
  std::vector<const void*> agents;
  Agent processor;
  processor.type = 1;
  const auto add = [&](const Agent& agent) {
    memory.emplace_back(whole, std::uint8_t{0xee});
    std::memcpy(memory.back().data(), &agent, agent_bytes);
  };
  add(processor);
  for (const auto& one : state().agents) {
    Agent agent;
    agent.size = whole;
    agent.id.handle = one.handle;
    agent.type = agent_type_gpu;
    agent.max_waves_per_simd = one.waves;
    agent.num_xcc = one.dies;
    agent.cu_count = one.compute_units;
    agent.simd_per_cu = one.simds;
    agent.location_id = one.location;
    agent.domain = one.domain;
    add(agent);
  }
  for (const auto& one : memory) agents.push_back(one.data());
  return callback(1, agents.data(), agents.size(), argument);
}

StatusCode rocprofiler_create_context(Id* context) {
  if (!initializing) state().misuse.emplace_back("a context after the initialization");
  context->handle = context_handle;
  return result_of("create_context");
}

StatusCode rocprofiler_configure_callback_dispatch_counting_service(Id context,
                                                                    DispatchCallback dispatched,
                                                                    void* argument,
                                                                    RecordCallback record, void*) {
  if (!initializing || context.handle != context_handle) {
    state().misuse.emplace_back("the service of another context");
  }
  tool = {dispatched, record, argument};
  return result_of("configure_callback_dispatch_counting_service");
}

StatusCode rocprofiler_start_context(Id context) {
  state().started = context.handle == context_handle;
  return result_of("start_context");
}

StatusCode rocprofiler_iterate_agent_supported_counters(Id agent, CountersCallback callback,
                                                        void* argument) {
  std::vector<Id> all;
  for (const auto& [name, instances] : state().counters) all.push_back({handle_of(name)});
  callback(agent, all.data(), all.size(), argument);
  return result_of("iterate_agent_supported_counters");
}

StatusCode rocprofiler_query_counter_info(Id counter, int version, void* info) {
  if (version != 1) state().misuse.emplace_back("another version of a counter's description");
  const auto found = std::next(state().counters.begin(), static_cast<long>(counter.handle) - 1);
  *static_cast<CounterInfo*>(info) = {counter, found->first.c_str(), "", "SQ", "", 0};
  return success;
}

StatusCode rocprofiler_create_counter_config(Id /*agent*/, Id* counters, std::size_t count,
                                             Id* set) {
  if (const StatusCode wanted = result_of("create_counter_config"); wanted != success) {
    return wanted;
  }
  if (count > state().most_a_pass) return error_exceeds_hw_limit;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) {
    names.push_back(
        std::next(state().counters.begin(), static_cast<long>(counters[i].handle) - 1)->first);
    const auto& not_these = state().not_countable;
    if (std::find(not_these.begin(), not_these.end(), names.back()) != not_these.end()) return 20;
  }
  set->handle = ++last_set;
  sets[last_set] = names;
  ++state().sets;
  return success;
}

StatusCode rocprofiler_destroy_counter_config(Id set) {
  if (sets.erase(set.handle) == 0) state().misuse.emplace_back("a set destroyed twice");
  --state().sets;
  return success;
}

StatusCode rocprofiler_query_record_counter_id(std::uint64_t record, Id* counter) {
  counter->handle = record & 0xffffffffU;
  return success;
}

}  // extern "C"
