#include "tuner/cli/program/next.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/device/text/printable.hpp"
#include "tuner/cli/options/problem_options.hpp"
#include "tuner/cli/program/known_operations.hpp"
#include "tuner/cli/program/paths.hpp"
#include "tuner/report/format.hpp"

namespace greta::tuner::cli {
namespace {

constexpr std::size_t most_steps = 3;

/// Returns a word of a command line, in quotes if a shell needs them.
std::string shell_word(const std::string& word) {
  constexpr std::string_view plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+./:,@%";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

/// Returns --db if it is not the default.
std::string database_words(const std::filesystem::path& database) {
  return database == default_database() ? "" : " --db " + shell_word(database.string());
}

/// Returns a line with a command, which is not divided, so that it can be copied.
std::string command_line(const std::string& command) {
  return "               $ " + one_line(command) + "\n";
}

/// Returns the file that describes an operation of operations_in_use().
std::string path_of_kernel(const std::string& name) {
  for (const KernelFile& file : described_kernels()) {
    if (file.description.name == name) return shell_word(file.path.string());
  }
  return name;
}

}  // namespace

std::string tune_command(const Problem& problem, const std::string& device, bool cold,
                         const std::filesystem::path& database) {
  const Operation& operation = operations_in_use().at(problem.op);
  const bool described = Catalog::built_in().find(problem.op) == nullptr;
  std::string text =
      "greta-tune " + (described ? "kernel " + path_of_kernel(problem.op) : problem.op);
  for (const auto& [name, value] : problem.dims)
    text += fmt::format(" {} {}", option_of(name), value);
  for (const auto& [name, value] : problem.attributes) {
    const auto attribute = std::find_if(operation.attributes.begin(), operation.attributes.end(),
                                        [&](const Attribute& one) { return one.name == name; });
    if (attribute == operation.attributes.end() || attribute->fallback != value)
      text += fmt::format(" {} {}", option_of(name), shell_word(value));
  }
  if (!described) text += fmt::format(" --dtype {}", to_string(problem.dtype));
  if (!described && problem.out_dtype != problem.dtype)
    text += fmt::format(" --out-dtype {}", to_string(problem.out_dtype));
  return text +
         fmt::format(" --device {}{} --budget 5m", shell_word(device), cold ? "" : " --warm") +
         database_words(database);
}

std::string tune_command_with_shipped(const Problem& problem, const std::string& device, bool cold,
                                      const std::filesystem::path& shipped) {
  const std::string text = tune_command(problem, device, cold, default_database());
  // Those that GRETA ships are known without an option.
  const auto folder = std::filesystem::weakly_canonical(folder_of_shipped());
  const auto from_folder = std::filesystem::weakly_canonical(shipped).lexically_relative(folder);
  if (!from_folder.empty() && *from_folder.begin() != "..") return text;
  return text + " --shipped " + shell_word(shipped.string());
}

std::string next_text(const TunedDb& db, const std::vector<Problem>& done) {
  StalenessJudge judge(operations_in_use());
  std::string text;
  auto results = db.results();
  std::erase_if(results, [&](const StoredWinner& result) {
    return operations_in_use().find(result.problem.op) == nullptr ||
           std::find(done.begin(), done.end(), result.problem) != done.end();
  });
  const auto steps = next_steps(results, judge, most_steps);
  if (std::any_of(steps.begin(), steps.end(), [](const NextStep& step) { return step.stale; }))
    text += format_row("next", "stale winners can be measured again:") +
            command_line("greta-db requalify" + database_words(db.file()));
  for (const NextStep& step : steps) {
    text += format_row(text.empty() ? "next" : "", step.problem.key() + ": " + step.why);
    text += command_line(tune_command(step.problem, step.device_id, step.cold, db.file()));
  }
  return text;
}

}  // namespace greta::tuner::cli
