#include "tuner/cli/commands.hpp"
#include "tuner/evaluate/worker.hpp"

namespace greta {

void add_worker_command(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("worker", "Serve a tuning session (internal)");
  command->group("");  // hidden
  command->callback([&action] { action = serve_as_worker; });
}

}  // namespace greta
