#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "db/json.hpp"
#include "tuner/evaluate/evaluator.hpp"
#include "tuner/evaluate/local_evaluator.hpp"

namespace greta::tuner {

using db::to_json;  // configurations, trials and devices

// Messages between a session and its worker process: one JSON object per line. Requests have a
// "call", answers a "result" or an "error".

/// The version of the protocol. It changes whenever a message changes.
inline constexpr int worker_protocol = 7;

/// The descriptor of a worker's end of the connection.
inline constexpr int worker_descriptor = 3;

/// One end of the connection. It does not own the descriptor.
class LineChannel {
 public:
  explicit LineChannel(int descriptor) : descriptor_(descriptor) {}

  /// Returns false if the other end is closed.
  bool send(const nlohmann::json& message);

  enum class Received { message, closed, timeout };
  /// Waits at most `seconds` (negative: forever) for one line.
  Received receive(nlohmann::json& message, double seconds);

 private:
  int descriptor_;
  std::string buffer_;  // received after the last complete line
};

/// Returns the first message of both ends: the versions of the protocol and of GRETA, and the key
/// of each operation.
nlohmann::json greeting(const Catalog& catalog);
/// Checks that the two ends are compatible. `ours` is the greeting of this end, `theirs` that of
/// the other, or null if it sent none. A failure has a one-line message.
Result<void> check_greeting(const nlohmann::json& ours, const nlohmann::json& theirs);

nlohmann::json to_json(const EvaluatorOptions& options);
EvaluatorOptions evaluator_options_from_json(const nlohmann::json& json);
nlohmann::json to_json(const TrialLimits& limits);
TrialLimits limits_from_json(const nlohmann::json& json);
nlohmann::json to_json(const Rounds& rounds);
Rounds rounds_from_json(const nlohmann::json& json);
nlohmann::json to_json(const std::vector<Energy>& energies);
std::vector<Energy> energies_from_json(const nlohmann::json& in);
nlohmann::json to_json(const CounterReading& reading);
CounterReading reading_from_json(const nlohmann::json& json);
nlohmann::json to_json(const std::vector<Ceiling>& ceilings);
std::vector<Ceiling> ceilings_from_json(const nlohmann::json& json);
nlohmann::json to_json(const std::vector<Config>& configs);
std::vector<Config> configs_from_json(const nlohmann::json& json);

}  // namespace greta::tuner
