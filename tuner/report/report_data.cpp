#include "db/enum_text.hpp"
#include "db/json.hpp"
#include "kernels/catalog.hpp"
#include "kernels/model/problem_rules.hpp"
#include "runtime/device/version.hpp"
#include "tuner/measure/certify.hpp"
#include "tuner/report/report.hpp"
#include "tuner/session/vendor_rounds.hpp"

namespace greta::tuner {
namespace {

using nlohmann::json;

json trial_counts(const SessionResult& result) {
  json counts{{"total", result.trials.size()}, {"ok", 0}};
  for (const auto& trial : result.trials) {
    const std::string status(trial.ok() ? "ok" : to_string(*trial.failure));
    counts[status] = counts.value(status, 0) + 1;
  }
  return counts;
}

json time_json(const TimeSpent& time) {
  return {{"wall_s", time.wall},       {"compile_s", time.compile}, {"verify_s", time.verify},
          {"measure_s", time.measure}, {"waiting_s", time.waiting}, {"peaks_s", time.peaks},
          {"other_s", time.other()},   {"search_s", time.search},   {"strategy_s", time.strategy},
          {"record_s", time.record}};
}

json energy_json(const Energy& energy) {
  return {{"median", json_number(energy.joules)},
          {"low", json_number(energy.low)},
          {"high", json_number(energy.high)}};
}

json finalists_json(const std::vector<Finalist>& finalists) {
  const auto standing = standings(finalists);
  json list = json::array();
  for (std::size_t i = 0; i < finalists.size(); ++i) {
    const Finalist& one = finalists[i];
    const auto& speedup = standing[i].speedup;
    list.push_back({{"config", to_json(one.config)},
                    {"config_text", one.config.shown()},
                    {"is_default", one.is_default},
                    {"median_us", json_number(standing[i].us.estimate)},
                    {"low_us", json_number(standing[i].us.low)},
                    {"high_us", json_number(standing[i].us.high)},
                    {"speedup", speedup ? json_number(speedup->estimate) : json(nullptr)},
                    {"speedup_low", speedup ? json_number(speedup->low) : json(nullptr)},
                    {"speedup_high", speedup ? json_number(speedup->high) : json(nullptr)},
                    {"samples_us", json_numbers(one.us)},
                    {"batch", one.batch},
                    {"left", one.left ? json(to_string(*one.left)) : json(nullptr)}});
  }
  return list;
}

json problem_json(const SessionResult& result) {
  json dims = json::object();
  for (const auto& [name, value] : result.problem.dims) dims[name] = value;
  return {{"key", result.problem.key()},
          {"op", result.problem.op},
          {"dtype", to_string(result.problem.dtype)},
          {"out_dtype", to_string(result.problem.out_dtype)},
          {"dims", dims},
          {"flops", result.work.flops},
          {"bytes", result.work.bytes}};
}

}  // namespace

Work work_of(const Catalog& catalog, const Problem& problem) {
  const auto* operation = catalog.find(problem.op);
  const bool known = operation != nullptr && check_problem(*operation, problem);
  return known ? operation->work(problem) : Work{};
}

json result_json(const StoredWinner& stored) {
  auto winner = to_json(stored.winner);
  winner["config_text"] = stored.winner.config.shown();
  json regret = nullptr;
  if (stored.regret) {
    regret = {{"neighbour", stored.regret->neighbour},
              {"ratio", json_number(stored.regret->ratio)},
              {"source", to_string(stored.regret->source)}};
  }
  return {{"problem", stored.problem.key()},
          {"device", stored.device.name},
          {"device_id", stored.device_id},
          {"device_fingerprint", stored.device.fingerprint()},
          {"driver", stored.provenance.driver},
          {"compiler", stored.provenance.compiler},
          {"template_key", stored.provenance.template_key},
          {"greta_version", stored.provenance.greta_version},
          {"date", stored.provenance.started_utc},
          {"regret", regret},
          {"winner", winner}};
}

json energy_winner_json(const EnergyWinner& least) {
  return {{"config", to_json(least.config)},
          {"config_text", least.config.shown()},
          {"is_default", least.is_default},
          {"joules", energy_json(least.energy)},
          {"default_joules", energy_json(least.default_energy)},
          {"watts", json_number(least.energy.watts)},
          {"launch_us", json_number(least.energy.us)},
          {"source", least.energy.source}};
}

json vendor_json(const SessionResult& result) {
  const VendorResult& vendor = *result.vendor;
  const Trial* const trial = find_trial(result.trials, vendor.config, result.problem.key());
  return {{"library", vendor.library},
          {"config", to_json(vendor.config)},
          {"config_text", vendor.config.shown()},
          {"algorithm", trial ? algorithm_text(trial->kernels) : ""},
          {"median_us", json_number(vendor.us)},
          {"ratio", json_number(vendor.ratio.estimate)},
          {"low", json_number(vendor.ratio.low)},
          {"high", json_number(vendor.ratio.high)},
          {"confidence", vendor.confidence},
          {"rounds", vendor.rounds},
          {"stored", vendor.stored}};
}

json report_json(const SessionResult& result, const std::string& database) {
  json object{{"format", "greta-tune 1"},
              {"greta_version", version()},
              {"problem", problem_json(result)},
              {"device", to_json(result.device)},
              {"outcome", result.interrupted ? "interrupted"
                          : result.winner    ? "done"
                                             : "no winner"},
              {"winner", nullptr},
              {"default_config", to_json(result.default_config)},
              {"finalists", finalists_json(result.finalists)},
              {"naive", nullptr},
              {"stand_in", nullptr},
              {"trials", trial_counts(result)},
              {"space", {{"valid", result.space_count}, {"cartesian", result.cartesian_size}}},
              {"ceilings", json::object()},
              {"notes", result.notes},
              {"time", time_json(result.time)},
              {"database", database},
              {"stored", result.not_stored.empty()},
              {"keeps_earlier", result.keeps_earlier},
              {"resumed", result.resumed},
              {"not_tried", result.not_tried.size()},
              {"energy", nullptr},
              {"vendor", nullptr},
              {"finished_before", result.finished_before},
              {"pinned", nullptr},
              {"not_stored", result.not_stored}};
  for (const auto& ceiling : result.ceilings) object["ceilings"][ceiling.kind] = ceiling.value;
  if (result.winner) {
    object["winner"] = to_json(*result.winner);
    object["winner"]["config_text"] = result.winner->config.shown();
    object["winner"]["tflops"] = result.work.flops / result.winner->measurement.median_us / 1e6;
    object["winner"]["gbps"] = result.work.bytes / result.winner->measurement.median_us / 1e3;
  }
  if (result.energy_winner) object["energy"] = energy_winner_json(*result.energy_winner);
  if (result.vendor) object["vendor"] = vendor_json(result);
  if (result.pinned) object["pinned"] = to_json(*result.pinned);
  if (result.naive) object["naive"] = to_json(*result.naive);
  if (result.stand_in) {
    object["stand_in"] = {{"key", result.stand_in->problem.key()},
                          {"estimated_launch_s", result.stand_in->estimated_s}};
  }
  return object;
}

json contest_json(const std::vector<const SessionResult*>& sessions, const ContestResult& contest) {
  const DeviceInfo& best = sessions[contest.fastest]->device;
  json others = json::array();
  for (const auto& [entrant, comparison] : contest.others) {
    const DeviceInfo& device = sessions[entrant]->device;
    others.push_back({{"problem", sessions[entrant]->problem.key()},
                      {"device", device.id()},
                      {"same_card", same_card(best, device)},
                      {"ratio", json_number(comparison.ratio)},
                      {"low", json_number(comparison.low)},
                      {"high", json_number(comparison.high)},
                      {"confidence", comparison.confidence},
                      {"turns", comparison.faster_us.size()},
                      {"sure", comparison.sure()}});
  }
  return {{"problem", sessions.front()->problem.key()},
          {"fastest", best.id()},
          {"fastest_problem", sessions[contest.fastest]->problem.key()},
          {"sure", contest.sure()},
          {"others", others},
          {"notes", contest.notes}};
}

}  // namespace greta::tuner
