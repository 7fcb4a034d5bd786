#pragma once

#include "tuner/cli/program/tool.hpp"

namespace greta::tuner::cli {

/// Sets the options and the action that write a report.
void add_report_options(CLI::App& app, Action& action);

}  // namespace greta::tuner::cli
