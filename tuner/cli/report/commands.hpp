#pragma once

#include "tuner/cli/program/tool.hpp"

namespace greta::tuner::cli {

/// Sets the options and the action that write a report.
void add_report_options(CLI::App& app, Action& action);

/// Adds the command that serves a report to a browser of this machine.
void add_serve_command(CLI::App& app, Action& action);

}  // namespace greta::tuner::cli
