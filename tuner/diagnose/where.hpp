#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tuner/diagnose/evidence.hpp"

namespace greta::tuner {

/// Describes a set of indices below `extent` in a few words: "all", "12", "96 to 99", "3 modulo 4",
/// "0, 7, 19 and 5 more". Names the parts of `part` indices that it consists of, if it is that
/// regular; 0: there are none.
std::string words_of_indices(const std::vector<std::int64_t>& sorted, std::int64_t extent,
                             std::int64_t part);

/// The rows and columns of an output in which marked elements lie.
struct Place {
  std::vector<std::int64_t> rows, cols;  ///< sorted
  std::size_t count = 0;                 ///< of marked elements
};
Place place_of(const ExaminedOutput& output, const std::vector<char>& marked);

/// The length of the parts into which a kernel divides rows or columns of an output: that of the
/// division with this extent; 0 if there is none.
std::int64_t part_of(const FailedCase& failed, std::int64_t extent);

/// Describes where marked elements of an output lie: "C: 640 of 10000 elements, in rows 96 to 99
/// (the last part of 32), all columns".
std::string words_of_place(const Evidence& evidence, const ExaminedOutput& output,
                           const std::vector<char>& marked);

/// Returns all facts about where the wrong elements lie, each in a line.
std::vector<std::string> places(const Evidence& evidence);

}  // namespace greta::tuner
