#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "tuner/cli/db/commands.hpp"
#include "tuner/cli/options/result_options.hpp"
#include "tuner/cli/program/damage_report.hpp"
#include "tuner/cli/program/known_operations.hpp"
#include "tuner/report/format.hpp"
#include "tuner/report/print.hpp"

namespace greta::tuner::cli {
namespace {

struct PinOptions {
  ResultOptions results;
  bool all = false;
  bool json = false;
};

/// Pins or unpins the answers that the options select.
int set_pins(const PinOptions& options, bool pin) {
  const ResultFilter filter = read_filter(options.results);
  const bool selected = !filter.op.empty() || filter.dtype || filter.out_dtype ||
                        !filter.device.empty() || !filter.driver.empty() ||
                        !filter.variant.empty() || !filter.dims.empty() || filter.cold ||
                        filter.stale;
  if (!selected && !options.all) {
    throw CommandError(exit_usage,
                       fmt::format("{}: select results, for example with --op and --dims, or "
                                   "give --all",
                                   pin ? "pin" : "unpin"));
  }
  TunedDb db = open_existing(options.results.db);
  StalenessJudge judge(known_operations());
  std::set<Question> done;
  const auto found = select_results(db, filter, judge);
  for (const auto& result : found) {
    const Question question = question_of(result);
    if (done.contains(question)) continue;
    const bool pinned = db.pinned(question).has_value();
    if (pin && !pinned) db.pin(question);
    if (pin ? !pinned : db.unpin(question)) done.insert(question);
  }
  db.confirm();
  if (options.json) {
    print_json(nlohmann::json{{pin ? "pinned" : "unpinned", done.size()}});
  } else {
    print("{} {}\n", pin ? "pinned" : "unpinned", format_count(done.size(), "answer"));
    if (done.empty()) {
      if (const auto why = nothing_selected(db, options.results); !why.empty()) tell(why);
    }
  }
  return end_of_writing(db, found.empty() && selected ? exit_failed : exit_done);
}

void add_command(CLI::App& app, Action& action, bool pin) {
  auto* command = app.add_subcommand(pin ? "pin" : "unpin",
                                     pin ? "Freeze answers: no tune, merge or prune changes them"
                                         : "Release answers that pin froze");
  auto options = std::make_shared<PinOptions>();
  add_result_options(*command, options->results);
  command->add_flag("--all", options->all, "All results of the database");
  command->add_flag("--json", options->json, "Print JSON (docs/json.md)");
  command->footer(fmt::format("Example: greta-db {} --op gemm --dims \"m=4096 n=4096 k=4096\"",
                              pin ? "pin" : "unpin"));
  command->callback(
      [&action, options, pin] { action = [options, pin] { return set_pins(*options, pin); }; });
}

}  // namespace

void add_pin_commands(CLI::App& app, Action& action) {
  add_command(app, action, true);
  add_command(app, action, false);
}

}  // namespace greta::tuner::cli
