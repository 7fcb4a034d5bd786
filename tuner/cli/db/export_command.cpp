#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "runtime/device/text/spelling.hpp"
#include "tuner/cli/db/commands.hpp"
#include "tuner/cli/db/contribute.hpp"
#include "tuner/cli/db/export_binaries.hpp"
#include "tuner/cli/db/export_kernels.hpp"
#include "tuner/cli/options/result_options.hpp"
#include "tuner/cli/program/damage_report.hpp"
#include "tuner/cli/program/databases.hpp"
#include "tuner/cli/program/known_operations.hpp"
#include "tuner/cli/program/paths.hpp"
#include "tuner/interchange/t4.hpp"
#include "tuner/interchange/tunableop.hpp"
#include "tuner/report/change_report.hpp"
#include "tuner/report/csv.hpp"
#include "tuner/report/csv_wide.hpp"
#include "tuner/report/format.hpp"
#include "tuner/report/print.hpp"
#include "tuner/report/report.hpp"

namespace greta::tuner::cli {
namespace {

struct ExportOptions {
  ResultOptions results;
  bool ship = false;
  bool with_kernels = false;  ///< of --ship
  BinaryExport binaries;      ///< of --ship
  std::string format;
  std::filesystem::path out;
  bool force = false;
  std::optional<std::string> since;   ///< of --ship: a database that it must not fall behind
  std::filesystem::path contribute;   ///< file of --contribute
  std::optional<std::string> kernel;  ///< folder of --kernel
  std::vector<std::string> problem;   ///< words: "gemm", "m=4096"
};

bool is_output(const std::filesystem::path& file) {
  return file == "-";
}

/// Writes a file, or standard output for "-".
void write_file(const std::filesystem::path& file, const std::string& text) {
  if (is_output(file)) return print_text(text);
  std::ofstream out(file, std::ios::binary);
  out << text;
  out.close();
  if (!out)
    throw CommandError(exit_failed, fmt::format("--out {}: can't be written", file.string()));
}

/// Throws if the selected results are worse than those of an earlier database, or lack some of
/// them.
void check_since(const std::string& since, const std::vector<StoredWinner>& shipped) {
  const TunedDb before = open_source(since);
  if (tell_damage(before)) {
    throw CommandError(exit_failed, fmt::format("--since {}: is damaged, so that nothing can be "
                                                "compared with it",
                                                since));
  }
  auto changes = answer_changes(before.winners(), shipped);
  if (!lost_ground(changes)) return;
  std::erase_if(changes, [](const AnswerChange& one) {
    return one.change != Change::worse && one.change != Change::lost;
  });
  print_text(stderr, change_text(changes));
  throw CommandError(
      exit_regression,
      fmt::format(
          "--since {}: nothing was written, since {} worse "
          "or lost",
          since,
          changes.size() == 1 ? "1 answer is" : fmt::format("{} answers are", changes.size())));
}

void ship(const TunedDb& db, const ExportOptions& options, const ResultFilter& filter) {
  StalenessJudge judge(known_operations());
  if (options.since) check_since(*options.since, select_results(db, filter, judge));
  Contents contents = db.contents();
  check_device_is_known(db, filter);
  std::set<std::string> devices;
  std::erase_if(contents.results, [&](const StoredWinner& result) {
    if (!filter.matches(result, judge)) return true;
    devices.insert(result.device.fingerprint());
    return false;
  });
  std::erase_if(contents.devices, [&](const StoredDevice& device) {
    const auto& wanted = options.binaries.architectures;
    return devices.count(device.info.fingerprint()) == 0 &&
           std::find(wanted.begin(), wanted.end(), device.info.architecture) == wanted.end();
  });
  std::erase_if(contents.ceilings, [&](const Contents::DeviceCeiling& ceiling) {
    return devices.count(ceiling.device) == 0;
  });
  contents.kernels.clear();
  if (options.with_kernels) contents.kernels = carried_kernels(contents.results);
  contents.peers.clear();
  contents.unsafe.clear();  // faults of one card; applications run on others
  add_binaries(contents, options.binaries);
  TunedDb::ship(contents, options.out);
  auto carried =
      contents.kernels.empty() ? "" : ", " + format_count(contents.kernels.size(), "own kernel");
  if (!options.binaries.architectures.empty()) {
    const auto totals = TunedDb::open(options.out, TunedDb::Mode::read_only).binaries();
    carried += ", " + (totals.empty() ? "no compiled kernel" : binaries_text(totals));
  }
  print("{}: {} of {}{}, {}\n", options.out.string(),
        format_count(static_cast<std::int64_t>(contents.results.size()), "result"),
        format_count(static_cast<std::int64_t>(contents.devices.size()), "device"), carried,
        format_bytes(static_cast<double>(std::filesystem::file_size(options.out))));
}

/// Says something about a file that is written; on standard error if that is standard output.
void say(const std::filesystem::path& file, const std::string& line) {
  if (is_output(file)) return tell(line);
  print("{}\n", line);
}

/// Says what was written.
void tell_written(const std::filesystem::path& file, const std::string& what) {
  say(file, fmt::format("{}: {}", is_output(file) ? "standard output" : file.string(), what));
}

void export_csv(const TunedDb& db, const ExportOptions& options, const ResultFilter& filter) {
  StalenessJudge judge(known_operations());
  std::vector<MeasuredResult> rows;
  const auto add = [&](std::vector<MeasuredResult> some) {
    std::move(some.begin(), some.end(), std::back_inserter(rows));
  };
  for (const auto& [session, device] : select_sessions(db, filter))
    add(measured_results(known_operations(), session, device, db.trials(session.id)));
  for (const auto& result : select_results(db, filter, judge))
    add(measured_results(known_operations(), result));
  if (options.format == "csv-wide") return write_file(options.out, csv_wide(rows));
  std::string text = csv_header();
  for (const auto& row : rows) text += csv_line(row);
  write_file(options.out, text);
}

/// Throws if a file exists, unless it may be replaced. A folder is never replaced.
void check_replaces(const std::filesystem::path& file, bool force) {
  const bool folder = std::filesystem::is_directory(file);
  if (!std::filesystem::exists(file) || (force && !folder)) return;
  throw CommandError(exit_usage,
                     fmt::format("--out {}: {}", file.string(),
                                 folder ? "is a folder" : "exists; --force replaces it"));
}

/// Writes T4 files. Such a file is about one problem on one device, whose sessions it combines;
/// several are written into a folder.
void export_t4(const TunedDb& db, const ExportOptions& options, const ResultFilter& filter) {
  std::map<std::string, nlohmann::json> files;
  for (const auto& [session, device] : select_sessions(db, filter)) {
    auto& file =
        files[fmt::format("{} on {}{}", session.problem.key(),
                          session.device_id + " " + device.name, session.cold ? "" : " (warm)")];
    auto part = t4_json(session, db.trials(session.id));
    if (file.is_null()) {
      file = std::move(part);
    } else {
      for (auto& result : part["results"]) file["results"].push_back(std::move(result));
    }
  }
  const bool into_folder = std::filesystem::is_directory(options.out);
  if (files.empty() || (files.size() > 1 && !into_folder)) {
    throw CommandError(
        tell_damage(db) ? exit_failed : exit_usage,
        fmt::format("--format t4: such a file is about one problem on one device; the options "
                    "select {}{}",
                    files.size(),
                    files.empty()
                        ? ""
                        : fmt::format(", as {} and {}; --out FOLDER writes a file for each",
                                      files.begin()->first, files.rbegin()->first)));
  }
  const auto out_of = [&](const std::string& subject) {
    return into_folder ? options.out / (file_name(subject) + ".json") : options.out;
  };
  for (const auto& [subject, file] : files) {
    if (into_folder) check_replaces(out_of(subject), options.force);
  }
  for (const auto& [subject, file] : files) {
    const auto out = out_of(subject);
    write_file(out, file.dump(1) + "\n");
    tell_written(out, format_count(static_cast<std::int64_t>(file["results"].size()), "trial") +
                          "; trials on proxy problems are omitted");
  }
}

/// Writes the solutions that PyTorch chose before, or (`untuned`) the GEMMs to be tuned.
void export_tunableop(const TunedDb& db, const ExportOptions& options, const ResultFilter& filter,
                      bool untuned) {
  StalenessJudge judge(known_operations());
  const auto results = select_results(db, filter, judge);
  std::map<std::string, Peer> peers;
  for (const auto& peer : db.contents().peers) {
    if (peer.library == tunableop_library && !peer.solution.empty()) {
      peers.insert_or_assign(peer.problem.key(), peer);
    }
  }
  std::string rows;
  std::set<std::string> seen, circumstances;
  std::int64_t written = 0;
  for (const auto& result : results) {
    const auto key = result.problem.key();
    if (!seen.insert(key).second) continue;
    const auto fields = tunableop_fields(result.problem);
    const auto peer = peers.find(key);
    if (!fields || (!untuned && peer == peers.end())) {
      say(options.out, fmt::format("{} cannot be converted: {}", key,
                                   fields ? "its kernel is GRETA's, not a solution of PyTorch"
                                          : fields.failure().message));
      continue;
    }
    rows += fmt::format("{},{}", fields->first, fields->second);
    if (!untuned) {
      rows += fmt::format(",{},{:.6g}", peer->second.solution, peer->second.us * 1e-3);
      circumstances.insert(peer->second.circumstances);
    }
    rows += "\n";
    ++written;
  }
  if (circumstances.size() > 1) {
    throw CommandError(exit_usage, fmt::format("--format tunableop: the solutions are of {} "
                                               "versions of PyTorch; a file holds one",
                                               circumstances.size()));
  }
  std::string head;
  for (const auto& text : circumstances) {
    for (const auto& [name, value] : validators_from_text(text)) {
      head += fmt::format("Validator,{},{}\n", name, value);
    }
  }
  if (written == 0) {
    throw CommandError(exit_failed,
                       fmt::format("--out {}: not written, since no result can be converted",
                                   options.out.string()));
  }
  write_file(options.out, head + rows);
  tell_written(options.out, format_count(written, "GEMM"));
}

KernelExport kernel_export(const ExportOptions& options) {
  return {options.results, *options.kernel, options.problem, options.force};
}

/// Checks the options that exclude --kernel, and its own.
void check_kernel_options(const ExportOptions& options) {
  if (!options.kernel) {
    throw CommandError(exit_usage, fmt::format("{}: only with --kernel; --op and --dims select "
                                               "results",
                                               fmt::join(options.problem, " ")));
  }
  if (options.ship || !options.format.empty() || !options.out.empty() || options.since) {
    throw CommandError(exit_usage, "--kernel: not with --ship, --since, --format and --out");
  }
  check_kernel_export(kernel_export(options));
}

/// Checks the options that exclude --contribute, and its file.
void check_contribute_options(const ExportOptions& options) {
  if (options.ship || !options.format.empty() || !options.out.empty() || options.since ||
      options.kernel) {
    throw CommandError(exit_usage,
                       "--contribute: not with --ship, --since, --format, --out and --kernel");
  }
  check_folder("--contribute", options.contribute);
  if (std::filesystem::exists(options.contribute) && !options.force) {
    throw CommandError(exit_usage, fmt::format("--contribute {}: exists; --force replaces it",
                                               options.contribute.string()));
  }
}

void check(const ExportOptions& options) {
  if (!options.contribute.empty()) return check_contribute_options(options);
  if (options.kernel || !options.problem.empty()) return check_kernel_options(options);
  static const std::vector<std::string> formats{"csv", "csv-wide", "t4", "tunableop",
                                                "tunableop-untuned"};
  if (options.ship != options.format.empty()) {
    throw CommandError(
        exit_usage,
        fmt::format("export: needs either --ship, --contribute, --kernel or --format {}",
                    fmt::join(formats, ", ")));
  }
  if (!options.ship && std::find(formats.begin(), formats.end(), options.format) == formats.end()) {
    throw CommandError(exit_usage, fmt::format("--format {}: {}", options.format,
                                               must_be_one_of(options.format, formats)));
  }
  if (options.with_kernels && !options.ship) {
    throw CommandError(exit_usage, "--with-kernels: only with --ship");
  }
  if (!options.binaries.architectures.empty() && !options.ship) {
    throw CommandError(exit_usage, "--binaries: only with --ship");
  }
  if (!options.binaries.captures.empty() && options.binaries.architectures.empty()) {
    throw CommandError(exit_usage, "--problems: only with --binaries");
  }
  if (options.since && !options.ship) {
    throw CommandError(exit_usage, "--since: only with --ship");
  }
  if (options.since && options.since->empty()) {
    throw CommandError(exit_usage, "--since: needs a database");
  }
  if (is_output(options.out)) {
    if (options.ship) throw CommandError(exit_usage, "--out -: a database needs a file");
    return;
  }
  if (options.out.empty()) throw CommandError(exit_usage, "--out: needs a file name");
  check_folder("--out", options.out);
  const bool into_folder = options.format == "t4" && std::filesystem::is_directory(options.out);
  if (!into_folder) check_replaces(options.out, options.force);
  if (std::filesystem::weakly_canonical(options.out) ==
      std::filesystem::weakly_canonical(options.results.db)) {
    throw CommandError(exit_usage,
                       fmt::format("--out {}: is the database itself", options.out.string()));
  }
}

int export_results(const ExportOptions& options) {
  const ResultFilter filter = read_filter(options.results);
  check(options);
  const TunedDb db = open_database(options.results.db, TunedDb::Mode::read_only);
  if (options.kernel) return end_of_reading(db, export_kernels(db, kernel_export(options), filter));
  if (!options.contribute.empty()) {
    contribute(db, filter, options.contribute);
  } else if (options.ship) {
    ship(db, options, filter);
  } else if (options.format == "csv" || options.format == "csv-wide") {
    export_csv(db, options, filter);
  } else if (options.format == "t4") {
    export_t4(db, options, filter);
  } else {
    export_tunableop(db, options, filter, options.format == "tunableop-untuned");
  }
  return end_of_reading(db, exit_done);
}

}  // namespace

void add_export_command(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("export", "Write results for a runtime, or for other tools");
  auto options = std::make_shared<ExportOptions>();
  add_result_options(*command, options->results);
  command->add_flag("--ship", options->ship,
                    "A compact database that is only read: winners, ties, defaults, regrets");
  command->add_flag("--with-kernels", options->with_kernels,
                    "With --ship: also the descriptions and sources of kernels of your own, so "
                    "that applications need no other files");
  command
      ->add_option("--binaries", options->binaries.architectures,
                   "With --ship: also the compiled kernels of the results, for these architectures "
                   "(gfx942, sm_90, lavapipe, host-gfx942), so that applications need no compiler; "
                   "a list, or repeated")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("ARCHITECTURE");
  command
      ->add_option("--problems", options->binaries.captures,
                   "With --binaries: also the kernels of a capture's problems (of greta-run "
                   "--capture or libgreta-capture), tuned or not; may be repeated")
      ->allow_extra_args(false)
      ->type_name("FILE");
  command->add_option("--format", options->format,
                      "csv and csv-wide (docs/csv.md), t4 (Kernel Tuner's JSON), tunableop "
                      "(solutions that were imported) or tunableop-untuned (GEMMs for PyTorch to "
                      "tune)");
  command->add_option("--contribute", options->contribute,
                      "Write the file by which you give results to GRETA: certified, verified and "
                      "fresh ones, without names of persons and machines");
  command->add_option("--since", options->since,
                      "With --ship: write nothing if an answer is worse than in this database, or "
                      "lost (exit code 4)");
  command->add_option("--out", options->out, "Output file; - is standard output");
  command->add_option("--kernel", options->kernel,
                      "Write a winner's kernels into this folder: source, binary, launches, and a "
                      "program that runs and checks them (docs/kernel-project.md)");
  command->add_option("problem", options->problem,
                      "With --kernel, only this problem: gemm m=4096 n=4096 k=4096 dtype=f16");
  command->add_flag("--force", options->force, "Replace an existing file, or the kernels' folder");
  command->footer(
      "Examples: greta-db export --ship --fresh --out tuned.db\n"
      "          greta-db export --kernel my_gemm gemm m=4096 n=4096 k=4096");
  command->callback(
      [&action, options] { action = [options] { return export_results(*options); }; });
}

}  // namespace greta::tuner::cli
