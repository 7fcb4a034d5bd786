#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::tuner {

/// Reports of one kind.
struct CheckerMessage {
  std::string kind;   ///< id of the message, or the kind of the report
  bool error = true;  ///< otherwise a warning
  std::uint64_t count = 0;
  std::string first;  ///< text of the first report, of one or several lines
};

/// What a checker (a validation layer or compute-sanitizer) reported, counted by kind.
class Findings {
 public:
  void add(const std::string& kind, bool error, const std::string& text, std::uint64_t count = 1);

  std::uint64_t errors() const { return errors_; }
  std::uint64_t warnings() const { return warnings_; }
  /// Returns errors before warnings, and the most frequent ones first.
  std::vector<CheckerMessage> list() const;

 private:
  std::map<std::pair<std::string, bool>, CheckerMessage> found_;
  std::uint64_t errors_ = 0, warnings_ = 0;
};

/// Returns {"errors", "warnings", "kinds": [{"kind", "error", "count", "first"}]}.
nlohmann::ordered_json to_json(const Findings& findings);

}  // namespace greta::tuner
