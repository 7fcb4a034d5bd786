#pragma once

#include <map>
#include <string>
#include <vector>

#include "db/tuned_db.hpp"

/// Rows of logs of GEMMs (read_gemm_log()).
namespace greta::tuner::gemm_log {

/// The fields of a row by their names.
using Fields = std::map<std::string, std::string>;

/// Returns the parts of a line between commas, without spaces around them.
std::vector<std::string> columns(const std::string& line);
/// Returns the fields of a row of a table. Fails if it has another number of columns.
Result<Fields> table_row(const std::vector<std::string>& names, const std::string& line);
/// Returns the options of a command line of hipblaslt-bench; those without a value are "1".
Result<Fields> command_line(const std::string& line);
/// Returns the fields of a YAML problem in one line, "- { function: matmul, M: 4096, … }", with the
/// names of options of hipblaslt-bench.
Result<Fields> yaml_problem(const std::string& line);

/// Translate a row. Fail with the reason why GRETA has no such problem.
Result<Peer> aiter_gemm(const Fields& fields);
Result<Peer> hipblaslt_gemm(const Fields& fields);

}  // namespace greta::tuner::gemm_log
