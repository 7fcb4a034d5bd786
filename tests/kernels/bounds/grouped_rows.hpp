#pragma once

#include <cstddef>
#include <vector>

#include "tests/kernels/bounds/emulation.hpp"

/// The rows of grouped products in emulations.
namespace greta::test::bounds {

struct GroupRows {
  std::size_t group, first, end;  ///< rows of A and C
};

/// Returns the groups' rows, which are in range and do not decrease.
inline std::vector<GroupRows> rows_of_groups(const Given& given) {
  const bool masked = given.problem.attribute("form", "contiguous") == "masked";
  std::vector<GroupRows> list;
  std::size_t start = 0;
  for (std::size_t group = 0; group < given.dim("groups"); ++group) {
    if (masked) start = group * given.dim("m");
    const std::size_t end = masked ? start + static_cast<std::size_t>(given["rows"][group])
                                   : static_cast<std::size_t>(given["ends"][group]);
    list.push_back({group, start, end});
    start = end;
  }
  return list;
}

}  // namespace greta::test::bounds
