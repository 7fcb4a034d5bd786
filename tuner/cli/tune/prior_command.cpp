#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "tuner/cli/options/option_values.hpp"
#include "tuner/cli/program/paths.hpp"
#include "tuner/cli/program/terminal.hpp"
#include "tuner/cli/tune/commands.hpp"
#include "tuner/replay/prior_judgement.hpp"
#include "tuner/report/csv.hpp"
#include "tuner/report/print.hpp"
#include "tuner/report/table.hpp"
#include "tuner/tuning/tuner.hpp"

namespace greta::tuner::cli {
namespace {

namespace fs = std::filesystem;

struct PriorRequest {
  std::vector<fs::path> spaces;
  std::vector<fs::path> databases;
  fs::path csv;
  bool json = false;
};

struct JudgedSpace {
  std::string problem, device;
  std::vector<PredictedRow> rows;
  PriorJudgement judgement;
};

JudgedSpace judged(PredictedSpace space) {
  const PriorJudgement judgement = judge_prior(space.rows, space.standard);
  return {space.problem.key(),
          fmt::format("{} ({})", space.device.name, to_string(space.device.backend)),
          std::move(space.rows), judgement};
}

JudgedSpace judge_recording(const fs::path& file) {
  const auto recording = Recording::load(file);
  if (!recording) throw CommandError(exit_usage, "--space: " + recording.failure().message);
  auto space = predicted_space(*recording);
  if (!space || space->rows.size() < 2) {
    throw CommandError(exit_usage,
                       fmt::format("--space {}: has no configurations of GRETA's kernels that the "
                                   "prior predicts",
                                   file.string()));
  }
  return judged(*std::move(space));
}

/// Problems with few trials say little about an order.
std::vector<JudgedSpace> judge_trials(const fs::path& file, std::size_t least) {
  const TunedDb db = value_of(open_database(file, TunedDb::Mode::read_only));
  std::vector<JudgedSpace> spaces;
  for (PredictedSpace& space : predicted_spaces(db)) {
    if (space.rows.size() >= least) spaces.push_back(judged(std::move(space)));
  }
  if (spaces.empty()) {
    throw CommandError(exit_usage,
                       fmt::format("--db {}: no problem has {} measured configurations that "
                                   "the prior predicts",
                                   file.string(), least));
  }
  return spaces;
}

void write_csv(const fs::path& file, const std::vector<JudgedSpace>& spaces) {
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out << "device,problem,config,time_us";
  for (const std::string_view name : term_names) out << ',' << name;
  out << '\n';
  for (const JudgedSpace& space : spaces) {
    for (const PredictedRow& row : space.rows) {
      out << fmt::format("{},{},{},{:.6g}", csv_quoted(space.device), csv_quoted(space.problem),
                         csv_quoted(row.config.text()), row.time_us);
      for (const double term : row.terms) out << fmt::format(",{:.6g}", term);
      out << '\n';
    }
  }
  out.close();
  if (!out)
    throw CommandError(exit_failed, fmt::format("--csv {}: can't be written", file.string()));
}

std::string percent(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

void print_table(const std::vector<JudgedSpace>& spaces) {
  constexpr auto right = Table::Align::right;
  Table table({{"problem"},
               {"device"},
               {"configurations", right},
               {"rank correlation", right},
               {"top 1", right},
               {"top 5", right},
               {"top 20", right},
               {"default", right}});
  double correlation = 0;
  std::array<double, PriorJudgement::tops.size()> logs{};
  const auto count = static_cast<double>(spaces.size());
  for (const JudgedSpace& space : spaces) {
    const PriorJudgement& of = space.judgement;
    table.add({space.problem, space.device, std::to_string(space.rows.size()),
               fmt::format("{:.2f}", of.rank_correlation), percent(of.regret[0]),
               percent(of.regret[1]), percent(of.regret[2]),
               of.default_regret ? percent(*of.default_regret) : "-"});
    correlation += of.rank_correlation / count;
    for (std::size_t i = 0; i < logs.size(); ++i) logs[i] += std::log1p(of.regret[i]) / count;
  }
  table.add({"mean", "", "", fmt::format("{:.2f}", correlation), percent(std::expm1(logs[0])),
             percent(std::expm1(logs[1])), percent(std::expm1(logs[2])), ""});
  print_text(table.text());
}

void print_json_of(const std::vector<JudgedSpace>& spaces) {
  auto list = nlohmann::ordered_json::array();
  for (const JudgedSpace& space : spaces) {
    const PriorJudgement& of = space.judgement;
    nlohmann::ordered_json entry{{"device", space.device},
                                 {"problem", space.problem},
                                 {"configurations", space.rows.size()},
                                 {"rank_correlation", of.rank_correlation},
                                 {"default_regret", nullptr}};
    if (of.default_regret) entry["default_regret"] = *of.default_regret;
    for (std::size_t i = 0; i < PriorJudgement::tops.size(); ++i) {
      entry[fmt::format("regret_of_top_{}", PriorJudgement::tops[i])] = of.regret[i];
    }
    list.push_back(std::move(entry));
  }
  print_json(nlohmann::ordered_json{{"format", "greta-prior 1"}, {"spaces", std::move(list)}});
}

int judge_all(const PriorRequest& request) {
  if (request.spaces.empty() && request.databases.empty()) {
    throw CommandError(exit_usage, "--space or --db is required");
  }
  if (!request.csv.empty()) check_folder("--csv", request.csv);
  std::vector<JudgedSpace> spaces;
  for (const fs::path& file : request.spaces) spaces.push_back(judge_recording(file));
  constexpr std::size_t least = 12;
  for (const fs::path& file : request.databases) {
    auto more = judge_trials(file, least);
    std::move(more.begin(), more.end(), std::back_inserter(spaces));
  }
  if (!request.csv.empty()) write_csv(request.csv, spaces);
  if (request.json) {
    print_json_of(spaces);
  } else {
    print_table(spaces);
  }
  return exit_done;
}

}  // namespace

void add_prior_command(CLI::App& app, Action& action) {
  auto* command =
      app.add_subcommand("prior", "Judge how well the static prior ranks recorded configurations");
  auto request = std::make_shared<PriorRequest>();
  command->add_option("--space", request->spaces,
                      "A recording of --record, plain or .gz; can be repeated");
  command->add_option("--db", request->databases,
                      "A database with trials, of problems with 12 and more; can be repeated");
  command->add_option(
      "--csv", request->csv,
      "Write each configuration's time and the terms of its prediction to this file");
  command->add_flag("--json", request->json, "Print one JSON object (docs/json.md)");
  command->footer("Example: greta-tune prior --space gemm.jsonl.gz");
  command->callback([&action, request] { action = [request] { return judge_all(*request); }; });
}

}  // namespace greta::tuner::cli
