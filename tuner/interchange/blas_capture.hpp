#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/catalog.hpp"
#include "kernels/model/problem.hpp"
#include "runtime/device/result.hpp"

namespace greta::tuner {

/// The products that a program asked BLAS libraries for, as libgreta-capture.so recorded them.
struct BlasCapture {
  struct Row {
    std::size_t line = 0;     ///< in the file, from 1
    std::string call;         ///< text_of(BlasCall)
    std::uint64_t count = 0;  ///< calls
    double us = 0;            ///< the least time of a call on the device; 0: none was timed
    std::optional<Problem> problem;
    std::string reason;  ///< why there is no problem
  };
  std::string program;
  std::vector<std::string> libraries;  ///< the files that were called
  std::uint64_t uncounted = 0;         ///< calls that found the recorder's table full
  std::vector<Row> rows;
};

/// Returns whether a file's text begins as such a capture does. Other captures have problems.
bool is_blas_capture(const std::string& text);

/// Reads a capture and checks every line. A failure is one line with `name`, the line's number and
/// the error. A call of which GRETA has no problem is a row with the reason.
Result<BlasCapture> read_blas_capture(const std::string& name, const std::string& text,
                                      const Operation& gemm);

/// Returns an estimate of a problem's time in µs, by which problems without a measured time share a
/// budget: that of a GPU which moves 2·10¹² bytes and computes 2·10¹⁴ operations a second, and
/// needs 3 µs for each launch.
double estimated_us(const Operation& operation, const Problem& problem);

}  // namespace greta::tuner
