#include "tuner/cli/program/manual.hpp"

#include <fmt/format.h>

#include <functional>
#include <sstream>
#include <utility>
#include <vector>

#include "runtime/device/version.hpp"
#include "tuner/cli/program/tool.hpp"

namespace greta::tuner::cli {
namespace {

std::vector<const CLI::App*> visible_commands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* command) { return !command->get_group().empty(); });
}

std::vector<const CLI::Option*> visible_options(const CLI::App& app) {
  return app.get_options([](const CLI::Option* option) { return !option->get_group().empty(); });
}

/// Visits every command, outermost first, with its path of words: "" for the tool itself, "verify",
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

/// Escapes a word for man(7), including hyphens that would become dashes.
std::string roff_word(const std::string& word) {
  return replaced(replaced(word, "\\", "\\e"), "-", "\\-");
}

/// Escapes lines, so that none is a request.
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
    const std::string value =
        option->get_expected_max() > 0 ? " " + option->get_type_name() : std::string();
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

/// Returns the text in single quotes for a shell.
std::string shell_quoted(const std::string& text) {
  return "'" + replaced(replaced(text, "'", "'\\''"), "\n", " ") + "'";
}

/// Returns every command with its path of words.
std::vector<std::pair<std::string, const CLI::App*>> all_commands(const CLI::App& app) {
  std::vector<std::pair<std::string, const CLI::App*>> commands;
  for_each_command(app, "", [&](const CLI::App& command, const std::string& path) {
    commands.emplace_back(path, &command);
  });
  return commands;
}

/// Returns "greta_tune", the prefix of shell function names.
std::string function_name(const CLI::App& app) {
  return replaced(app.get_name(), "-", "_");
}

/// Returns bash functions, which zsh accepts as well. The longest path of words that is a command
/// selects the completion.
std::string bash_functions(const CLI::App& app) {
  std::string cases;
  for (const auto& [path, command] : all_commands(app)) {
    auto words = command_names(*command);
    for (const auto& option : option_names(*command)) words.push_back(option);
    cases += fmt::format("    {}) offered={} ;;\n", shell_quoted(path),
                         shell_quoted(fmt::format("{}", fmt::join(words, " "))));
  }
  return fmt::format(
      "_{0}_words() {{\n  case \"$1\" in\n{1}    *) return 1 ;;\n  esac\n}}\n"
      "_{0}() {{\n"
      "  local offered command='' next word current=\"${{COMP_WORDS[COMP_CWORD]}}\"\n"
      "  _{0}_words ''\n"
      "  for word in \"${{COMP_WORDS[@]:1:$((COMP_CWORD - 1))}}\"; do\n"
      "    next=\"${{command:+$command }}$word\"\n"
      "    if _{0}_words \"$next\"; then command=\"$next\"; fi\n"
      "  done\n"
      "  _{0}_words \"$command\"\n"
      "  COMPREPLY=($(compgen -W \"$offered\" -- \"$current\"))\n"
      "}}\n",
      function_name(app), cases);
}

std::string bash_completion(const CLI::App& app) {
  return fmt::format("{}complete -o default -F _{} {}\n", bash_functions(app), function_name(app),
                     app.get_name());
}

/// Returns the completion for zsh, through bashcompinit. If it is installed in zsh's function path,
/// the first completion loads it, and it completes that one as well.
std::string zsh_completion(const CLI::App& app) {
  return fmt::format(
      "#compdef {0}\nautoload -U +X bashcompinit && bashcompinit\n{1}"
      "complete -o default -F _{2} {0}\n"
      "if [[ ${{funcstack[1]-}} = _{0} ]]; then _bash_complete -o default -F _{2}; fi\n",
      app.get_name(), bash_functions(app), function_name(app));
}

std::string fish_completion(const CLI::App& app) {
  const std::string tool = app.get_name(), at = "__" + function_name(app) + "_at";
  std::string paths, text;
  for (const auto& [path, command] : all_commands(app)) {
    if (!path.empty()) paths += " " + shell_quoted(path);
    const std::string start =
        fmt::format("complete -c {} -n {}", tool, shell_quoted(fmt::format("{} {}", at, path)));
    for (const auto* below : visible_commands(*command)) {
      text += fmt::format("{} -f -a {} -d {}\n", start, below->get_name(),
                          shell_quoted(below->get_description()));
    }
    for (const auto* option : visible_options(*command)) {
      for (const auto& name : option->get_lnames()) {
        text += fmt::format("{} -l {}{} -d {}\n", start, name,
                            option->get_expected_max() > 0 ? " -r" : "",
                            shell_quoted(option->get_description()));
      }
    }
  }
  // Tests whether this command is the longest path of the words so far.
  return fmt::format(
             "function {0}\n"
             "  set -l command ''\n"
             "  for word in (commandline -opc)[2..-1]\n"
             "    set -l next (string trim -- \"$command $word\")\n"
             "    contains -- \"$next\"{1}; and set command \"$next\"\n"
             "  end\n"
             "  test \"$command\" = \"$argv\"\n"
             "end\n",
             at, paths) +
         text;
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

}  // namespace greta::tuner::cli
