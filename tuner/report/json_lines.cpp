#include "tuner/report/json_lines.hpp"

#include <nlohmann/json.hpp>
#include <utility>

#include "db/json.hpp"
#include "tuner/tuning/device_selection.hpp"

namespace greta::tuner {
namespace {

using nlohmann::ordered_json;

ordered_json event_of(const char* name) {
  return {{"event", name}};
}

ordered_json card_json(const DeviceInfo& device) {
  return {{"device", device.id()},
          {"name", device.name},
          {"uuid", device.card.uuid},
          {"pci_address", device.card.pci_address}};
}

ordered_json ids_of(const std::vector<DeviceInfo>& cards) {
  ordered_json ids = ordered_json::array();
  for (const DeviceInfo& card : cards) ids.push_back(card.id());
  return ids;
}

/// Adds the median and its interval, or nulls.
void add_times(ordered_json& object, const Measurement& measurement, bool measured) {
  const auto number = [&](double us) { return measured ? ordered_json(us) : ordered_json(); };
  object["median_us"] = number(measurement.median_us);
  object["low_us"] = number(measurement.low_us);
  object["high_us"] = number(measurement.high_us);
}

ordered_json winner_json(const Winner& winner) {
  ordered_json object{{"config", winner.config.shown()}, {"is_default", winner.is_default}};
  add_times(object, winner.measurement, true);
  const auto ratio = [&](double value) {
    return has_ratio(winner) ? ordered_json(value) : ordered_json();
  };
  object["speedup"] = ratio(winner.speedup);
  object["speedup_low"] = ratio(winner.speedup_low);
  object["speedup_high"] = ratio(winner.speedup_high);
  object["roofline"] = winner.roofline;
  return object;
}

}  // namespace

JsonLines::JsonLines(std::FILE* stream) : stream_(stream) {}

JsonLines::JsonLines(std::function<void(const std::string&)> receive)
    : receive_(std::move(receive)) {}

void JsonLines::write(ordered_json event) {
  event["seconds"] =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count();
  if (stream_) stream_->write(event);
  if (receive_) receive_(event.dump(-1, ' ', false, ordered_json::error_handler_t::replace));
}

void JsonLines::warn(const std::string& text) {
  auto event = event_of("warning");
  event["text"] = text;
  write(std::move(event));
}

void JsonLines::on_wait(const std::string& holder, const std::string& card) {
  warn("waiting for " + (holder.empty() ? "another process" : holder) + ", which measures on " +
       card);
}

void JsonLines::on_unsafe(const DeviceInfo& device, const UnsafePart& part,
                          const DeviceInfo* instead) {
  warn(unsafe_text(device, part) + (instead == nullptr ? "" : "; instead " + instead->id()));
}

void JsonLines::on_damage(const TunedDb& db, const std::vector<DamagedRow>& /*rows*/) {
  warn(db.file().string() + ": has damaged rows");
}

void JsonLines::on_unreadable(const std::string& line) {
  warn(line);
}

void JsonLines::on_card_lost(const std::string& why) {
  warn(why);
}

void JsonLines::on_not_stored(const std::string& why) {
  warn(why);
}

void JsonLines::on_resume(const UnfinishedRun& run) {
  auto event = event_of("resume");
  event["started_utc"] = run.started_utc;
  event["seed"] = run.seed;
  write(std::move(event));
}

void JsonLines::on_run(const RunStart& run) {
  auto event = event_of("run");
  event["format"] = "greta-tune lines 1";
  event["problems"] = run.problems;
  event["cards"] = ordered_json::array();
  for (const DeviceInfo& card : run.cards) event["cards"].push_back(card_json(card));
  write(std::move(event));
}

void JsonLines::on_session(const SessionStart& session) {
  auto event = event_of("session");
  event["problem"] = session.problem.key();
  event["device"] = session.cards.front().id();
  event["cards"] = ids_of(session.cards);
  write(std::move(event));
}

void JsonLines::on_phase(const DeviceInfo& device, const std::string& what) {
  auto event = event_of("phase");
  event["device"] = device.id();
  event["phase"] = what;
  write(std::move(event));
}

void JsonLines::on_trial(const SessionResult& result, const Budget& budget) {
  const Trial& trial = result.trials.back();
  auto event = event_of("trial");
  event["problem"] = result.problem.key();
  event["device"] = result.device.id();
  event["session"] = result.id;
  event["number"] = result.trials.size();
  event["ran"] = trial.problem_key;
  event["card"] = trial.card;
  event["config"] = trial.config.shown();
  event["status"] = trial.failure ? to_string(*trial.failure) : "ok";
  event["message"] = trial.message;
  add_times(event, trial.measurement, trial.ok());
  event["raced"] = trial.measurement.raced;
  event["error"] = trial.verdict.error;
  event["bound"] = trial.verdict.bound;
  event["compile_s"] = trial.compile_s;
  event["verify_s"] = trial.verify_s;
  event["measure_s"] = trial.measure_s;
  const Trial* const best = best_trial(result.trials, trial.problem_key);
  event["best_us"] = best != nullptr ? ordered_json(best->measurement.median_us) : ordered_json();
  event["budget_used"] = budget.used();
  write(std::move(event));
}

void JsonLines::on_session_end(const SessionResult& result) {
  auto event = event_of("session_end");
  event["problem"] = result.problem.key();
  event["device"] = result.device.id();
  event["session"] = result.id;
  event["trials"] = result.trials.size();
  event["interrupted"] = result.interrupted;
  event["winner"] = result.winner ? winner_json(*result.winner) : ordered_json();
  event["notes"] = result.notes;
  event["not_stored"] = result.not_stored;
  write(std::move(event));
}

void JsonLines::end(bool all_won, bool interrupted, const std::string& error) {
  auto event = event_of("end");
  event["all_won"] = all_won;
  event["interrupted"] = interrupted;
  event["error"] = error;
  write(std::move(event));
}

}  // namespace greta::tuner
