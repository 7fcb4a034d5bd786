#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/device/counters/rocprofiler.hpp"
#include "runtime/device/counters/rocprofiler_abi.hpp"

namespace greta::device::rocprofiler {

/// rocprofiler-sdk in this process. It calls on_dispatch() and on_record() from its own threads.
class Session {
 public:
  /// Values of one counter.
  struct Value {
    double sum = 0;  ///< over instances and dispatches
    double max = 0;  ///< of the instances, summed over dispatches
  };
  /// What was counted between begin() and finish().
  struct Counts {
    std::map<std::uint64_t, Value> values;  ///< by the counter's handle
    double ns = 0;                          ///< of the dispatches
    int dispatches = 0;
  };

  explicit Session(Functions functions) : call_(functions) {}
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const Functions& call() const { return call_; }
  const std::string& name() const { return name_; }  ///< "rocprofiler-sdk 1.0"

  /// Throws a Refusal that names the function, unless it succeeded.
  void check(StatusCode status, const char* function) const;
  /// Checks the version and configures the service. Throws Refusal.
  void configure();

  /// From now on, dispatches of this GPU are counted with this set of counters.
  void begin(Id agent, Id config);
  /// Waits for the counts of all dispatches since begin(), and stops counting. Throws Refusal.
  Counts finish(Deadline deadline);
  /// Stops counting. Counts that are still missing are dropped.
  void cancel();

 private:
  static ToolConfigureResult* on_configure(std::uint32_t version, const char* text,
                                           std::uint32_t priority, ClientId* client);
  static int on_initialize(void (*finalize)(ClientId), void* self);
  static void on_finalize(void* self);
  static void on_dispatch(DispatchData data, Id* config, std::uint64_t* user_data, void* self);
  static void on_record(DispatchData data, Record* records, std::size_t count,
                        std::uint64_t user_data, void* self);
  void add(const DispatchData& data, const Record* records, std::size_t count);

  Functions call_;
  std::string name_;
  Id context_;
  ToolConfigureResult tool_;
  bool initialized_ = false;
  std::string failure_;  ///< why it could not be initialized

  std::mutex mutex_;
  std::condition_variable arrived_;
  bool counting_ = false;
  std::uint64_t reading_ = 0;  ///< number of the reading, which its dispatches carry
  Id agent_, config_;
  int announced_ = 0;  ///< dispatches that will be counted
  Counts counts_;
};

}  // namespace greta::device::rocprofiler
