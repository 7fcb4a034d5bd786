#include "tuner/cli/program/tool.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <mutex>
#include <set>
#include <span>
#include <vector>

#include "kernels/model/embedded.hpp"
#include "runtime/device/result.hpp"
#include "runtime/device/system/log.hpp"
#include "runtime/device/text/spelling.hpp"
#include "runtime/device/version.hpp"
#include "tuner/cli/program/help.hpp"
#include "tuner/cli/program/interrupt.hpp"
#include "tuner/cli/program/known_operations.hpp"
#include "tuner/cli/program/manual.hpp"
#include "tuner/cli/program/validate.hpp"
#include "tuner/evaluate/worker.hpp"
#include "tuner/report/print.hpp"
#include "tuner/report/terminal_size.hpp"

namespace greta::tuner::cli {
namespace {

std::vector<const CLI::App*> commands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

const CLI::App* find_command(const CLI::App& app, const std::string& name) {
  for (const auto* command : commands(app)) {
    if (command->get_name() == name) return command;
  }
  return nullptr;
}

std::vector<std::string> list_of_commands(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* command : commands(app)) {
    if (!command->get_group().empty()) names.push_back(command->get_name());
  }
  return names;
}

std::string names_of_commands(const CLI::App& app) {
  return fmt::format("{}", fmt::join(list_of_commands(app), ", "));
}

// Returns "; did you mean X?", or else the text.
std::string or_meant(const std::string& meant, const std::string& otherwise) {
  return meant.empty() ? otherwise : fmt::format("; did you mean {}?", meant);
}

bool is_help(const std::string& word) {
  return word == "-h" || word == "--help";
}

[[noreturn]] void refuse_words(const std::string& message) {
  throw CommandError(exit_usage, message);
}

// Checks the first argument of a command that has operations.
void check_operation(const CLI::App& command, std::span<const std::string> words) {
  const auto operations = commands(command);
  if (operations.empty() || (!words.empty() && is_help(words[0]))) return;
  const std::string name = command.get_name(), known = names_of_commands(command);
  if (words.empty() || words[0].starts_with("-")) {
    if (command.get_require_subcommand_min() == 0) return;
    refuse_words(fmt::format("{}: needs an operation first: {}", name, known));
  }
  if (find_command(command, words[0]) == nullptr) {
    refuse_words(fmt::format(
        "{} {}: no such operation{}", name, words[0],
        or_meant(nearest_spelling(words[0], list_of_commands(command)), "; there are " + known)));
  }
}

// Refuses a value for a flag: --json=yes.
void check_takes_value(const CLI::App& app, std::span<const std::string> words,
                       const std::string& name) {
  const CLI::App* command = &app;
  for (const auto& word : words) {
    const CLI::App* const next = word.starts_with("-") ? nullptr : find_command(*command, word);
    if (next == nullptr) break;
    command = next;
  }
  const auto* option = command->get_option_no_throw(name);
  if (option != nullptr && option->get_expected_max() == 0 && option->get_fnames().empty()) {
    refuse_words(name + ": takes no value");
  }
}

// Reports errors that the option parser would report in its own style.
void check_words(const CLI::App& app, bool needs_command, std::span<const std::string> words) {
  for (const auto& word : words) {
    if (word.starts_with("--") && word.find('=') == word.size() - 1) {
      refuse_words(word + ": the value is empty");
    }
    if (word.starts_with("--") && word.find('=') != std::string::npos) {
      check_takes_value(app, words, word.substr(0, word.find('=')));
    }
  }
  if (words.empty() && !needs_command) return;
  if (words.empty()) refuse_words("a command is needed: " + names_of_commands(app));
  if (words[0].starts_with("-")) {
    const bool known = app.get_option_no_throw(words[0].substr(0, words[0].find('='))) != nullptr;
    const bool has_command = std::any_of(words.begin(), words.end(), [&](const auto& word) {
      return find_command(app, word) != nullptr;
    });
    if (needs_command && !known && !has_command) {
      refuse_words(
          fmt::format("{}: a command is needed first: {}", words[0], names_of_commands(app)));
    }
    return;
  }
  const CLI::App* command = find_command(app, words[0]);
  const auto options = app.get_options();
  const bool takes_words =
      std::any_of(options.begin(), options.end(),
                  [](const CLI::Option* option) { return option->get_positional(); });
  if (command == nullptr && takes_words) return;
  if (command == nullptr) {
    refuse_words(fmt::format("{}: no such command{}", words[0],
                             or_meant(nearest_spelling(words[0], list_of_commands(app)),
                                      "; there are " + names_of_commands(app))));
  }
  check_operation(*command, words.subspan(1));
}

// Returns the command that the words select, as far as they do.
const CLI::App* chosen_command(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? &app : chosen_command(*chosen.front());
}

std::vector<std::string> list_of_options(const CLI::App& command) {
  std::vector<std::string> names;
  for (const auto* option : command.get_options()) {
    if (!option->get_group().empty()) names.push_back(option->get_name());
  }
  return names;
}

// An option without a text would be taken for one that is not given.
void check_values(const CLI::App& app, const std::vector<std::string>& text_options) {
  for (const auto* option : chosen_command(app)->get_options()) {
    const std::string name = option->get_name();
    const auto& values = option->results();
    if (option->get_expected_min() == 0) continue;  // it may be without a value
    if (!name.starts_with("-") || std::find(values.begin(), values.end(), "") == values.end())
      continue;
    if (std::find(text_options.begin(), text_options.end(), name) == text_options.end())
      refuse_words(name + ": needs a value");
  }
}

// Options of the program itself have no effect on a command.
void check_own_options(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  if (chosen.empty()) return;
  for (const auto* option : app.get_options()) {
    if (option->count() == 0) continue;
    refuse_words(
        fmt::format("{}: not with the command {}", option->get_name(), chosen.front()->get_name()));
  }
}

// Returns the first word that no option takes.
std::string unexpected(const CLI::App& app) {
  const CLI::App& command = *chosen_command(app);
  const std::string word = app.remaining(true).front();
  if (!word.starts_with("-")) return fmt::format("{}: not expected here", word);
  const std::string name = word.substr(0, word.find('='));
  const std::string meant = nearest_spelling(name, list_of_options(command));
  if (meant == name) {
    return fmt::format("{}: belongs after the command {}", name, command.get_name());
  }
  return fmt::format("{}: {} has no such option{}", name, command.get_name(),
                     or_meant(meant, "; --help lists them"));
}

// Returns the error of an option that lacks its value or has too many, which the parser words as
// "--m: 1 required N missing" or "--m: At Most 1 required but received 2".
std::string mismatch(const CLI::App& app, const std::string& said) {
  const std::string name = said.substr(0, said.find(':'));
  const auto* option = chosen_command(app)->get_option_no_throw(name);
  if (option == nullptr) return said;
  if (option->get_expected_max() == 0) return name + ": takes no value";
  if (option->count() == 0)
    return fmt::format("{}: needs a value, {}", name, option->get_type_name());
  return fmt::format("{}: given {} times, allowed once", name, option->count());
}

// Returns the error of a command line that lacks a command, as "-- gemm" does, or a word that the
// command takes, which the parser words as "A subcommand is required" and "host is required".
std::string lacking(const CLI::App& app, const std::string& said) {
  const CLI::App& command = *chosen_command(app);
  if (&command == &app && app.get_require_subcommand_min() > 0) {
    return "a command is needed first: " + names_of_commands(app);
  }
  for (const auto* option : command.get_options()) {
    if (option->get_positional() && option->get_required() && option->count() == 0)
      return fmt::format("{}: needs {}", command.get_name(), option->get_type_name());
  }
  return said;
}

// Opens standard streams that the caller closed, so that files opened later don't get their
// descriptors. Output to a closed stream fails, as it should. Messages are discarded.
void open_standard_streams() {
  constexpr std::array<const char*, 3> substitutes{"/dev/null", "/dev/full", "/dev/null"};
  for (int descriptor = 0; descriptor < 3; ++descriptor) {
    if (fcntl(descriptor, F_GETFD) < 0) {
      static_cast<void>(open(substitutes[static_cast<std::size_t>(descriptor)], O_RDWR));
    }
  }
}

// Returns the words of a command line. The word after one of `text_options` is its value, even if
// it looks like an option.
std::vector<std::string> words_of(std::span<char*> arguments,
                                  const std::vector<std::string>& text_options) {
  std::vector<std::string> words;
  bool value = false;  // this word is the value of the previous one
  for (const char* const argument : arguments) {
    const std::string word = argument;
    if (value && word.starts_with("-")) {
      words.back() += "=" + word;
      value = false;
      continue;
    }
    value =
        !value && std::find(text_options.begin(), text_options.end(), word) != text_options.end();
    words.push_back(word);
  }
  return words;
}

// Prints what the build installs beside the program, for options that only the build uses.
bool print_documentation(const CLI::App& app, const std::vector<std::string>& words) {
  if (words.size() == 1 && words[0] == "--manual") {
    print_text(manual_page(app));
  } else if (words.size() == 2 && words[0] == "--completion") {
    print_text(completion(app, words[1]));
  } else {
    return false;
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    throw CommandError(exit_failed, "can't write the output");
  return true;
}

std::mutex also_warn_mutex;
std::function<void(const std::string&)> also_warn;

// Prints warnings of the lower layers, each different one once.
void tell_warnings(const std::string& tool) {
  set_log_sink([tool, told = std::set<std::string, std::less<>>()](LogLevel level,
                                                                   std::string_view line) mutable {
    if (level != LogLevel::warning || !told.emplace(line).second) return;
    tell(fmt::format("{}: {}", tool, line));
    const std::lock_guard lock(also_warn_mutex);
    if (also_warn) also_warn(std::string(line));
  });
}

/// Returns COLUMNS; 0 if it is not a number.
std::size_t columns_of_environment() {
  const char* const value = std::getenv("COLUMNS");
  return value != nullptr ? std::strtoul(value, nullptr, 10) : 0;
}

}  // namespace

int run_tool(const Tool& tool, int argc, char** argv) {
  open_standard_streams();
  std::signal(SIGXFSZ, SIG_IGN);  // a file beyond its size limit becomes a write error
  tell_warnings(tool.name);
  set_output_columns(columns_of_environment());
  const PrintedStream output(std::cout, stdout), errors(std::cerr, stderr);
  const auto complain = [&](int code, const std::string& message) {
    answer_interrupt();
    tell(tool.name + ": " + message);
    return code;
  };
  CLI::App app(tool.summary, tool.name);
  app.footer(tool.examples +
             "\n\nExit codes: 0 done, 1 failed, 2 bad usage, 3 no device, 4 regression.");
  app.set_version_flag("-V,--version", fmt::format("{} {}", tool.name, version()));
  app.require_subcommand(tool.needs_command ? 1 : 0, 1);
  Action action;
  try {
    tool.add_commands(app, action);
    name_values(app);
    const auto words = words_of({argv + std::min(argc, 1), argv + argc}, tool.text_options);
    if (print_documentation(app, words)) return exit_done;
    check_words(app, tool.needs_command, words);
    validate_if_asked();
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));  // in reverse order
    check_own_options(app);
    check_values(app, tool.text_options);
    const int code = wants_validation() ? run_validated(tool.text_options) : action();
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
      throw CommandError(exit_failed, "can't write the output");
    return code;
  } catch (const CLI::Success& success) {  // --help, --version
    app.exit(success);
    return std::cout.flush() ? exit_done : complain(exit_failed, "can't write the output");
  } catch (const CLI::ExtrasError&) {
    return complain(exit_usage, unexpected(app));
  } catch (const CLI::ArgumentMismatch& error) {
    return complain(exit_usage, mismatch(app, error.what()));
  } catch (const CLI::RequiredError& error) {
    return complain(exit_usage, lacking(app, error.what()));
  } catch (const CLI::ParseError& error) {
    return complain(exit_usage, error.what());
  } catch (const CommandError& error) {
    return complain(error.code(), error.what());
  } catch (const Error& error) {
    return complain(error.status() == Status::constraints ? exit_usage : exit_failed, error.what());
  } catch (const std::bad_alloc&) {
    return complain(exit_failed, "out of memory");
  } catch (const std::exception& error) {
    return complain(exit_failed, error.what());
  }
}

