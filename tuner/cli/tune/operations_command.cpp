#include <fmt/format.h>

#include <memory>

#include "tuner/cli/tune/commands.hpp"
#include "tuner/report/operations_text.hpp"
#include "tuner/report/print.hpp"

namespace greta::tuner::cli {

void add_operations_command(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("operations", "List the operations and their variants");
  auto markdown = std::make_shared<bool>(false);
  command->add_flag("--markdown", *markdown, "Print all details, as in docs/kernels.md");
  command->callback([&action, markdown] {
    action = [markdown] {
      print_text(*markdown ? operations_markdown(Catalog::built_in())
                           : operations_text(Catalog::built_in()));
      return exit_done;
    };
  });
}

}  // namespace greta::tuner::cli
