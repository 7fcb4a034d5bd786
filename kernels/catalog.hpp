#pragma once

#include <string_view>
#include <vector>

#include "kernels/model/kernel_template.hpp"

namespace greta::kernels {

/// Every operation GRETA knows: the explicit list, one line each.
const std::vector<const KernelTemplate*>& catalog();

/// The template of this name, or nullptr.
const KernelTemplate* find_template(std::string_view name);

/// What an attribute may be, in words: "nn, nt or tn".
std::string values_text(const Attribute& attribute);
/// What an attribute of a problem with these dimensions is when nobody says.
std::string default_value(const Attribute& attribute, const Problem& problem);
/// Its values to test, the default among them.
std::vector<std::string> values_to_test(const Attribute& attribute, const Problem& problem);
/// The types of inputs that an operation takes: "f32, f16 or bf16", the default first.
std::string input_types_text(const KernelTemplate& kernel);
/// Those of its output, the default first: "f32 for f32; f16 or f32 for f16".
std::string output_types_text(const KernelTemplate& kernel);

/// The first of the sizes that people have, of inputs and output of these types.
Problem typical_problem(const KernelTemplate& kernel, const DTypes& types);

/// The same problem with its attributes that are strides left out: of packed rows.
Problem of_packed_rows(const KernelTemplate& kernel, Problem problem);
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

}  // namespace greta::kernels
