#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "db/json.hpp"
#include "tuner/evaluate/evaluator.hpp"
#include "tuner/evaluate/local_evaluator.hpp"

namespace greta::tuner {

using db::to_json;  // of configurations, trials and devices

// Messages between a session and its worker process: one JSON object per line, requests with a
// "call", answers with a "result" or an "error".

/// The version of these messages; it changes with each of them.
inline constexpr int worker_protocol = 1;

/// The descriptor on which a worker finds its end of the connection.
inline constexpr int worker_descriptor = 3;

/// One end of the connection. Does not own the descriptor.
class LineChannel {
 public:
  explicit LineChannel(int descriptor) : descriptor_(descriptor) {}

  /// False when the other end is gone.
  bool send(const nlohmann::json& message);

  enum class Received { message, closed, timeout };
  /// Waits at most `seconds` (negative: for ever) for one line.
  Received receive(nlohmann::json& message, double seconds);

 private:
  int descriptor_;
  std::string buffer_;  // received beyond the last line
};

/// What both ends tell each other first: the protocol's version, GRETA's, and the key of each
/// operation.
nlohmann::json greeting(const Catalog& catalog);
/// Whether the two ends understand each other. `theirs` is a greeting, or null where the other end
/// sent none. A failure is one line.
Result<void> check_greeting(const Catalog& catalog, const nlohmann::json& theirs);

nlohmann::json to_json(const EvaluatorOptions& options);
EvaluatorOptions evaluator_options_from_json(const nlohmann::json& json);
nlohmann::json to_json(const TrialLimits& limits);
TrialLimits limits_from_json(const nlohmann::json& json);
nlohmann::json to_json(const Rounds& rounds);
Rounds rounds_from_json(const nlohmann::json& json);
nlohmann::json to_json(const std::vector<Ceiling>& ceilings);
std::vector<Ceiling> ceilings_from_json(const nlohmann::json& json);
nlohmann::json to_json(const std::vector<Config>& configs);
std::vector<Config> configs_from_json(const nlohmann::json& json);

}  // namespace greta::tuner
