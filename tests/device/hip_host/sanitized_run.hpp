#pragma once

#include <fmt/format.h>

#include <string>

#include "runtime/device/system/process.hpp"
#include "runtime/device/system/sanitizing.hpp"
#include "tests/device/hip_host/host_device.hpp"
#include "tests/layers.hpp"

namespace greta::test {

/// Runs the kernel "test" in a process with the sanitizers' runtime.
inline ProcessOutcome run_sanitized(const std::string& text, Imitated device = sm_80,
                                    unsigned threads = 64, unsigned dynamic_bytes = 0,
                                    Sanitize sanitize = Sanitize::address) {
  const TemporaryFolder folder;  // for files that the process leaves when it is aborted
  std::vector<std::string> command{"env", "TMPDIR=" + folder.path().string()};
  const auto variables = sanitizer_environment({}).value();
  command.insert(command.end(), variables.begin(), variables.end());
  command.insert(command.end(), {HIP_HOST_RUNNER, std::to_string(device), std::to_string(threads),
                                 std::to_string(dynamic_bytes),
                                 sanitize == Sanitize::races ? "races" : "address"});
  return run_process(command, text, std::chrono::seconds(120)).value();
}

/// Returns a kernel whose body starts at line 2. `edge` is 0 if it is correct and 1 if it is not;
/// `of_first` is that of the first thread, and 0 in others: waves of a block run in any order.
inline std::string kernel_with(const std::string& body, int edge) {
  return fmt::format(
      "extern \"C\" __global__ void test(int* out, int n) {{ const int edge = {}; "
      "[[maybe_unused]] const int of_first = threadIdx.x == 0 ? edge : 0;\n{}\n}}",
      edge, body);
}

}  // namespace greta::test
