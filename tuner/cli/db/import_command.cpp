#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "runtime/device/system/input_file.hpp"
#include "runtime/device/system/utc.hpp"
#include "tuner/cli/db/commands.hpp"
#include "tuner/cli/program/damage_report.hpp"
#include "tuner/cli/program/databases.hpp"
#include "tuner/cli/program/paths.hpp"
#include "tuner/interchange/tunableop.hpp"
#include "tuner/report/format.hpp"
#include "tuner/report/print.hpp"

namespace greta::tuner::cli {
namespace {

struct ImportOptions {
  std::filesystem::path file;
  std::filesystem::path db = default_database();
  std::filesystem::path preset;
  bool json = false;
};

nlohmann::json preset_json(const std::string& name, const std::vector<Peer>& peers) {
  nlohmann::json problems = nlohmann::json::array();
  for (const auto& peer : peers) {
    const Problem& problem = peer.problem;
    nlohmann::json entry{{"op", problem.op}, {"dtype", to_string(problem.dtype)}};
    for (const auto& [attribute, value] : problem.attributes) entry[attribute] = value;
    for (const auto& [dimension, value] : problem.dims) entry[dimension] = value;
    if (std::find(problems.begin(), problems.end(), entry) == problems.end()) {
      problems.push_back(entry);
    }
  }
  return {{"name", name},
          {"summary", "GEMMs that PyTorch TunableOp recorded"},
          {"budget", "60s"},
          {"problems", problems}};
}

void write_preset(const std::filesystem::path& file, const std::vector<Peer>& peers) {
  std::ofstream out(file);
  out << preset_json(file.stem().string(), peers).dump(2) << "\n";
  out.close();
  if (!out) {
    throw CommandError(exit_failed, fmt::format("--preset {}: can't be written", file.string()));
  }
}

void check(const ImportOptions& options, const TunableOpFile& file) {
  if (!options.preset.empty() && std::filesystem::exists(options.preset)) {
    throw CommandError(exit_usage, fmt::format("--preset {}: exists", options.preset.string()));
  }
  if (!file.peers.empty()) return;
  throw CommandError(
      exit_usage,
      file.untranslated.empty()
          ? fmt::format("{}: has no rows", options.file.string())
          : fmt::format("{}: no row can be converted; {}: {}", options.file.string(),
                        file.untranslated.front().row, file.untranslated.front().reason));
}

int import_file(const ImportOptions& options) {
  auto text = read_file(options.file, most_tunableop_bytes);
  if (!text) throw CommandError(exit_usage, text.failure().message);
  std::istringstream in(*std::move(text));
  TunableOpFile file = read_tunableop(in);
  check(options, file);
  for (auto& peer : file.peers) peer.imported_utc = utc_now();
  Contents contents;
  contents.peers = file.peers;
  TunedDb db = open_database(options.db, TunedDb::Mode::read_write);
  db.write(contents);
  if (!options.preset.empty()) write_preset(options.preset, file.peers);
  if (options.json) {
    nlohmann::json dropped = nlohmann::json::array();
    for (const auto& [row, reason] : file.untranslated) {
      dropped.push_back({{"row", row}, {"reason", reason}});
    }
    print_json(nlohmann::json{{"imported", file.peers.size()},
                              {"assumed_packed", file.assumed_packed},
                              {"dropped", dropped}});
    return end_of_writing(db, exit_done);
  }
  for (const auto& [row, reason] : file.untranslated) {
    print("{} cannot be converted: {}\n", row, reason);
  }
  print(
      "{} of PyTorch's with its time and solution; its kernels are those of BLAS libraries, "
      "so GRETA has to tune these problems itself. Factors and activations are not in such "
      "files{}\n",
      format_count(static_cast<std::int64_t>(file.peers.size()), "GEMM"),
      file.assumed_packed > 0
          ? fmt::format("; {} did not state that operands are packed, which was assumed",
                        file.assumed_packed)
          : "");
  return end_of_writing(db, exit_done);
}

}  // namespace

void add_import_command(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand(
      "import", "Import the results of PyTorch TunableOp, to compare and to tune");
  auto options = std::make_shared<ImportOptions>();
  command->add_option("file", options->file, "tunableop_results0.csv or tunableop_untuned0.csv")
      ->required();
  command->add_option("--db", options->db, "Database of trials and winners")->capture_default_str();
  command->add_option("--preset", options->preset,
                      "Also write its problems as a preset for greta-tune");
  command->add_flag("--json", options->json, "Print JSON (docs/json.md)");
  command->footer("Example: greta-db import tunableop_results0.csv --preset gemms.json");
  command->callback([&action, options] { action = [options] { return import_file(*options); }; });
}

}  // namespace greta::tuner::cli
