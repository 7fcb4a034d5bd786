#include "tuner/cli/program/report_page.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "runtime/device/system/input_file.hpp"
#include "runtime/device/system/utc.hpp"
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

/// Returns the first bytes of a file.
std::string beginning(const fs::path& file) {
  const auto opened = InputFile::open(file);
  if (!opened) throw CommandError(exit_usage, opened.failure().message);
  std::string bytes(16, '\0');
  const auto count = pread(opened->descriptor(), bytes.data(), bytes.size(), 0);
  bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  return bytes;
}

nlohmann::json trace_of(const fs::path& file) {
  const auto text = device::read_file(file, most_trace_bytes);
  if (!text) throw CommandError(exit_usage, text.failure().message);
  auto trace = nlohmann::json::parse(*text, nullptr, false);
  if (!trace.is_object() || !trace.contains("traceEvents") || !trace["traceEvents"].is_array())
    throw CommandError(exit_usage, file.string() + ": not a trace of greta-run --trace");
  return trace;
}

std::string command_of(const Problem& problem, const std::string& device, bool cold,
                       const PageDatabase& database) {
  const bool can_be_written = !database.db->shipped() && access(database.path.c_str(), W_OK) == 0;
  return can_be_written ? tune_command(problem, device, cold, database.path)
                        : tune_command_with_shipped(problem, device, cold, database.path);
}

/// Returns the data of the files.
nlohmann::json data_of(const ReportFiles& files) {
  std::vector<TunedDb> databases;
  for (const auto& file : files.databases) databases.push_back(open_source(file));
  PageInput input{.utc = device::utc_now(), .tune_command = command_of};
  for (std::size_t i = 0; i < databases.size(); ++i)
    input.databases.push_back(
        {files.databases[i].filename().string(), &databases[i], files.databases[i]});
  std::vector<Recording> recordings;
  for (const auto& file : files.recordings) {
    auto recording = Recording::load(file);
    if (!recording) throw CommandError(exit_usage, recording.failure().message);
    if (!recording->subject())
      throw CommandError(exit_usage,
                         file.string() + ": not a recording of one of GRETA's operations");
    recordings.push_back(*std::move(recording));
  }
  for (std::size_t i = 0; i < recordings.size(); ++i)
    input.recordings.push_back({files.recordings[i].filename().string(), &recordings[i]});
  for (const auto& file : files.baselines) {
    auto rows = read_csv(file);
    if (!rows) throw CommandError(exit_usage, rows.failure().message);
    input.baselines.push_back({file.filename().string(), *std::move(rows)});
  }
  for (const auto& file : files.traces)
    input.traces.push_back({file.filename().string(), trace_of(file)});
  return page_data(input, known_operations());
}

/// Throws CommandError if there is a file that is no page: it may be the only copy of results.
void check_replaces_page(const std::string& option, const fs::path& out) {
  std::error_code error;
  if (!fs::exists(out, error) || fs::file_size(out, error) == 0) return;
  if (beginning(out).starts_with("<!doctype html>")) return;
  throw CommandError(
      exit_usage,
      fmt::format("{} {}: exists and is not a page; it would be replaced", option, out.string()));
}

}  // namespace

ReportFiles report_files(const std::vector<std::string>& files) {
  ReportFiles sorted;
  for (const auto& file : files) {
    const std::string begin = beginning(file);
    constexpr std::string_view gzip = "\x1f\x8b", recording = "{\"format\":\"greta";
    auto& list = begin.starts_with("SQLite format 3") || begin.empty()     ? sorted.databases
                 : begin.starts_with(gzip) || begin.starts_with(recording) ? sorted.recordings
                 : begin.starts_with("{")                                  ? sorted.traces
                                                                           : sorted.baselines;
    list.emplace_back(file);
  }
  return sorted;
}

void check_report(const std::string& option, const fs::path& out) {
  if (out.empty()) throw CommandError(exit_usage, option + " \"\": needs a file name");
  check_folder(option, out);
  check_replaces_page(option, out);
  const auto page = page_html(nullptr);
  if (!page) throw CommandError(exit_failed, option + ": " + page.failure().message);
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
  const fs::path part = out.string() + fmt::format(".{}.part", getpid());
  const auto refuse = [&] {
    std::error_code ignored;
    fs::remove(part, ignored);
    throw CommandError(exit_failed, out.string() + ": can't be written");
  };
  if (!(std::ofstream(part, std::ios::binary | std::ios::trunc) << html).flush()) refuse();
  std::error_code error;
  fs::rename(part, out, error);
  if (error) refuse();
}

}  // namespace greta::tuner::cli
