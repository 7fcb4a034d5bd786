#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "db/measurement.hpp"
#include "kernels/model/operation.hpp"

namespace greta::tuner {

/// Returns "812 ns", "81.2 µs", "12.3 ms", "4.56 s".
std::string format_time(double us);
/// Returns the median with half the width of its 95 % interval, relative to the median: "12.3 ms ±
/// 2.1 %". Times with more than 10 % are marked: "12.3 ms ± 41 % (noisy)".
/// An interval without width is of one sample, which says nothing about the spread: "12.3 ms".
std::string format_time(const Measurement& measurement);
std::string format_time(double median_us, double low_us, double high_us);
/// Returns "174 GFLOPS", "35.2 TFLOPS" for FLOPs performed in a time.
std::string format_rate(double flops, double us);
/// Returns the rate of an operation; as "512 GB/s" if its arithmetic intensity makes it
/// memory-bound on every device.
std::string format_rate(const Work& work, double us);
/// Returns "12 KiB", "4.0 GiB".
std::string format_bytes(double bytes);
/// Returns "71 %", "0.4 %".
std::string format_share(double share);
/// Returns "1 trial", "7 trials".
std::string format_count(std::int64_t count, std::string_view noun);

/// Returns the width of UTF-8 text in terminal columns, one per character.
std::size_t text_columns(std::string_view text);

/// Returns the width of reports: that of the terminal on standard output, or COLUMNS, from 40 to
/// 100 columns; 100 if both are unknown.
std::size_t report_columns();

/// Returns a line of a report: a label, then a text, which continues on further lines if it is
/// longer than `columns` and contains spaces. The label is indented by `indent` columns. Control
/// characters of both, including newlines, are escaped.
std::string format_row(std::string_view label, std::string_view text, std::size_t indent = 2,
                       std::size_t columns = report_columns());

}  // namespace greta::tuner
