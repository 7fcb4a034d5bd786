#include "tuner/evaluate/worker_protocol.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "db/json.hpp"
#include "runtime/device/version.hpp"
#include "tuner/measure/stopwatch.hpp"

namespace greta::tuner {

using nlohmann::json;

bool LineChannel::send(const json& message) {
  // Compiler logs may contain bytes that are not UTF-8.
  const std::string line = message.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
  for (std::size_t sent = 0; sent < line.size();) {
    const ssize_t n = ::send(descriptor_, line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    sent += static_cast<std::size_t>(n);
  }
  return true;
}

LineChannel::Received LineChannel::receive(json& message, double seconds) {
  const Stopwatch watch;
  while (true) {
    if (const auto end = buffer_.find('\n'); end != std::string::npos) {
      message = json::parse(buffer_.substr(0, end));
      buffer_.erase(0, end + 1);
      return Received::message;
    }
    const double left = seconds - watch.seconds();
    if (seconds >= 0 && left <= 0) return Received::timeout;
    pollfd waiting{descriptor_, POLLIN, 0};
    const int ready = poll(&waiting, 1, seconds < 0 ? -1 : static_cast<int>(left * 1000) + 1);
    if (ready < 0 && errno != EINTR) return Received::closed;
    if (ready <= 0) continue;
    char chunk[65536];
    const ssize_t n = read(descriptor_, chunk, sizeof chunk);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return Received::closed;
    buffer_.append(chunk, static_cast<std::size_t>(n));
  }
}

json greeting(const Catalog& catalog) {
  json operations = json::object();
  for (const Operation& operation : catalog) operations[operation.name] = operation.key();
  return {{"protocol", worker_protocol}, {"greta", version()}, {"operations", operations}};
}

Result<void> check_greeting(const json& ours, const json& theirs) {
  const auto differs = [](const std::string& how) {
    return Failure{Status::unavailable,
                   how + ": a worker must be of the same build as the program that starts it",
                   {}};
  };
  const auto field = [&](const char* name) {
    return theirs.is_object() && theirs.contains(name) ? theirs.at(name) : json();
  };
  const int protocol = field("protocol").is_number_integer() ? field("protocol").get<int>() : 0;
  if (protocol != worker_protocol) {
    return differs(fmt::format(
        "this process speaks version {} of the worker protocol (GRETA {}), the other one {} ({})",
        worker_protocol, version(), protocol,
        protocol > 0
            ? "GRETA " + (field("greta").is_string() ? field("greta").get<std::string>() : "?")
            : "no version that it reports"));
  }
  const json known = field("operations");
  for (const auto& [name, key] : ours.at("operations").items()) {
    if (!known.is_object() || !known.contains(name)) {
      return Failure{Status::unavailable,
                     fmt::format("a worker does not know the operation {}: it must be of the same "
                                 "build, and read the same descriptions of kernels, as the program "
                                 "that starts it",
                                 name),
                     {}};
    }
    if (known.at(name) != key) {
      return differs(fmt::format("two processes have different kernels of operation {}", name));
    }
  }
  return {};
}

json to_json(const EvaluatorOptions& options) {
  return {{"device", options.device},
          {"cache_directory", options.cache_directory.string()},
          {"seed", options.seed},
          {"flush_bytes", options.flush_bytes},
          {"compile_threads", options.compile_threads},
          {"compile_slots", options.compile_slots},
          {"compile_slot_count", options.compile_slot_count},
          {"sanitize", static_cast<int>(options.sanitize)},
          {"vendor", options.vendor},
          {"emulated_matrices", options.emulated_matrices},
          {"counters", options.counters},
          {"keep_failed", options.keep_failed.string()},
          {"avoid_f16", options.avoid.f16},
          {"avoid_matrix", options.avoid.matrix}};
}

EvaluatorOptions evaluator_options_from_json(const json& in) {
  EvaluatorOptions options;
  options.device = in.at("device").get<std::string>();
  options.cache_directory = in.at("cache_directory").get<std::string>();
  options.seed = in.at("seed").get<std::uint64_t>();
  options.flush_bytes = in.at("flush_bytes").get<std::uint64_t>();
  options.compile_threads = in.at("compile_threads").get<int>();
  options.compile_slots = in.at("compile_slots").get<std::string>();
  options.compile_slot_count = in.at("compile_slot_count").get<int>();
  options.sanitize = static_cast<Sanitize>(in.at("sanitize").get<int>());
  options.vendor = in.at("vendor").get<bool>();
  options.emulated_matrices = in.at("emulated_matrices").get<bool>();
  options.counters = in.at("counters").get<bool>();
  options.keep_failed = in.at("keep_failed").get<std::string>();
  options.avoid.f16 = in.at("avoid_f16").get<bool>();
  options.avoid.matrix = in.at("avoid_matrix").get<bool>();
  return options;
}

json to_json(const TrialLimits& limits) {
  return {{"run_s", limits.run_s},
          {"compile_s", limits.compile_s},
          {"measure_s", limits.measure_s},
          {"best_us", limits.best_us},
          {"cold", limits.cold},
          {"repeats", limits.repeats},
          {"small", limits.small},
          {"reject_spills", limits.reject_spills},
          {"adversarial", limits.inputs == InputStyle::adversarial}};
}

TrialLimits limits_from_json(const json& in) {
  TrialLimits limits;
  limits.run_s = in.at("run_s").get<double>();
  limits.compile_s = in.at("compile_s").get<double>();
  limits.measure_s = in.at("measure_s").get<double>();
  limits.best_us = in.at("best_us").get<double>();
  limits.cold = in.at("cold").get<bool>();
  limits.repeats = in.at("repeats").get<int>();
  limits.small = in.at("small").get<int>();
  limits.reject_spills = in.at("reject_spills").get<bool>();
  if (in.at("adversarial").get<bool>()) limits.inputs = InputStyle::adversarial;
  return limits;
}

json to_json(const Rounds& rounds) {
  json result{{"us", rounds.us},           {"batch", rounds.batch},
              {"dropped", rounds.dropped}, {"flush_bytes", rounds.flush_bytes},
              {"clocks", rounds.clocks},   {"card_state", to_json(rounds.card_state)}};
  if (rounds.failure) {
    result["failure"] = {{"status", static_cast<int>(rounds.failure->status)},
                         {"message", rounds.failure->message}};
  }
  return result;
}

Rounds rounds_from_json(const json& in) {
  Rounds rounds;
  rounds.us = in.at("us").get<std::vector<std::vector<double>>>();
  rounds.batch = in.at("batch").get<std::vector<int>>();
  rounds.dropped = in.at("dropped").get<int>();
  rounds.flush_bytes = in.at("flush_bytes").get<std::uint64_t>();
  rounds.clocks = in.at("clocks").get<std::string>();
  rounds.card_state = card_state_from_json(in.at("card_state"));
  if (in.contains("failure")) {
    const auto& failure = in.at("failure");
    rounds.failure = Failure{static_cast<Status>(failure.at("status").get<int>()),
                             failure.at("message").get<std::string>(),
                             {}};
  }
  return rounds;
}

json to_json(const std::vector<Ceiling>& ceilings) {
  json result = json::array();
  for (const auto& c : ceilings) {
    result.push_back({{"kind", c.kind},
                      {"value", c.value},
                      {"spread_percent", c.spread_percent},
                      {"driver", c.driver},
                      {"measured_utc", c.measured_utc}});
  }
  return result;
}

std::vector<Ceiling> ceilings_from_json(const json& in) {
  std::vector<Ceiling> ceilings;
  for (const auto& c : in) {
    ceilings.push_back({c.at("kind").get<std::string>(), c.at("value").get<double>(),
                        c.at("spread_percent").get<double>(), c.at("driver").get<std::string>(),
                        c.at("measured_utc").get<std::string>()});
  }
  return ceilings;
}

json to_json(const CounterReading& reading) {
  return {{"source", reading.source.name},
          {"chip", reading.source.chip},
          {"values", reading.values},
          {"passes", reading.passes}};
}

CounterReading reading_from_json(const json& in) {
  return {.source = {in.at("source").get<std::string>(), in.at("chip").get<std::string>()},
          .values = in.at("values").get<std::map<std::string, double>>(),
          .passes = in.at("passes").get<int>()};
}

json to_json(const std::vector<Energy>& energies) {
  json result = json::array();
  for (const Energy& energy : energies) {
    result.push_back({{"joules", energy.joules},
                      {"low", energy.low},
                      {"high", energy.high},
                      {"watts", energy.watts},
                      {"us", energy.us},
                      {"source", energy.source}});
  }
  return result;
}

std::vector<Energy> energies_from_json(const json& in) {
  std::vector<Energy> energies;
  for (const auto& energy : in) {
    energies.push_back({energy.at("joules").get<double>(), energy.at("low").get<double>(),
                        energy.at("high").get<double>(), energy.at("watts").get<double>(),
                        energy.at("us").get<double>(), energy.at("source").get<std::string>()});
  }
  return energies;
}

json to_json(const std::vector<Config>& configs) {
  json result = json::array();
  for (const auto& config : configs) result.push_back(to_json(config));
  return result;
}

std::vector<Config> configs_from_json(const json& in) {
  std::vector<Config> configs;
  for (const auto& config : in) configs.push_back(config_from_json(config));
  return configs;
}

}  // namespace greta::tuner
