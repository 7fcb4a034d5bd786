#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kernels/catalog.hpp"

namespace greta::runtime::c {

/// Returns the parts of a text between any of these characters, without empty ones.
std::vector<std::string> words_of(std::string_view text, std::string_view separators);

/// Reads the operation and the fields of a problem, as "gemm m=64 n=48 k=40 dtype=f16"; fields that
/// have a default may be missing. Throws Error (`invalid_argument`).
Problem read_problem(const Catalog& catalog, std::string_view text);

}  // namespace greta::runtime::c
