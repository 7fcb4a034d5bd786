#pragma once

#include <string>

namespace greta {

/// "812 ns", "81.2 µs", "12.3 ms", "4.56 s"
std::string format_time(double us);
/// "174 GFLOPS", "35.2 TFLOPS", for work done in a time
std::string format_rate(double flops, double us);
/// "12 KiB", "4.0 GiB"
std::string format_bytes(double bytes);
/// "71 %", "0.4 %"
std::string format_share(double share);

}  // namespace greta
