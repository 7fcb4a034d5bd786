#include "tuner/remote/remote_script.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <sstream>

namespace greta::tuner {
namespace {

constexpr const char *greeting = "greta-remote", *no_start = "greta-does-not-start";

/// Defines `runs`: whether the command of the current folder runs. A number that another program
/// has now does not count.
constexpr const char* runs_function =
    "runs() { p=$(cat pid 2>/dev/null) && [ -n \"$p\" ] && grep -q greta /proc/$p/cmdline "
    "2>/dev/null; };\n";

std::optional<std::uint64_t> number(const std::string& text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// The free space of a line of df -P: the word before the percentage.
std::optional<std::uint64_t> free_of(const std::string& line) {
  std::istringstream words(line);
  std::string before;
  for (std::string word; words >> word; before = word) {
    if (word.size() > 1 && word.back() == '%') return number(before);
  }
  return std::nullopt;
}

}  // namespace

std::string quoted(const std::string& word) {
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

bool is_plain_path(const std::string& path) {
  return !path.empty() && path.front() != '-' && std::all_of(path.begin(), path.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '/' ||
           c == '.' || c == '_' || c == '-' || c == '+' || c == '@';
  });
}

std::string run_script(const std::vector<std::string>& words, const std::string& build,
                       const std::string& folder) {
  std::string command;
  for (const std::string& word : words) command += quoted(word) + " ";
  return fmt::format(
      "cd {0} || exit 1\n"
      "LD_LIBRARY_PATH={1}/lib${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}\n"
      "export LD_LIBRARY_PATH\n"
      "{2}>out 2>err </dev/null &\n"
      "echo $! >pid.part\n"
      "mv pid.part pid\n"
      "wait $!\n"
      "echo $? >exit.part\n"
      "mv exit.part exit\n"
      "rm -f pid\n",
      folder, build, command);
}

std::string look_script(const std::string& folder, const std::string& key) {
  const std::string place =
      folder.empty() ? "${XDG_CACHE_HOME:-$HOME/.cache}/greta/remote" : folder;
  return fmt::format(
      "umask 077; cd; b={}; mkdir -p \"$b/builds\" \"$b/runs\" && cd \"$b\" || exit 1;\n"
      // What copies left that did not end. A home folder may be that of several machines.
      "for p in builds/*.part.$(uname -n).*; do [ -d \"$p\" ] || continue;\n"
      "kill -0 ${{p##*.}} 2>/dev/null || rm -rf \"$p\"; done;\n"
      "echo {}; pwd -P; uname -s; uname -m; df -Pk . | tail -n 1;\n{}"
      "(cd runs/{} 2>/dev/null || {{ echo none; exit 0; }}; if [ -f exit ]; then echo ended;\n"
      "elif runs; then echo runs; elif [ -f run.sh ]; then echo stopped; else echo none; fi);\n"
      "ls builds;",
      place, greeting, runs_function, key.empty() ? "." : key);
}

Result<RemotePlace> read_look(const std::string& said) {
  std::istringstream lines(said);
  std::string line, space;
  while (line != greeting && std::getline(lines, line)) {
  }
  RemotePlace place;
  if (!std::getline(lines, place.folder) || !std::getline(lines, place.system) ||
      !std::getline(lines, place.architecture) || !std::getline(lines, space) ||
      !std::getline(lines, place.state)) {
    return invalid_argument("does not answer as a system with sh");
  }
  if (!is_plain_path(place.folder) || place.folder.front() != '/') {
    return invalid_argument(
        fmt::format("the folder \"{}\" has characters other than letters, "
                    "digits, /, ., _, -, + and @; --folder names another one",
                    place.folder));
  }
  const auto free = free_of(space);
  if (!free) return invalid_argument("df does not report the free space");
  place.free_kib = *free;
  while (std::getline(lines, line)) place.builds.push_back(line);
  return place;
}

std::string copy_build_script(const std::string& build) {
  return fmt::format(
      "umask 077; p={0}.part.$(uname -n).$$;\n"
      "mkdir -p \"$p\" && cd \"$p\" && tar -xzf - || {{ rm -rf \"$p\"; exit 1; }};\n"
      "e=$(LD_LIBRARY_PATH=\"$p/lib\" bin/greta-tune --version 2>&1 >/dev/null </dev/null) ||\n"
      "{{ rm -rf \"$p\"; echo {1}; echo \"$e\"; exit 0; }};\n"
      "[ -d {0} ] && rm -rf \"$p\" || mv \"$p\" {0};",
      build, no_start);
}

std::string broken_build(const std::string& said) {
  std::istringstream lines(said);
  std::string why;
  bool found = false;
  for (std::string line; std::getline(lines, line);) {
    if (found && !line.empty()) why = line;
    found = found || line == no_start;
  }
  return found && why.empty() ? "greta-tune does not start" : why;
}

std::string devices_script(const std::string& build) {
  return fmt::format("LD_LIBRARY_PATH={0}/lib {0}/bin/greta-tune devices --json;", build);
}

std::string missing_gpu(const std::string& said) {
  std::string why;
  try {
    const auto begin = said.find('[');
    const auto list = nlohmann::json::parse(begin == std::string::npos ? "" : said.substr(begin));
    for (const auto& backend : list) {
      for (const auto& device : backend.at("devices")) {
        if (device.at("kind") != "CPU" && device.at("usable").get<bool>()) return {};
      }
      const std::string reason = backend.value("reason", "");
      if (!reason.empty()) why += (why.empty() ? "" : "; ") + reason;
    }
  } catch (const nlohmann::json::exception&) {
    return "it does not list its devices";
  }
  return why.empty() ? "all devices are CPUs" : why;
}

std::string start_script(const std::string& folder) {
  return fmt::format(
      "umask 077; mkdir -p {0} && cd {0} && rm -rf new && tar -xzf - || exit 1;\n"
      "if [ -d given ]; then rm -rf new;\n"
      "else rm -rf outputs && cp -R new outputs && mv new given || exit 1; fi;\n"
      "rm -f exit pid; : >out; : >err;\n"
      "if command -v setsid >/dev/null 2>&1; then setsid sh run.sh </dev/null >/dev/null 2>&1 &\n"
      "else nohup sh run.sh </dev/null >/dev/null 2>&1 & fi;\n"
      "n=0; while [ $n -lt 100 ]; do [ -f pid ] || [ -f exit ] && exit 0;\n"
      "n=$((n+1)); sleep 0.1; done; echo the command does not start >&2; exit 1;",
      folder);
}

std::string stop_script(const std::string& folder) {
  return fmt::format("cd {} || exit 1;\n{}runs && kill -TERM $p;", folder, runs_function);
}

std::string fetch_script(const std::string& folder) {
  return fmt::format(
      "cd {} && tar -czf - $(ls -d tuned.db tuned.db-wal outputs given 2>/dev/null);", folder);
}

std::string finish_script(const std::string& folder, bool is_done) {
  return is_done ? fmt::format("rm -rf {};", folder)
                 : fmt::format("cd {} && rm -rf exit pid given outputs;", folder);
}

std::string clean_script(const std::string& base) {
  return fmt::format(
      "cd {0} || exit 1;\n{1}"
      "for r in {0}/runs/*; do if cd $r 2>/dev/null && runs; then\n"
      "echo a command runs there: $r >&2; exit 1; fi; done;\n"
      "cd / && rm -rf {0}/builds {0}/runs && rmdir {0};",
      base, runs_function);
}

std::string follow_script(const std::string& folder, const FollowedState& from) {
  return fmt::format(
      "cd {} || exit 1;\n{}"
      "a={}; b={}; k=0; gone=0;\n"
      "send() {{ n=$(($(wc -c <$2)-$3)); [ $n -gt 0 ] || {{ n=0; return; }};\n"
      "[ $n -gt 65536 ] && n=65536; more=1;\n"
      "echo $1 $n; tail -c +$(($3+1)) $2 | head -c $n; }};\n"
      "while :; do d=0; more=0; [ -f exit ] && d=1;\n"
      "send O out $a; a=$((a+n)); send E err $b; b=$((b+n));\n"
      "[ $more = 1 ] && continue;\n"
      "[ $d = 1 ] && {{ echo X $(cat exit); exit 0; }};\n"
      "if runs; then gone=0; else gone=$((gone+1)); fi;\n"
      "[ $gone -gt 10 ] && {{ echo X lost; exit 0; }};\n"
      "k=$((k+1)); [ $((k%20)) = 0 ] && echo K; sleep 0.2 || sleep 1; done;",
      folder, runs_function, from.out_bytes, from.err_bytes);
}

std::optional<Frame> next_frame(std::string& text) {
  for (;;) {
    const auto end = text.find('\n');
    if (end == std::string::npos) return std::nullopt;
    const std::string head = text.substr(0, end);
    const char kind = head.empty() ? '\0' : head.front();
    if (head == "K" || head.starts_with("X ")) {
      text.erase(0, end + 1);
      return Frame{kind, head == "K" ? "" : head.substr(2)};
    }
    const auto bytes = head.size() > 2 && head[1] == ' ' ? number(head.substr(2)) : std::nullopt;
    if ((kind == 'O' || kind == 'E') && bytes) {
      if (text.size() - end - 1 < *bytes) return std::nullopt;
      Frame frame{kind, text.substr(end + 1, *bytes)};
      text.erase(0, end + 1 + *bytes);
      return frame;
    }
    text.erase(0, end + 1);  // a login shell says something
  }
}

}  // namespace greta::tuner
