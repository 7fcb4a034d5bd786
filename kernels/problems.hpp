#pragma once

#include <string>
#include <utility>
#include <vector>

#include "kernels/model/operation.hpp"

/// Problems of an operation: reading, checking, and their relatives.
namespace greta::kernels {

/// What an attribute may be, in words: "nn, nt or tn".
std::string values_text(const Attribute& attribute);
/// What an attribute of a problem with these dimensions is when nobody says.
std::string default_value(const Attribute& attribute, const Problem& problem);
/// Its values to test, the default among them.
std::vector<std::string> values_to_test(const Attribute& attribute, const Problem& problem);
/// The types of inputs that an operation takes: "f32, f16 or bf16", the default first.
std::string input_types_text(const Operation& operation);
/// Those of its output, the default first: "f32 for f32; f16 or f32 for f16".
std::string output_types_text(const Operation& operation);

/// One of the operation's typical sizes, of inputs and output of these types.
Problem typical_problem(const Operation& operation, const DTypes& types, std::size_t number = 0);
/// The same problem with its attributes that are strides left out: of packed rows.
Problem of_packed_rows(const Operation& operation, Problem problem);
/// The same problem in today's spelling (Operation::renamed).
Problem renamed(const Operation& operation, Problem problem);

/// The problem that stands for all whose extents that vary at run time are about as large: a
/// look-up answers them alike (Dimension::at_run_time). A configuration that is valid for the
/// bucket is valid for every problem of it, with the same compiled kernels: their extents are
/// arguments. What is beyond 2^30 stays, and a problem that its operation would refuse when rounded
/// stands for itself.
Problem bucket(const Operation& operation, const Problem& problem);

/// Whether a problem is one of this operation: its dimensions, attributes and types, and the
/// operation's own rules. A failure names the field where it is one (Failure::field).
Result<void> check_problem(const Operation& operation, const Problem& problem);

/// A problem as text: dimensions (all needed), attributes and types.
struct ProblemRequest {
  std::vector<std::pair<std::string, std::string>> values;  ///< name → text, e.g. {"m", "4096"}
  std::string dtype;                                        ///< empty: the default
  std::string out_dtype;                                    ///< empty: the default for dtype
};
/// Reads a request, in today's spelling or an earlier one, and checks it. A failure has the field.
Result<Problem> make_problem(const Operation& operation, ProblemRequest request);

}  // namespace greta::kernels
