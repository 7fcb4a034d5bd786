#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "runtime/device/result.hpp"
#include "runtime/device/version.hpp"
#include "tuner/cli/commands.hpp"

namespace greta {
namespace {

constexpr auto examples = R"(Examples:
  greta-tune devices
  greta-tune gemm --m 4096 --n 4096 --k 4096
  greta-tune gemm --m 1 --n 4096 --k 4096 --dtype f16 --device vulkan:0 --budget 2m
  greta-tune gemm --m 512 --n 512 --k 512 --json > winner.json
  greta-tune preset smoke
  greta-tune show

Exit codes: 0 done, 1 failed, 2 bad usage, 3 no device.)";

int complain(int code, const std::string& message) {
  static_cast<void>(std::fputs(("greta-tune: " + message + "\n").c_str(), stderr));
  return code;
}

std::vector<const CLI::App*> commands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

std::string names_of_commands(const CLI::App& app) {
  std::string names;
  for (const auto* command : commands(app)) {
    if (!command->get_group().empty()) names += (names.empty() ? "" : ", ") + command->get_name();
  }
  return names;
}

// Mistakes that the option parser would report in words of its own making.
void check_words(const CLI::App& app, int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word.starts_with("--") && word.ends_with("=")) {
      throw CommandError(exit_usage, word + ": the value is empty");
    }
  }
  if (argc < 2) throw CommandError(exit_usage, "a command is needed: " + names_of_commands(app));
  const std::string wanted = argv[1];
  const auto all = commands(app);
  const bool known = std::any_of(
      all.begin(), all.end(), [&](const auto* command) { return command->get_name() == wanted; });
  if (!wanted.starts_with("-") && !known) {
    throw CommandError(exit_usage, fmt::format("{}: no such command; there are {}", wanted,
                                               names_of_commands(app)));
  }
}

// Files opened later must not land on the descriptors of standard streams that the caller closed.
// Output to a closed stream fails, as it should; nobody misses messages.
void open_standard_streams() {
  constexpr std::array<const char*, 3> substitutes{"/dev/null", "/dev/full", "/dev/null"};
  for (int descriptor = 0; descriptor < 3; ++descriptor) {
    if (fcntl(descriptor, F_GETFD) < 0) {
      static_cast<void>(open(substitutes[static_cast<std::size_t>(descriptor)], O_RDWR));
    }
  }
}

int run(int argc, char** argv) {
  CLI::App app(
      "GRETA finds the fastest correct GPU kernel for an operation, a shape and a device, "
      "and remembers it.",
      "greta-tune");
  app.footer(examples);
  app.set_version_flag("--version", fmt::format("greta-tune {}", version()));
  app.require_subcommand(1);
  Action action;
  add_devices_command(app, action);
  add_operations_command(app, action);
  add_tune_commands(app, action);
  add_preset_command(app, action);
  add_show_command(app, action);
  add_verify_command(app, action);
  add_compile_command(app, action);
  add_run_case_command(app, action);
  add_worker_command(app, action);
  try {
    check_words(app, argc, argv);
    app.parse(argc, argv);
    const int code = action();
    if (std::fflush(stdout) != 0) throw CommandError(exit_failed, "can't write the output");
    return code;
  } catch (const CLI::Success& success) {  // --help, --version
    app.exit(success);
    return std::cout.flush() ? exit_done : complain(exit_failed, "can't write the output");
  } catch (const CLI::ParseError& error) {
    return complain(exit_usage, error.what());
  } catch (const CommandError& error) {
    return complain(error.code(), error.what());
  } catch (const Error& error) {
    return complain(exit_failed, error.what());
  } catch (const std::bad_alloc&) {
    return complain(exit_failed, "out of memory");
  } catch (const std::exception& error) {
    return complain(exit_failed, error.what());
  }
}

}  // namespace
}  // namespace greta

int main(int argc, char** argv) {
  greta::open_standard_streams();
  return greta::run(argc, argv);
}
