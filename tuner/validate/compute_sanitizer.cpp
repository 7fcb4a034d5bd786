#include "tuner/validate/compute_sanitizer.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "runtime/device/system/input_file.hpp"

namespace greta::tuner {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view prefix = "=========";
/// Begins the name of the files with reports.
constexpr std::string_view report = "report-";
constexpr std::uint64_t most_report_bytes = std::uint64_t{1} << 28;

/// Returns the kind that the first line of a report states, without what differs between reports of
/// this kind: the places of a race, and the size and address of a leak.
std::string kind_of(std::string_view line) {
  std::string kind(line.substr(0, line.find(" at 0x")));
  if (kind.find("Race reported") != std::string::npos) kind = kind.substr(0, kind.find(" between"));
  if (kind.starts_with("Leaked ")) kind = "Leaked memory";
  return kind;
}

/// Returns whether a line is about the run, not about something that was found.
bool is_frame(std::string_view line) {
  return line.starts_with("COMPUTE-SANITIZER") ||
         line.find("SUMMARY: ") != std::string_view::npos ||
         line.starts_with("Target application returned") || line.empty();
}

/// Collects the lines of reports.
class Reader {
 public:
  explicit Reader(Findings& findings) : findings_(findings) {}
  ~Reader() { finish(); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  void add(std::string_view line) {
    if (!line.starts_with(prefix)) return;  // output of the program
    line.remove_prefix(prefix.size());
    if (line.starts_with(" ")) line.remove_prefix(1);
    if (line.starts_with(" ")) {
      if (!text_.empty()) text_ += "\n" + std::string(line);
      return;
    }
    finish();
    if (line.starts_with("ERROR SUMMARY: ")) {
      stated_ +=
          std::strtoull(line.data() + std::string_view("ERROR SUMMARY: ").size(), nullptr, 10);
    }
    if (!is_frame(line)) text_ = line;
  }

  void finish() {
    if (text_.empty()) return;
    const std::string_view first = std::string_view(text_).substr(0, text_.find('\n'));
    const bool error = !first.starts_with("Warning");
    findings_.add(kind_of(first), error, text_);
    if (error) ++seen_;
    text_.clear();
  }

  /// Errors that the summary states and that were not printed.
  std::uint64_t unprinted() const { return stated_ > seen_ ? stated_ - seen_ : 0; }

 private:
  Findings& findings_;
  std::string text_;
  std::uint64_t stated_ = 0, seen_ = 0;
};

}  // namespace

std::optional<fs::path> find_compute_sanitizer(std::string_view path) {
  std::istringstream folders(std::string(path) + ":/usr/local/cuda/bin:/opt/cuda/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (folder.empty()) continue;
    const fs::path program = fs::path(folder) / "compute-sanitizer";
    std::error_code ignored;
    if (fs::is_regular_file(program, ignored) && access(program.c_str(), X_OK) == 0) return program;
  }
  return {};
}

std::vector<std::string> sanitizer_command(const fs::path& program, std::string_view tool,
                                           const fs::path& folder,
                                           const std::vector<std::string>& command) {
  std::vector<std::string> words{program.string(), "--tool", std::string(tool),
                                 "--target-processes", "all", "--print-limit", "10000",
                                 // Probes of the driver end with an error, such as the end of a
                                 // kernel's parameters; errors that matter are GRETA's own.
                                 "--report-api-errors", "no", "--log-file",
                                 (folder / (std::string(report) + "%p")).string()};
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

void read_sanitizer_text(std::string_view text, Findings& findings) {
  Reader reader(findings);
  while (!text.empty()) {
    const auto end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    reader.add(line);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  reader.finish();
  if (const auto count = reader.unprinted(); count > 0) {
    findings.add("Not printed", true, fmt::format("{} errors that were not printed", count), count);
  }
}

Result<SanitizerReports> read_sanitizer_reports(const fs::path& folder) {
  SanitizerReports reports;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (!entry.path().filename().string().starts_with(report)) continue;
    const auto text = read_file(entry.path(), most_report_bytes);
    if (!text) return text.failure();
    ++reports.files;
    read_sanitizer_text(*text, reports.findings);
  }
  return reports;
}

}  // namespace greta::tuner
