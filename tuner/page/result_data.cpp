#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "db/enum_text.hpp"
#include "db/staleness.hpp"
#include "tuner/measure/certify.hpp"
#include "tuner/page/columns.hpp"
#include "tuner/page/page_parts.hpp"
#include "tuner/report/format.hpp"
#include "tuner/report/report.hpp"

namespace greta::tuner {
namespace {

using nlohmann::json;

json regret_json(const std::optional<Regret>& regret) {
  if (!regret) return nullptr;
  return {{"neighbour", regret->neighbour},
          {"ratio", known(regret->ratio)},
          {"source", to_string(regret->source)}};
}

json figures_json(const std::vector<KernelFigures>& kernels) {
  json list = json::array();
  for (const auto& [name, of] : kernels) {
    list.push_back({{"name", name},
                    {"registers", of.registers},
                    {"lds_bytes", of.shared_memory_bytes},
                    {"spills", std::max(of.scratch_bytes, of.spilled_registers)},
                    {"code_bytes", of.code_bytes},
                    {"matrix_instructions", of.matrix_instructions},
                    {"waves", of.subgroups_per_simd}});
  }
  return list;
}

std::string verdict_text(const Verdict& verdict) {
  if (verdict.method.empty()) return {};
  return fmt::format("{}, error {:.3g} of a bound of {:.3g} ({})",
                     verdict.passed ? "correct" : "wrong", verdict.error, verdict.bound,
                     verdict.method);
}

/// Returns the finalists of a session with their rounds.
json finalists_json(const std::vector<Finalist>& finalists,
                    const std::function<std::string(Config)>& shown) {
  const auto standing = standings(finalists);
  json list = json::array();
  for (std::size_t i = 0; i < finalists.size(); ++i) {
    const Finalist& one = finalists[i];
    const auto speedup = standing[i].speedup.value_or(Interval{NAN, NAN, NAN});
    list.push_back({{"config", shown(one.config)},
                    {"is_default", one.is_default},
                    {"left", one.left ? json(to_string(*one.left)) : json(nullptr)},
                    {"us", known(standing[i].us.estimate)},
                    {"low_us", known(standing[i].us.low)},
                    {"high_us", known(standing[i].us.high)},
                    {"speedup", known(speedup.estimate)},
                    {"speedup_low", known(speedup.low)},
                    {"speedup_high", known(speedup.high)},
                    {"rounds_us", column(std::span<const double>(one.us))}});
  }
  return list;
}

/// Adds what a winner was certified with.
void add_certificate(json& row, const Winner& winner, const std::vector<Finalist>& finalists,
                     const ValueWords& known_words) {
  const bool ratio = has_ratio(winner);
  const auto words = std::make_shared<const ValueWords>(known_words);
  const auto shown = [&](Config config) {
    config.words = words;
    return config.shown();
  };
  row["config"] = shown(winner.config);
  row["variant"] = winner.config.variant;
  row["is_default"] = winner.is_default;
  row["us"] = known(winner.measurement.median_us);
  row["low_us"] = known(winner.measurement.low_us);
  row["high_us"] = known(winner.measurement.high_us);
  row["p99_us"] = known(winner.measurement.p99_us);
  row["default_us"] = ratio ? known(winner.default_us) : json(nullptr);
  row["speedup"] = ratio ? known(winner.speedup) : json(nullptr);
  row["speedup_low"] = ratio ? known(winner.speedup_low) : json(nullptr);
  row["speedup_high"] = ratio ? known(winner.speedup_high) : json(nullptr);
  row["confidence"] = known(winner.confidence);
  row["rounds"] = winner.rounds;
  row["dropped"] = winner.measurement.dropped;
  row["roofline"] = winner.roofline > 0 ? known(winner.roofline) : json(nullptr);
  row["clocks"] = winner.measurement.clocks;
  row["watts"] = winner.measurement.card_state.watts ? known(*winner.measurement.card_state.watts)
                                                     : json(nullptr);
  row["verdict"] = verdict_text(winner.verdict);
  row["kernels"] = figures_json(winner.kernels);
  row["rounds_us"] = column(std::span<const double>(winner.measurement.samples_us));
  row["default_rounds_us"] = column(std::span<const double>(winner.default_samples_us));
  row["finalists"] = finalists_json(finalists, shown);
  row["ties"] = json::array();
  for (const auto& tie : winner.ties)
    row["ties"].push_back({{"config", shown(tie.config)}, {"ratio", known(tie.ratio_to_winner)}});
}

}  // namespace

std::vector<PageResult> page_results(const std::vector<PageDatabase>& databases,
                                     const PageDevices& devices, const Catalog& catalog) {
  std::vector<PageResult> results;
  std::set<Question> answered;
  StalenessJudge judge(catalog);
  for (std::size_t file = 0; file < databases.size(); ++file) {
    for (auto& stored : databases[file].db->results()) {
      PageResult one{.stored = std::move(stored), .file = file};
      one.device = devices.index(one.stored.device.fingerprint());
      one.current = answered.insert(question_of(one.stored)).second;
      one.stale = judge.reasons(one.stored);
      results.push_back(std::move(one));
    }
  }
  return results;
}

json result_data(const std::vector<PageResult>& results, const SearchPlaces& searches,
                 const PageInput& input, const Catalog& catalog) {
  json list = json::array();
  for (const auto& one : results) {
    const StoredWinner& stored = one.stored;
    const Work work = work_of(catalog, stored.problem);
    const auto words = Subject{.problem = stored.problem}.words();
    const auto search = searches.find({one.file, stored.session});
    json row{{"device", one.device},
             {"file", one.file},
             {"session", stored.session},
             {"search", search == searches.end() ? json(nullptr) : json(search->second)},
             {"problem", stored.problem.key()},
             {"op", words.op},
             {"dtype", words.dtype},
             {"out_dtype", words.out_dtype},
             {"dims", words.dims},
             {"attributes", words.attributes},
             {"cold", stored.winner.cold},
             {"current", one.current},
             {"regret", regret_json(stored.regret)},
             {"stale", one.stale},
             {"flops", known(work.flops)},
             {"bytes", known(work.bytes)},
             {"driver", stored.provenance.driver},
             {"compiler", stored.provenance.compiler},
             {"version", stored.provenance.greta_version},
             {"utc", stored.provenance.started_utc},
             {"command", nullptr}};
    if (catalog.find(stored.problem.op) != nullptr)
      row["command"] = input.tune_command(stored.problem, stored.device_id, stored.winner.cold,
                                          input.databases[one.file]);
    const auto finalists = stored.session != 0
                               ? input.databases[one.file].db->finalists(stored.session)
                               : std::vector<Finalist>();
    add_certificate(row, stored.winner, finalists,
                    value_words(stored.problem, stored.device, stored.winner.config, catalog));
    list.push_back(std::move(row));
  }
  return list;
}

json summary_data(const std::vector<PageResult>& results, std::size_t device) {
  std::vector<double> speedups, shares;
  std::size_t problems = 0, beaten = 0, stale = 0, no_ratio = 0;
  for (const auto& one : results) {
    if (one.device != device || !one.current) continue;
    const Winner& winner = one.stored.winner;
    ++problems;
    beaten += winner.is_default ? 0 : 1;
    stale += one.stale.empty() ? 0 : 1;
    shares.push_back(winner.roofline);
    if (has_ratio(winner)) {
      speedups.push_back(winner.is_default ? 1 : winner.speedup);
    } else {
      ++no_ratio;
    }
  }
  return {{"problems", problems},
          {"beaten", beaten},
          {"stale", stale},
          {"no_ratio", no_ratio},
          {"speedup", spread_json(spread_of(speedups))},
          {"roofline", spread_json(spread_of(shares))}};
}

json rival_data(const std::vector<PageResult>& results, const PageInput& input,
                const PageDevices& devices) {
  std::map<std::pair<std::size_t, Question>, std::size_t> places;  // by file
  for (std::size_t i = 0; i < results.size(); ++i)
    if (results[i].current)
      places.emplace(std::pair(results[i].file, question_of(results[i].stored)), i);
  std::map<std::pair<std::size_t, std::size_t>, json> pairs;
  std::map<std::pair<std::size_t, std::size_t>, std::vector<double>> ratios;
  for (std::size_t file = 0; file < input.databases.size(); ++file) {
    for (const auto& problem : input.databases[file].db->winners_by_hardware()) {
      for (std::size_t i = 1; i < problem.winners.size(); ++i) {
        const auto& fast = problem.winners.front();
        const auto& slow = problem.winners[i];
        const auto fast_place = places.find({file, question_of(fast)});
        const auto slow_place = places.find({file, question_of(slow)});
        if (fast_place == places.end() || slow_place == places.end()) continue;
        auto a = devices.index(fast.device.fingerprint());
        auto b = devices.index(slow.device.fingerprint());
        const Comparison& compared = problem.comparisons[i - 1];
        const bool swapped = a > b;
        const double ratio = swapped ? compared.ratio : 1 / compared.ratio;  // time of a over b
        auto first = fast_place->second, second = slow_place->second;
        if (swapped) {
          std::swap(a, b);
          std::swap(first, second);
        }
        pairs[{a, b}].push_back(
            {{"a", first}, {"b", second}, {"ratio", known(ratio)}, {"sure", compared.sure()}});
        ratios[{a, b}].push_back(ratio);
      }
    }
  }
  json list = json::array();
  for (auto& [devices_of_pair, problems] : pairs) {
    list.push_back({{"a", devices_of_pair.first},
                    {"b", devices_of_pair.second},
                    {"problems", std::move(problems)},
                    {"spread", spread_json(spread_of(ratios[devices_of_pair]))}});
  }
  return list;
}

}  // namespace greta::tuner
