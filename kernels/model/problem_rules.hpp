#pragma once

#include <string>
#include <utility>
#include <vector>

#include "kernels/model/operation.hpp"

/// Parsing, checking and transforming problems of an operation.
namespace greta::kernels {

/// Returns an attribute's allowed values in words, e.g. "nn, nt or tn".
std::string values_text(const Attribute& attribute);
/// Returns an attribute's default value for a problem with these dimensions.
std::string default_value(const Attribute& attribute, const Problem& problem);
/// Returns the values of an attribute to test, including the default.
std::vector<std::string> values_to_test(const Attribute& attribute, const Problem& problem);
/// Returns the supported input types, the default first, e.g. "f32, f16 or bf16".
std::string input_types_text(const Operation& operation);
/// Returns the supported output types, the default first, e.g. "f32 for f32; f16 or f32 for f16".
std::string output_types_text(const Operation& operation);

/// Returns one of the operation's typical sizes with these element types.
Problem typical_problem(const Operation& operation, const DTypes& types, std::size_t number = 0);
/// Returns the problem with another value of an attribute. Attributes are in the operation's order.
Problem with_attribute(const Operation& operation, const Problem& problem, const Attribute& changed,
                       const std::string& value);
/// Returns the problem with packed rows, i.e. without stride attributes.
Problem of_packed_rows(const Operation& operation, Problem problem);
/// Returns the problem without permissions (Attribute::permission), or itself.
Problem without_permissions(const Operation& operation, Problem problem);
/// Returns the problem in the current spelling (Operation::renamed).
Problem renamed(const Operation& operation, Problem problem);

/// Rounds the extents that vary at run time (Dimension::at_run_time). Look-ups return the same
/// answer for all problems with the same result. A configuration that is valid for the rounded
/// problem is valid for all these problems, with the same compiled kernels, since the extents are
/// kernel arguments. Extents above 2^30 are not rounded. Returns `problem` itself if the operation
/// rejects the rounded problem.
Problem bucket(const Operation& operation, const Problem& problem);

/// Checks whether a problem is valid for this operation: its dimensions, attributes and types, and
/// the operation's rules. The failure names the invalid field, if there is one (Failure::field).
Result<void> check_problem(const Operation& operation, const Problem& problem);

/// A problem as text: all required dimensions, attributes and types.
struct ProblemRequest {
  std::vector<std::pair<std::string, std::string>> values;  ///< name → text, e.g. {"m", "4096"}
  std::string dtype;                                        ///< empty: the default
  std::string out_dtype;                                    ///< empty: the default for dtype

  /// Sets a field by its name in keys: a dimension, an attribute, "dtype" or "out".
  void set(std::string field, std::string text);
};
/// Parses a request in the current or an earlier spelling and checks the problem. A failure names
/// the invalid field.
Result<Problem> make_problem(const Operation& operation, ProblemRequest request);

}  // namespace greta::kernels
