#include "tuner/cli/program/report_page.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "runtime/device/system/input_file.hpp"
#include "runtime/device/system/output_file.hpp"
#include "runtime/device/system/utc.hpp"
#include "tuner/cli/program/damage_report.hpp"
#include "tuner/cli/program/databases.hpp"
#include "tuner/cli/program/known_operations.hpp"
#include "tuner/cli/program/next.hpp"
#include "tuner/cli/program/paths.hpp"
#include "tuner/cli/program/tool.hpp"
#include "tuner/page/columns.hpp"
#include "tuner/page/page.hpp"
#include "tuner/page/page_data.hpp"
#include "tuner/report/csv.hpp"

namespace greta::tuner::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t most_trace_bytes = std::uint64_t{256} << 20;

/// The page's element that says what wrote it.
constexpr std::string_view page_generator = "<meta name=\"generator\" content=\"greta-report";
constexpr std::size_t most_beginning_bytes = 4096;

/// Returns the first bytes of a file.
std::string beginning(const fs::path& file) {
  const auto opened = InputFile::open(file);
  if (!opened) throw CommandError(exit_usage, opened.failure().message);
  std::string bytes(most_beginning_bytes, '\0');
  const auto count = pread(opened->descriptor(), bytes.data(), bytes.size(), 0);
  bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  return bytes;
}

/// Returns the name of the first column of every CSV file, with what follows it.
std::string first_csv_column() {
  const std::string header = csv_header();
  return header.substr(0, header.find(',') + 1);
}

[[noreturn]] void refuse_unknown(const fs::path& file) {
  throw CommandError(exit_usage,
                     file.string() + ": neither a database, a recording, a baseline nor a trace");
}

/// Throws CommandError if work of a device has no place in time.
void check_times(const nlohmann::json& events, const fs::path& file) {
  const auto number = [](const nlohmann::json& event, const char* name) {
    return event.contains(name) && event[name].is_number();
  };
  for (std::size_t i = 0; i < events.size(); ++i) {
    const auto& event = events[i];
    const bool of_a_device = event.is_object() && event.contains("ph") && event["ph"] == "X" &&
                             number(event, "pid") && event["pid"] != 0;
    if (!of_a_device) continue;
    for (const char* name : {"ts", "dur"}) {
      if (number(event, name) && event[name].get<double>() >= 0) continue;
      throw CommandError(exit_usage, fmt::format("{}: event {}: \"{}\" is not a time in µs",
                                                 file.string(), i + 1, name));
    }
  }
}

nlohmann::json trace_of(const fs::path& file) {
  const auto text = device::read_file(file, most_trace_bytes);
  if (!text) throw CommandError(exit_usage, text.failure().message);
  auto trace = nlohmann::json::parse(*text, nullptr, false);
  if (trace.is_discarded()) refuse_unknown(file);
  if (!trace.is_object() || !trace.contains("traceEvents") || !trace["traceEvents"].is_array())
    throw CommandError(exit_usage, file.string() + ": not a trace of greta-run --trace");
  check_times(trace["traceEvents"], file);
  return trace;
}

/// Returns the shortest ends of paths that tell them apart. Two paths of one file have the whole
/// path.
std::vector<std::string> distinct_names(const std::vector<fs::path>& files) {
  std::vector<std::vector<fs::path>> parts;  // of each path, the last first
  std::size_t longest = 0;
  for (const auto& file : files) {
    const fs::path whole = fs::absolute(file).lexically_normal();
    parts.emplace_back(whole.begin(), whole.end());
    std::reverse(parts.back().begin(), parts.back().end());
    longest = std::max(longest, parts.back().size());
  }
  std::vector<std::string> names(files.size());
  const auto end_of = [&](std::size_t file, std::size_t count) {
    fs::path end;
    for (std::size_t i = std::min(count, parts[file].size()); i > 0; --i) end /= parts[file][i - 1];
    return end.string();
  };
  for (std::size_t count = 1; count <= longest; ++count) {
    std::map<std::string, std::size_t> same;
    for (std::size_t i = 0; i < files.size(); ++i) ++same[end_of(i, count)];
    for (std::size_t i = 0; i < files.size(); ++i) {
      const std::string end = end_of(i, count);
      if (names[i].empty() && (same[end] == 1 || count == longest)) names[i] = end;
    }
  }
  return names;
}

std::string command_of(const Problem& problem, const std::string& device, bool cold,
                       const PageDatabase& database) {
  const bool can_be_written = !database.db->shipped() && access(database.path.c_str(), W_OK) == 0;
  return can_be_written ? tune_command(problem, device, cold, database.path)
                        : tune_command_with_shipped(problem, device, cold, database.path);
}

