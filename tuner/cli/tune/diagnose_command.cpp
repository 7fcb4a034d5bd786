#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <memory>

#include "tuner/cli/options/kept_cases.hpp"
#include "tuner/cli/options/option_values.hpp"
#include "tuner/cli/program/known_operations.hpp"
#include "tuner/cli/program/terminal.hpp"
#include "tuner/cli/tune/commands.hpp"
#include "tuner/report/print.hpp"

namespace greta::tuner::cli {
namespace {

namespace fs = std::filesystem;

struct DiagnoseOptions {
  std::vector<std::string> folders;
  int seconds = static_cast<int>(DiagnosisOptions().seconds);
  int change_seconds = 90;
  std::string against;  ///< a known-good version, "none", or empty: the case's own
  bool json = false;
};

constexpr auto no_comparison = "none";

/// Refuses a version that is not of the case's kernel. Throws CommandError.
void check_against(const DiagnoseOptions& options, const Result<Diagnosis>& diagnosed) {
  if (diagnosed || options.against.empty()) return;
  const std::string& why = diagnosed.failure().message;
  if (why.starts_with(options.against + ":")) throw CommandError(exit_usage, "--against " + why);
}

int diagnose_cases(const DiagnoseOptions& options) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  bool first = true;
  for (const std::string& named : options.folders) {
    for (const fs::path& folder : kept_cases(named)) {
      if (options.change_seconds > 0 && isatty(STDERR_FILENO) == 1) {
        tell(
            fmt::format("{}: comparing versions of the source, and searching for a change of it "
                        "for at most {} s",
                        folder.string(), options.change_seconds));
      }
      const bool compares = options.against != no_comparison;
      const auto diagnosed =
          diagnose_kept(folder, {.seconds = static_cast<double>(options.seconds),
                                 .change_seconds = static_cast<double>(options.change_seconds),
                                 .compares = compares,
                                 .known_good = compares ? options.against : ""});
      check_against(options, diagnosed);
      if (!diagnosed && diagnosed.failure().status == Status::io)  // lacks a file
        throw CommandError(exit_usage, diagnosed.failure().message);
      const Diagnosis& diagnosis = value_of(diagnosed);
      if (options.json) {
        list.push_back(diagnosis_json(diagnosis));
        list.back()["case"] = folder.string();
      } else {
        print_text(first ? "" : "\n");
        print("{}\n", folder.string());
        print_text(diagnosis_text(diagnosis));
      }
      first = false;
    }
  }
  if (options.json) print_json(nlohmann::ordered_json{{"diagnoses", std::move(list)}});
  return exit_done;
}

}  // namespace

void add_diagnose_command(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand(
      "diagnose", "Report what is wrong with candidates that --keep-failed kept, and where");
  auto options = std::make_shared<DiagnoseOptions>();
  command->add_option("cases", options->folders, "Folders of cases, or folders with such folders")
      ->required();
  add_whole_number(*command, "--time", options->seconds, "Time limit of a case in seconds", 1, 3600)
      ->capture_default_str()
      ->type_name("SECONDS");
  add_whole_number(*command, "--changes", options->change_seconds,
                   "Time in seconds to search for a change of the source that gives correct "
                   "results, on the CPU (docs/diagnose.md); 0: none",
                   0, 86400)
      ->capture_default_str()
      ->type_name("SECONDS");
  command
      ->add_option("--against", options->against,
                   "A version of the kernel that is known to be correct, to find which of its "
                   "differences is wrong: a file, or a folder such as kernels/templates; none: no "
                   "comparison. Without the option, cases of --templates are compared with the "
                   "built-in templates")
      ->type_name("FILE|DIR|none");
  add_kernels_option(*command);
  command->add_flag("--json", options->json, "Print one JSON object (docs/json.md)");
  command->footer("Example: greta-tune diagnose failed/gemm-0123456789ab");
  command->callback(
      [&action, options] { action = [options] { return diagnose_cases(*options); }; });
}

}  // namespace greta::tuner::cli
