#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "runtime/device/system/utc.hpp"
#include "tuner/cli/db/commands.hpp"
#include "tuner/cli/program/damage_report.hpp"
#include "tuner/cli/program/databases.hpp"
#include "tuner/cli/program/gemm_logs.hpp"
#include "tuner/cli/program/paths.hpp"
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

int import_file(const ImportOptions& options) {
  if (!options.preset.empty()) check_new_file("--preset", options.preset);
  GemmLog file = load_gemm_log(options.file);
  for (auto& peer : file.peers) peer.imported_utc = utc_now();
  Contents contents;
  contents.peers = file.peers;
  TunedDb db = open_database(options.db, TunedDb::Mode::read_write);
  db.write(contents);
  if (!options.preset.empty()) write_preset("--preset", options.preset, file);
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
  if (file.tool == captured_calls_tool) {
    print(
        "{} of {}, without their times; greta-tune from-capture tunes them, by their share of the "
        "time\n",
        format_count(static_cast<std::int64_t>(file.peers.size()), "GEMM"), file.tool);
    return end_of_writing(db, exit_done);
  }
  print(
      "{} of {} with its times and solutions, as far as the file has them; its kernels are those "
      "of other libraries, so GRETA has to tune these problems itself{}{}\n",
      format_count(static_cast<std::int64_t>(file.peers.size()), "GEMM"), file.tool,
      file.tool == tunableop_library ? ". Factors and activations are not in such files" : "",
      file.assumed_packed > 0
          ? fmt::format("; {} did not state that operands are packed, which was assumed",
                        file.assumed_packed)
          : "");
  return end_of_writing(db, exit_done);
}

}  // namespace

void add_import_command(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand(
      "import", "Import GEMMs that other tools recorded or tuned, to compare and to tune");
  auto options = std::make_shared<ImportOptions>();
  command
      ->add_option("file", options->file,
                   "A file of PyTorch TunableOp (tunableop_results0.csv), of AITER "
                   "(bf16_untuned_gemm.csv), a log of hipblaslt-bench, or what libgreta-capture "
                   "recorded")
      ->required();
  command->add_option("--db", options->db, "Database of trials and winners")->capture_default_str();
  command->add_option("--preset", options->preset,
                      "Also write its problems as a preset for greta-tune");
  command->add_flag("--json", options->json, "Print JSON (docs/json.md)");
  command->footer("Example: greta-db import tunableop_results0.csv --preset gemms.json");
  command->callback([&action, options] { action = [options] { return import_file(*options); }; });
}

}  // namespace greta::tuner::cli