std::vector<Recording> recordings_of(const std::vector<fs::path>& files) {
  std::vector<Recording> recordings;
  for (const auto& file : files) {
    auto recording = Recording::load(file);
    if (!recording) throw CommandError(exit_usage, recording.failure().message);
    if (!recording->subject())
      throw CommandError(exit_usage,
                         file.string() + ": not a recording of one of GRETA's operations");
    recordings.push_back(*std::move(recording));
  }
  return recordings;
}

/// Returns the data of the files.
nlohmann::json data_of(const ReportFiles& files) {
  std::vector<fs::path> all;
  for (const auto* list : {&files.databases, &files.recordings, &files.baselines, &files.traces})
    all.insert(all.end(), list->begin(), list->end());
  const auto names = distinct_names(all);
  auto name = names.begin();
  std::vector<TunedDb> databases;
  for (const auto& file : files.databases) databases.push_back(open_source(file));
  PageInput input{.utc = device::utc_now(), .tune_command = command_of};
  for (std::size_t i = 0; i < databases.size(); ++i)
    input.databases.push_back({*name++, &databases[i], files.databases[i]});
  const auto recordings = recordings_of(files.recordings);
  for (const auto& recording : recordings) input.recordings.push_back({*name++, &recording});
  for (const auto& file : files.baselines) {
    auto rows = read_csv(file);
    if (!rows) throw CommandError(exit_usage, rows.failure().message);
    if (rows->empty()) throw CommandError(exit_usage, file.string() + ": has no rows");
    input.baselines.push_back({*name++, *std::move(rows)});
  }
  for (const auto& file : files.traces) input.traces.push_back({*name++, trace_of(file)});
  return page_data(input, known_operations());
}

/// Throws CommandError if there is a file that is no page: it may be the only copy of results.
void check_replaces_page(const std::string& option, const fs::path& out) {
  std::error_code error;
  if (!fs::exists(out, error) || fs::file_size(out, error) == 0) return;
  const std::string begin = beginning(out);
  if (begin.starts_with("<!doctype html>") && begin.find(page_generator) != std::string::npos)
    return;
  throw CommandError(
      exit_usage,
      fmt::format("{} {}: exists and is not a page; it would be replaced", option, out.string()));
}

}  // namespace

ReportFiles report_files(const std::vector<std::string>& files) {
  ReportFiles sorted;
  std::vector<std::string> known;
  for (const auto& file : files) {
    const std::string begin = beginning(file);
    std::error_code error;
    const bool again = std::any_of(known.begin(), known.end(), [&](const std::string& other) {
      return fs::equivalent(other, file, error);
    });
    if (again) continue;
    known.push_back(file);
    constexpr std::string_view gzip = "\x1f\x8b", recording = "{\"format\":\"greta";
    if (begin.starts_with("SQLite format 3") || begin.empty()) {
      sorted.databases.emplace_back(file);
    } else if (begin.starts_with(gzip) || begin.starts_with(recording)) {
      sorted.recordings.emplace_back(file);
    } else if (begin.starts_with("{")) {
      sorted.traces.emplace_back(file);
    } else if (begin.starts_with(first_csv_column())) {
      sorted.baselines.emplace_back(file);
    } else {
      refuse_unknown(file);
    }
  }
  return sorted;
}

void check_report(const std::string& option, const fs::path& out,
                  const std::vector<fs::path>& inputs) {
  if (out.empty()) throw CommandError(exit_usage, option + " \"\": needs a file name");
  if (out == "-")
    throw CommandError(exit_usage,
                       option + " -: a page is written to a file, not to standard output");
  check_folder(option, out);
  for (const auto& input : inputs) {
    std::error_code error;
    if (!fs::equivalent(input, out, error) &&
        fs::weakly_canonical(input, error) != fs::weakly_canonical(out, error))
      continue;
    throw CommandError(exit_usage, fmt::format("{} {}: is not a page but {}; it would be replaced",
                                               option, out.string(), input.string()));
  }
  check_replaces_page(option, out);
  const auto page = page_html(nullptr);
  if (!page) throw CommandError(exit_failed, option + ": " + page.failure().message);
}

int end_of_report(const ReportFiles& files, int code) {
  for (const auto& file : files.databases) code = end_of_reading(open_source(file), code);
  return code;
}

std::string report_page(const ReportFiles& files) {
  const auto html = page_html(data_of(files));
  if (!html) throw CommandError(exit_failed, html.failure().message);
  return *html;
}

std::string report_data(const ReportFiles& files) {
  return script_json(data_of(files));
}

void write_report(const ReportFiles& files, const fs::path& out) {
  const std::string html = report_page(files);
  check_replaces_page("report", out);
  const auto written = replace_file(out, html);
  if (!written) throw CommandError(exit_failed, written.failure().message);
}

}  // namespace greta::tuner::cli
