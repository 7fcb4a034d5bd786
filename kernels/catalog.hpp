#pragma once

#include <string_view>
#include <vector>

#include "kernels/model/kernel_template.hpp"

namespace greta {

/// Every operation GRETA knows: the explicit list, one line each.
const std::vector<const KernelTemplate*>& catalog();

/// The template of this name, or nullptr.
const KernelTemplate* find_template(std::string_view name);

/// Whether a problem is one of this operation: its dimensions, attributes and types, and the
/// operation's own rules. A failure is one line, as make_problem()'s.
Result<void> check_problem(const KernelTemplate& kernel, const Problem& problem);

/// Reads options into a problem and checks it: the operation's dimensions (all needed), attributes
/// and types, as text. A failure is one line that names the option, the value and what is allowed.
struct ProblemRequest {
  std::vector<std::pair<std::string, std::string>> values;  ///< name → text, e.g. {"m", "4096"}
  std::string dtype;                                        ///< empty: the default
  std::string out_dtype;                                    ///< empty: the default for dtype
};
Result<Problem> make_problem(const KernelTemplate& kernel, const ProblemRequest& request);

}  // namespace greta
