#include "runtime/device/system/sanitizing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "runtime/device/hip/host/host_compiler.hpp"
#include "runtime/device/hip/host/sanitizer.hpp"
#include "runtime/device/system/process.hpp"
#include "runtime/device/text/strings.hpp"

namespace greta::device {
namespace {

constexpr std::chrono::seconds deadline{60};

/// Returns the path of a compiler's library, or an empty string if there is none.
std::string library_of(const std::string& compiler, const std::string& name) {
  const auto outcome = run_process({compiler, "-print-file-name=" + name}, {}, deadline);
  if (!outcome || !outcome->ok()) return {};
  const std::string path = first_line(outcome->output);
  return path.find('/') == std::string::npos ? std::string() : path;
}

/// Returns the paths of the sanitizers' libraries. g++ has one for each sanitizer, clang one for
/// both.
std::string runtime_of(const std::string& compiler) {
  const std::string address = library_of(compiler, "libasan.so");
  if (!address.empty()) {
    const std::string undefined = library_of(compiler, "libubsan.so");
    return undefined.empty() ? address : address + " " + undefined;
  }
#if defined(__aarch64__)
  return library_of(compiler, "libclang_rt.asan-aarch64.so");
#else
  return library_of(compiler, "libclang_rt.asan-x86_64.so");
#endif
}

/// Returns the innermost frame of a report's first stack that belongs neither to the sanitizer nor
/// to hip-host: "gemm/tiled.hip:12 in tiled".
std::string kernel_place(std::string_view report) {
  constexpr std::string_view number = "    #", in = " in ";
  while (!report.empty()) {
    const std::string_view line = report.substr(0, report.find('\n'));
    report.remove_prefix(std::min(line.size() + 1, report.size()));
    const auto function = line.find(in);
    const auto place = line.rfind(' ');
    if (!line.starts_with(number) || function == std::string_view::npos) continue;
    const std::string_view where = line.substr(place + 1);
    const bool has_line = where.find(':') != std::string_view::npos;
    if (!has_line || where.starts_with("hip-host/")) continue;
    if (where.find("libsanitizer") != std::string_view::npos) continue;
    const auto start = function + in.size();
    return fmt::format("{} in {}", where, line.substr(start, place - start));
  }
  return {};
}

}  // namespace

Result<std::vector<std::string>> sanitizer_environment(const std::filesystem::path& compiler) {
  // Leaks are those of drivers, and an allocation that fails is reported as a Failure.
  std::vector<std::string> variables{
      "ASAN_OPTIONS=abort_on_error=1:detect_leaks=0:allocator_may_return_null=1",
      "UBSAN_OPTIONS=abort_on_error=1:print_stacktrace=1"};
  // Programs that are built with sanitizers contain their runtime.
  if (hip::host::address_sanitizer().loaded()) return variables;
  const auto program = hip::host::find_compiler(compiler, deadline);
  if (!program) return program.failure();
  const std::string runtime = runtime_of(program->program);
  if (runtime.empty()) {
    return Failure{Status::unavailable,
                   fmt::format("{} has no runtime of AddressSanitizer", program->program),
                   {}};
  }
  variables.push_back("LD_PRELOAD=" + runtime);
  return variables;
}

std::string sanitizer_summary(std::string_view output) {
  constexpr std::string_view address = "SUMMARY: ", undefined = "runtime error: ";
  auto found = output.find(address);
  if (found == std::string_view::npos) {
    // UndefinedBehaviorSanitizer reports the location before the error.
    found = output.find(undefined);
    if (found == std::string_view::npos) return {};
    const auto start = output.rfind('\n', found) + 1;
    return std::string(output.substr(start, output.find('\n', found) - start));
  }
  const auto start = found + address.size();
  const std::string summary(output.substr(start, output.find('\n', start) - start));
  // The summary names the failing function, which may be one that the kernel called.
  const std::string place = kernel_place(output);
  const auto kind_end = summary.find(' ', summary.find(' ') + 1);
  return place.empty() ? summary : summary.substr(0, kind_end) + " at " + place;
}

}  // namespace greta::device
