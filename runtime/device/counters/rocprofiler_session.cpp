#include "runtime/device/counters/rocprofiler_session.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/device/refusal.hpp"
#include "runtime/device/system/dynamic_library.hpp"

namespace greta::device::rocprofiler {
namespace {

Session* configuring = nullptr;  // the library gives its callback no argument

Functions load(const DynamicLibrary& library) {
  Functions all;
  const auto one = [&](auto*& function, const char* name) {
    library.load(function, std::string("rocprofiler_") + name).value();
  };
  one(all.get_version, "get_version");
  one(all.get_status_string, "get_status_string");
  one(all.force_configure, "force_configure");
  one(all.query_available_agents, "query_available_agents");
  one(all.create_context, "create_context");
  one(all.start_context, "start_context");
  one(all.iterate_agent_supported_counters, "iterate_agent_supported_counters");
  one(all.query_counter_info, "query_counter_info");
  one(all.query_record_counter_id, "query_record_counter_id");
  return all;
}

/// Loads what earlier versions lack or name otherwise.
void load_differing(const DynamicLibrary& library, Functions& all) {
  library
      .load(all.configure_callback_dispatch_counting_service,
            "rocprofiler_configure_callback_dispatch_counting_service")
      .value();
  library.load_optional(all.create_counter_config, "rocprofiler_create_counter_config");
  library.load_optional(all.destroy_counter_config, "rocprofiler_destroy_counter_config");
  if (all.create_counter_config != nullptr && all.destroy_counter_config != nullptr) return;
  library.load(all.create_counter_config, "rocprofiler_create_profile_config").value();
  library.load(all.destroy_counter_config, "rocprofiler_destroy_profile_config").value();
}

}  // namespace

void Session::check(StatusCode status, const char* function) const {
  if (status == success) return;
  const char* const text = call_.get_status_string(status);
  std::string why = fmt::format("rocprofiler_{}: {}", function,
                                text != nullptr ? text : fmt::format("error {}", status));
  if (status == error_permission_denied) {
    why =
        "the driver permits no counters to this user: run as root, or with the capability "
        "CAP_PERFMON; " +
        why;
  }
  throw Refusal(Status::unavailable, why);
}

void Session::configure() {
  std::uint32_t major = 0, minor = 0, patch = 0;
  check(call_.get_version(&major, &minor, &patch), "get_version");
  name_ = fmt::format("rocprofiler-sdk {}.{}", major, minor);
  // Records of earlier versions are smaller.
  if (major == 0 && minor < 6) {
    throw Refusal(Status::unavailable,
                  name_ + " is too old to count with: 0.6 (ROCm 6.4) or later is needed");
  }
  configuring = this;
  const StatusCode status = call_.force_configure(&Session::on_configure);
  configuring = nullptr;
  if (status == error_configuration_locked) {
    throw Refusal(Status::unavailable,
                  "another profiler has configured rocprofiler-sdk in this process");
  }
  check(status, "force_configure");
  if (!failure_.empty()) throw Refusal(Status::unavailable, failure_);
  if (!initialized_) {
    throw Refusal(Status::unavailable, "rocprofiler_force_configure: did not initialize the tool");
  }
}

ToolConfigureResult* Session::on_configure(std::uint32_t /*version*/, const char* /*text*/,
                                           std::uint32_t /*priority*/, ClientId* client) {
  Session* const self = configuring;
  if (self == nullptr) return nullptr;
  client->name = "GRETA";
  self->tool_ = {.size = sizeof(ToolConfigureResult),
                 .initialize = &Session::on_initialize,
                 .finalize = &Session::on_finalize,
                 .tool_data = self};
  return &self->tool_;
}

int Session::on_initialize(void (* /*finalize*/)(ClientId), void* tool) {
  auto* const self = static_cast<Session*>(tool);
  try {
    const Functions& call = self->call_;
    self->check(call.create_context(&self->context_), "create_context");
    self->check(call.configure_callback_dispatch_counting_service(
                    self->context_, &Session::on_dispatch, self, &Session::on_record, self),
                "configure_callback_dispatch_counting_service");
    self->check(call.start_context(self->context_), "start_context");
    self->initialized_ = true;
    return 0;
  } catch (const std::exception& error) {
    self->failure_ = error.what();
    return -1;
  }
}

void Session::on_finalize(void* self) {
  static_cast<Session*>(self)->cancel();
}

void Session::on_dispatch(DispatchData data, Id* config, std::uint64_t* user_data, void* argument) {
  auto* const self = static_cast<Session*>(argument);
  const std::lock_guard lock(self->mutex_);
  *user_data = 0;
  if (!self->counting_ || data.agent_id.handle != self->agent_.handle) return;
  *config = self->config_;
  *user_data = self->reading_;
  ++self->announced_;
}

void Session::on_record(DispatchData data, Record* records, std::size_t count,
                        std::uint64_t user_data, void* argument) {
  auto* const self = static_cast<Session*>(argument);
  const std::lock_guard lock(self->mutex_);
  if (!self->counting_ || user_data != self->reading_) return;  // of a reading that was given up
  self->add(data, records, count);
  self->arrived_.notify_all();
}

void Session::add(const DispatchData& data, const Record* records, std::size_t count) {
  std::map<std::uint64_t, Value> dispatch;
  for (std::size_t i = 0; i < count; ++i) {
    Id counter;
    if (call_.query_record_counter_id(records[i].id, &counter) != success) continue;
    Value& value = dispatch[counter.handle];
    value.sum += records[i].counter_value;
    value.max = std::max(value.max, records[i].counter_value);
  }
  for (const auto& [counter, value] : dispatch) {
    counts_.values[counter].sum += value.sum;
    counts_.values[counter].max += value.max;
  }
  if (data.end_timestamp > data.start_timestamp) {
    counts_.ns += static_cast<double>(data.end_timestamp - data.start_timestamp);
  }
  ++counts_.dispatches;
}

void Session::begin(Id agent, Id config) {
  const std::lock_guard lock(mutex_);
  agent_ = agent;
  config_ = config;
  counts_ = {};
  announced_ = 0;
  ++reading_;
  counting_ = true;
}

Session::Counts Session::finish(Deadline deadline) {
  std::unique_lock lock(mutex_);
  const bool all =
      arrived_.wait_for(lock, deadline, [this] { return counts_.dispatches >= announced_; });
  counting_ = false;
  if (!all) {
    throw Refusal(Status::unavailable, fmt::format("{} gave the counts of {} of {} dispatches",
                                                   name_, counts_.dispatches, announced_));
  }
  if (announced_ == 0) {
    throw Refusal(Status::unavailable,
                  name_ + " saw no dispatch: the HIP runtime does not announce its queues to it");
  }
  return std::move(counts_);
}

void Session::cancel() {
  const std::lock_guard lock(mutex_);
  counting_ = false;
}

std::vector<std::string> default_libraries() {
  std::vector<std::string> names;
  for (const char* folder : {"", "/opt/rocm/lib/"}) {
    for (const char* name :
         {"librocprofiler-sdk.so.1", "librocprofiler-sdk.so.0", "librocprofiler-sdk.so"}) {
      names.push_back(std::string(folder) + name);
    }
  }
  return names;
}

Result<Session*> configure(const std::vector<std::string>& libraries) {
  try {
    auto library = DynamicLibrary::open(libraries);
    if (!library) {
      return Failure{Status::unavailable,
                     "there is no rocprofiler-sdk, which reads the counters of AMD GPUs: "
                     "librocprofiler-sdk.so was not found, also not in /opt/rocm/lib",
                     library.failure().message};
    }
    Functions functions = load(*library);
    load_differing(*library, functions);
    library->keep_open();
    // The library calls its tools until the process ends, also those that failed.
    static auto* const kept = new std::vector<std::unique_ptr<Session>>;
    kept->push_back(std::make_unique<Session>(functions));
    kept->back()->configure();
    return kept->back().get();
  } catch (const std::exception&) {
    return current_failure();
  }
}

}  // namespace greta::device::rocprofiler
