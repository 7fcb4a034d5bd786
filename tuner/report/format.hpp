#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "kernels/model/operation.hpp"

namespace greta::tuner {

/// "812 ns", "81.2 µs", "12.3 ms", "4.56 s"
std::string format_time(double us);
/// "174 GFLOPS", "35.2 TFLOPS", for operations done in a time
std::string format_rate(double flops, double us);
/// The same of an operation; "512 GB/s" where it has so few for each byte that memory limits it
/// on every device.
std::string format_rate(const Work& work, double us);
/// "12 KiB", "4.0 GiB"
std::string format_bytes(double bytes);
/// "71 %", "0.4 %"
std::string format_share(double share);
/// "1 trial", "7 trials"
std::string format_count(std::int64_t count, std::string_view noun);

/// Columns that UTF-8 text takes in a terminal, where every character takes one.
std::size_t text_columns(std::string_view text);

/// A line of a report: a label and a text behind it, which is continued on further lines where it
/// is longer than 100 columns and has spaces. `indent` columns stand before the label. Control
/// characters of either, newlines included, are shown as escapes.
std::string format_row(std::string_view label, std::string_view text, std::size_t indent = 2);

}  // namespace greta::tuner