AlsoWarn::AlsoWarn(std::function<void(const std::string&)> warn) {
  const std::lock_guard lock(also_warn_mutex);
  also_warn = std::move(warn);
}

AlsoWarn::~AlsoWarn() {
  const std::lock_guard lock(also_warn_mutex);
  also_warn = nullptr;
}

void add_templates_option(CLI::App& command) {
  command
      .add_option_function<std::string>(
          "--templates",
          [](const std::string& folder) {
            try {
              use_templates(folder);
            } catch (const Error& error) {
              throw CommandError(exit_usage, std::string("--templates ") + error.what());
            }
          },
          "A folder like kernels/templates, whose files replace the built-in ones")
      ->group("Development");
}

std::vector<std::string> worker_command() {
  std::vector<std::string> words{"/proc/self/exe", "worker"};
  if (!template_folder().empty()) {
    words.insert(words.end(), {"--templates", template_folder().string()});
  }
  const auto kernels = words_of_kernels();
  words.insert(words.end(), kernels.begin(), kernels.end());
  return words;
}

void add_worker_command(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("worker", "Serve a tuning session (internal)");
  command->group("");  // hidden
  add_templates_option(*command);
  auto kernels = std::make_shared<std::vector<std::string>>();
  command->add_option("--kernel", *kernels, "Descriptions of kernels")->allow_extra_args(false);
  auto reference = std::make_shared<std::string>();
  command->add_option("--reference", *reference, "Socket of what computes their reference");
  command->callback([&action, kernels, reference] {
    action = [kernels, reference] {
      for (const std::string& file : *kernels) add_described(file, *reference);
      return serve_as_worker(operations_in_use());
    };
  });
}

}  // namespace greta::tuner::cli
