#include "tuner/cli/bench/bench_json.hpp"

#include <cmath>

#include "db/json.hpp"

namespace greta::tuner::cli {
namespace {

using Json = nlohmann::ordered_json;

// A number that is unknown is null.
Json known_or_null(double value) {
  return value > 0 && std::isfinite(value) ? Json(value) : Json();
}

Json row_object(const NamedResult& row) {
  const MeasuredResult& result = row.result;
  const Subject& subject = result.subject;
  const ProblemWords words = subject.words();
  const double us = result.us.median;
  const auto rate = [&](double amount) { return us > 0 ? known_or_null(amount / us) : Json(); };
  return {{"name", row.name},
          {"op", words.op},
          {"dtype", words.dtype},
          {"out_dtype", words.out_dtype},
          {"problem", words.dims},
          {"attributes", words.attributes},
          {"backend", subject.backend},
          {"device", subject.device},
          {"origin", to_string(subject.origin)},
          {"config", subject.config ? Json(subject.config->text()) : Json()},
          {"status", result.failure ? to_string(result.failure->status) : "ok"},
          {"message", result.failure ? result.failure->message : ""},
          {"median_us", known_or_null(us)},
          {"low_us", known_or_null(result.us.low)},
          {"high_us", known_or_null(result.us.high)},
          {"tflops", rate(result.work.flops / 1e6)},
          {"gbps", rate(result.work.bytes / 1e3)},
          {"roofline", known_or_null(result.roofline)},
          {"error", result.verdict.bound > 0 ? Json(result.verdict.error) : Json()},
          {"bound", known_or_null(result.verdict.bound)},
          {"speedup", known_or_null(result.speedup.estimate)},
          {"samples", result.count},
          {"counters", result.counters ? Json(to_json(*result.counters)) : Json()},
          {"no_counters", result.no_counters.empty() ? Json() : Json(result.no_counters)},
          {"limiter", result.limiter.empty() ? Json() : Json(result.limiter)}};
}

Json gate_object(const GateResult& result) {
  const bool measured = result.outcome != GateOutcome::not_measured;
  const auto number = [&](double value) {
    return measured && std::isfinite(value) ? Json(value) : Json();
  };
  return {{"expect", result.gate.text},
          {"benchmark", result.benchmark},
          {"finding", to_string(result.outcome)},
          {"limit", result.gate.limit},
          {"measured", number(result.measured.estimate)},
          {"low", number(result.measured.low)},
          {"high", number(result.measured.high)},
          {"why", result.why}};
}

Json parts_object(const PartsResult& row) {
  Json list = Json::array();
  for (const auto& [result, count] : row.parts) {
    list.push_back({{"problem", result->subject.problem.key()},
                    {"launches", count},
                    {"median_us", known_or_null(result->us.median)}});
  }
  return {{"problem", row.fused->subject.problem.key()},
          {"backend", row.fused->subject.backend},
          {"device", row.fused->subject.device},
          {"median_us", known_or_null(row.fused->us.median)},
          {"parts", std::move(list)},
          {"together_us", known_or_null(row.parts_us)},
          {"ratio", known_or_null(row.ratio.estimate)},
          {"low", known_or_null(row.ratio.low)},
          {"high", known_or_null(row.ratio.high)}};
}

}  // namespace

Json bench_json(const std::string& preset, const std::vector<NamedResult>& rows,
                const std::vector<GateResult>& gates, const std::vector<PartsResult>& parts) {
  Json results = Json::array(), judged = Json::array(), beside = Json::array();
  for (const PartsResult& row : parts) beside.push_back(parts_object(row));
  for (const NamedResult& row : rows) results.push_back(row_object(row));
  for (const GateResult& gate : gates) judged.push_back(gate_object(gate));
  return {{"format", "greta-bench 1"},
          {"preset", preset},
          {"results", std::move(results)},
          {"gates", std::move(judged)},
          {"parts", std::move(beside)}};
}

}  // namespace greta::tuner::cli
