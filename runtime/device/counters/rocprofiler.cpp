#include "runtime/device/counters/rocprofiler.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <optional>
#include <set>
#include <utility>

#include "runtime/device/counters/counted_part.hpp"
#include "runtime/device/counters/rocprofiler_session.hpp"
#include "runtime/device/refusal.hpp"

namespace greta::device::rocprofiler {
namespace {

constexpr const char* dispatch_time = "dispatch.ns";

/// The numbers of a GPU that formulas need, under the names that read() takes.
std::map<std::string, double> numbers_of(const Agent& agent) {
  return {{"agent.cu_count", agent.cu_count},
          {"agent.simd_per_cu", agent.simd_per_cu},
          {"agent.max_waves_per_simd", agent.max_waves_per_simd},
          {"agent.num_xcc", agent.num_xcc}};
}

/// Returns whether an agent is the GPU at a PCI address.
bool is_at(const Agent& agent, const std::string& pci_address) {
  unsigned domain = 0, bus = 0, device = 0, function = 0;
  if (std::sscanf(pci_address.c_str(), "%x:%x:%x.%x", &domain, &bus, &device, &function) != 4) {
    return false;
  }
  return agent.type == agent_type_gpu && agent.domain == domain &&
         agent.location_id == (bus << 8U | device << 3U | function);
}

std::vector<Agent> agents_of(const Session& library) {
  std::vector<Agent> agents;
  const AgentsCallback collect = [](int, const void** all, std::size_t count,
                                    void* to) -> StatusCode {
    for (std::size_t i = 0; i < count; ++i) {
      static_cast<std::vector<Agent>*>(to)->push_back(*static_cast<const Agent*>(all[i]));
    }
    return success;
  };
  library.check(
      library.call().query_available_agents(agent_info_version_0, collect, agent_bytes, &agents),
      "query_available_agents");
  return agents;
}

/// A name that read() takes: "GRBM_GUI_ACTIVE.max".
struct Wanted {
  std::string name;
  std::string counter;
  bool max = false;
};

std::optional<Wanted> wanted_of(const std::string& name) {
  const auto dot = name.rfind('.');
  if (dot == std::string::npos) return std::nullopt;
  const std::string how = name.substr(dot + 1);
  if (how != "sum" && how != "max") return std::nullopt;
  return Wanted{name, name.substr(0, dot), how == "max"};
}

/// Sets of counters that the hardware counts in one pass each, until destruction.
class Passes {
 public:
  Passes(const Session& library, Id agent) : library_(library), agent_(agent) {}
  ~Passes() {
    for (const Id config : configs_) library_.call().destroy_counter_config(config);
  }
  Passes(const Passes&) = delete;
  Passes& operator=(const Passes&) = delete;

  /// Adds a counter to the last pass, or to a new one if the hardware does not count it along with
  /// the others. Leaves out a counter that can't be counted at all.
  void add(Id counter) {
    if (!group_.empty()) {
      group_.push_back(counter);
      if (const auto config = create()) {
        library_.call().destroy_counter_config(configs_.back());
        configs_.back() = *config;
        return;
      }
    }
    const auto before = std::exchange(group_, {counter});
    if (const auto config = create()) {
      configs_.push_back(*config);
    } else {
      group_ = before;
      if (!group_.empty()) group_.pop_back();
    }
  }
  const std::vector<Id>& configs() const { return configs_; }

 private:
  /// Returns the set of the counters of the group, or nothing if the hardware has no such set.
  std::optional<Id> create() {
    Id config;
    const StatusCode status =
        library_.call().create_counter_config(agent_, group_.data(), group_.size(), &config);
    if (status == error_permission_denied) library_.check(status, "create_counter_config");
    return status == success ? std::optional(config) : std::nullopt;
  }

  const Session& library_;
  Id agent_;
  std::vector<Id> group_;  ///< counters of the last pass
  std::vector<Id> configs_;
};

class Reader final : public CounterReader {
 public:
  Reader(Session& library, const Agent& agent, std::string chip)
      : library_(library), agent_(agent), source_{library.name(), std::move(chip)} {
    learn_counters();
  }

