#pragma once

#include "tuner/cli/program/tool.hpp"

namespace greta::tuner::cli {

// Each function adds one subcommand (add_pin_commands two) and sets `action` when it is chosen.
void add_compare_command(CLI::App& app, Action& action);
void add_export_command(CLI::App& app, Action& action);
void add_import_command(CLI::App& app, Action& action);
void add_info_command(CLI::App& app, Action& action);
void add_list_command(CLI::App& app, Action& action);
void add_merge_command(CLI::App& app, Action& action);
void add_pin_commands(CLI::App& app, Action& action);
void add_prune_command(CLI::App& app, Action& action);
void add_regret_command(CLI::App& app, Action& action);
void add_requalify_command(CLI::App& app, Action& action);
void add_upgrade_command(CLI::App& app, Action& action);
void add_verify_command(CLI::App& app, Action& action);

}  // namespace greta::tuner::cli
