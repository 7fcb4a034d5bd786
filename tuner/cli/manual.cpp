#include "tuner/cli/manual.hpp"

#include <fmt/format.h>

#include <functional>
#include <sstream>
#include <utility>
#include <vector>

#include "runtime/device/version.hpp"
#include "tuner/cli/tool.hpp"

namespace greta {
namespace {

std::vector<const CLI::App*> visible_commands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* command) { return !command->get_group().empty(); });
}

std::vector<const CLI::Option*> visible_options(const CLI::App& app) {
  return app.get_options([](const CLI::Option* option) { return !option->get_group().empty(); });
}

/// Every command, outermost first, with the words that reach it: "" for the tool itself, "verify",
/// "verify gemm".
void for_each_command(const CLI::App& app, const std::string& path,
                      const std::function<void(const CLI::App&, const std::string&)>& use) {
  use(app, path);
  for (const auto* command : visible_commands(app)) {
    const std::string name = command->get_name();
    for_each_command(*command, path.empty() ? name : path + " " + name, use);
  }
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

/// A word as it is, for man(7): no escapes, no hyphens that become dashes.
std::string roff_word(const std::string& word) {
  return replaced(replaced(word, "\\", "\\e"), "-", "\\-");
}

/// Lines as they are: no line is a request either.
std::string roff(const std::string& text) {
  std::istringstream lines(roff_word(text));
  std::string result;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(".") || line.starts_with("'")) result += "\\&";
    result += line + "\n";
  }
  return result;
}

std::string roff_options(const CLI::App& command) {
  std::string text;
  for (const auto* option : visible_options(command)) {
    const std::string value = option->get_expected_max() > 0 ? " VALUE" : "";
    const std::string names = replaced(option->get_name(false, true), ",", ", ");
    text += fmt::format(".TP\n.B {}{}\n", roff_word(names), value);
    text += roff(option->get_description());
  }
  return text;
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* command : visible_commands(app)) names.push_back(command->get_name());
  return names;
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* option : visible_options(app)) {
    for (const auto& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

/// In single quotes, as a shell takes it.
std::string shell_quoted(const std::string& text) {
  return "'" + replaced(replaced(text, "'", "'\\''"), "\n", " ") + "'";
}

/// Of bash, and of zsh through its bashcompinit. The longest path of words that is a command
/// decides.
std::string bash_completion(const CLI::App& app) {
  const std::string tool = app.get_name(), name = replaced(tool, "-", "_");
  std::string cases;
  for_each_command(app, "", [&](const CLI::App& command, const std::string& path) {
    auto words = command_names(command);
    for (const auto& option : option_names(command)) words.push_back(option);
    cases += fmt::format("    {}) words={} ;;\n", shell_quoted(path),
                         shell_quoted(fmt::format("{}", fmt::join(words, " "))));
  });
  return fmt::format(
      "_{0}_words() {{\n  case \"$1\" in\n{1}    *) return 1 ;;\n  esac\n}}\n"
      "_{0}() {{\n"
      "  local words path='' next word current=\"${{COMP_WORDS[COMP_CWORD]}}\"\n"
      "  _{0}_words ''\n"
      "  for word in \"${{COMP_WORDS[@]:1:COMP_CWORD-1}}\"; do\n"
      "    next=\"${{path:+$path }}$word\"\n"
      "    if _{0}_words \"$next\"; then path=\"$next\"; fi\n"
      "  done\n"
      "  _{0}_words \"$path\"\n"
      "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
      "}}\n"
      "complete -o default -F _{0} {2}\n",
      name, cases, tool);
}

std::string zsh_completion(const CLI::App& app) {
  return fmt::format("#compdef {}\nautoload -U +X bashcompinit && bashcompinit\n{}", app.get_name(),
                     bash_completion(app));
}

std::string fish_completion(const CLI::App& app) {
  const std::string tool = app.get_name();
  std::string text;
  for_each_command(app, "", [&](const CLI::App& command, const std::string& path) {
    // All words of the path are there, and of the commands below it none.
    std::string where;
    std::istringstream words(path);
    for (std::string word; words >> word;) {
      where += fmt::format("{}__fish_seen_subcommand_from {}", where.empty() ? "" : "; and ", word);
    }
    if (const auto names = command_names(command); !names.empty()) {
      where += fmt::format("{}not __fish_seen_subcommand_from {}", where.empty() ? "" : "; and ",
                           fmt::join(names, " "));
    }
    const std::string start = fmt::format("complete -c {} -n {}", tool, shell_quoted(where));
    for (const auto* below : visible_commands(command)) {
      text += fmt::format("{} -f -a {} -d {}\n", start, below->get_name(),
                          shell_quoted(below->get_description()));
    }
    for (const auto* option : visible_options(command)) {
      for (const auto& name : option->get_lnames()) {
        text += fmt::format("{} -l {}{} -d {}\n", start, name,
                            option->get_expected_max() > 0 ? " -r" : "",
                            shell_quoted(option->get_description()));
      }
    }
  });
  return text;
}

}  // namespace

std::string manual_page(const CLI::App& app) {
  const std::string tool = app.get_name();
  std::string text = fmt::format(
      ".TH {0} 1 \"\" \"GRETA {1}\" \"GRETA\"\n.SH NAME\n{2} \\- {3}.SH SYNOPSIS\n.B {2}\n"
      "[options] [command [options]]\n",
      tool, version(), roff_word(tool), roff(app.get_description()));
  text += ".SH OPTIONS\n" + roff_options(app);
  bool first = true;
  for_each_command(app, "", [&](const CLI::App& command, const std::string& path) {
    if (path.empty()) return;
    if (std::exchange(first, false)) text += ".SH COMMANDS\n";
    text += fmt::format(".SS {}\n{}", path, roff(command.get_description()));
    text += roff_options(command);
  });
  return text + ".SH EXAMPLES AND EXIT CODES\n.nf\n" + roff(app.get_footer()) + ".fi\n";
}

std::string completion(const CLI::App& app, const std::string& shell) {
  if (shell == "bash") return bash_completion(app);
  if (shell == "zsh") return zsh_completion(app);
  if (shell == "fish") return fish_completion(app);
  throw CommandError(exit_usage, "--completion " + shell + ": there are bash, zsh, fish");
}

}  // namespace greta