  const CounterSource& source() const override { return source_; }

  Result<CounterReading> read(const std::vector<std::string>& names,
                              const CountedWork& work) override {
    try {
      return counted(names, work);
    } catch (const std::exception&) {
      library_.cancel();
      return current_failure();
    }
  }

 private:
  void learn_counters() {
    std::vector<Id> all;
    const CountersCallback collect = [](Id, Id* counters, std::size_t count,
                                        void* to) -> StatusCode {
      auto& list = *static_cast<std::vector<Id>*>(to);
      list.insert(list.end(), counters, counters + count);
      return success;
    };
    library_.check(library_.call().iterate_agent_supported_counters(agent_.id, collect, &all),
                   "iterate_agent_supported_counters");
    for (const Id counter : all) {
      CounterInfo info;
      library_.check(library_.call().query_counter_info(counter, counter_info_version_0, &info),
                     "query_counter_info");
      counters_.emplace(info.name, counter);
    }
  }

  Result<CounterReading> counted(const std::vector<std::string>& names, const CountedWork& work) {
    std::vector<Wanted> wanted;
    Passes passes(library_, agent_.id);
    std::set<std::string> added;
    for (const std::string& name : names) {
      const auto one = wanted_of(name);
      if (!one || !counters_.contains(one->counter)) continue;
      wanted.push_back(*one);
      if (added.insert(one->counter).second) passes.add(counters_.at(one->counter));
    }
    if (passes.configs().empty()) {
      return Failure{Status::unavailable,
                     fmt::format("{} knows none of the counters of {}", source_.name, source_.chip),
                     {}};
    }
    CounterReading reading{.source = source_, .values = {}, .passes = 0};
    double ns = 0;
    std::map<std::uint64_t, Session::Value> values;
    for (const Id config : passes.configs()) {
      auto counts = pass(config, work);
      if (!counts) return counts.failure();
      ++reading.passes;
      ns += counts->ns;
      values.merge(counts->values);
    }
    for (const Wanted& one : wanted) {
      const auto found = values.find(counters_.at(one.counter).handle);
      if (found == values.end()) continue;
      reading.values[one.name] = one.max ? found->second.max : found->second.sum;
    }
    add_known(names, ns / reading.passes, reading);
    return reading;
  }

  /// Adds what is no hardware counter, if it is asked for.
  void add_known(const std::vector<std::string>& names, double ns, CounterReading& reading) const {
    const auto numbers = numbers_of(agent_);
    for (const std::string& name : names) {
      if (const auto number = numbers.find(name); number != numbers.end()) {
        reading.values[name] = number->second;
      } else if (name == dispatch_time && ns > 0) {
        reading.values[name] = ns;
      }
    }
  }

  Result<Session::Counts> pass(Id config, const CountedWork& work) {
    if (auto prepared = run_part(work, work.prepare); !prepared) return prepared.failure();
    library_.begin(agent_.id, config);
    if (auto done = run_part(work, work.record); !done) {
      library_.cancel();
      return done.failure();
    }
    return library_.finish(work.deadline);
  }

  Session& library_;
  Agent agent_;
  CounterSource source_;
  std::map<std::string, Id> counters_;  ///< that the GPU has, by name
};

}  // namespace

Result<std::unique_ptr<CounterReader>> open(Session& library, const Target& target) {
  try {
    for (const Agent& agent : agents_of(library)) {
      if (!is_at(agent, target.pci_address)) continue;
      return std::unique_ptr<CounterReader>(std::make_unique<Reader>(library, agent, target.chip));
    }
    return Failure{Status::unavailable,
                   fmt::format("{} lists no GPU at {}", library.name(), target.pci_address),
                   {}};
  } catch (const std::exception&) {
    return current_failure();
  }
}

}  // namespace greta::device::rocprofiler
