#include "runtime/device/hip/disassembler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "runtime/device/hip/compiler_program.hpp"
#include "runtime/device/system/process.hpp"
#include "runtime/device/text/strings.hpp"

namespace greta::device::hip {
namespace {

/// Returns every llvm-objdump of this machine, newest first.
const std::vector<std::string>& found_programs() {
  static const std::vector<std::string> found = [] {
    std::vector<std::string> names;
    for (int version = newest_clang; version >= oldest_clang; --version) {
      names.push_back(fmt::format("llvm-objdump-{}", version));
    }
    names.insert(names.end(), {"llvm-objdump", "/opt/rocm/llvm/bin/llvm-objdump"});
    std::erase_if(names, [](const std::string& name) {
      return !run_process({name, "--version"}, {}, std::chrono::seconds(60));
    });
    return names;
  }();
  return found;
}

/// Returns the programs to try, in this order.
std::vector<std::string> disassemblers(const OpenOptions& options) {
  auto names = found_programs();
  if (options.compiler.empty()) return names;
  const auto own = run_process({options.compiler.string(), "-print-prog-name=llvm-objdump"}, {},
                               options.compile_deadline);
  if (own && own->ok()) names.insert(names.begin(), first_line(own->output));
  return names;
}

/// Removes the padding instructions after kernels, which are not part of their code.
std::string without_padding(const std::string& listing) {
  std::string kept;
  for (std::size_t at = 0; at < listing.size();) {
    const std::size_t end = std::min(listing.find('\n', at), listing.size() - 1) + 1;
    const std::string_view line = std::string_view(listing).substr(at, end - at);
    if (line.find("\ts_code_end") == std::string_view::npos) kept += line;
    at = end;
  }
  return kept;
}

}  // namespace

Result<std::string> disassemble(std::span<const std::byte> code_object,
                                const OpenOptions& options) {
  const std::string input(reinterpret_cast<const char*>(code_object.data()), code_object.size());
  Failure failure{Status::unavailable,
                  "no llvm-objdump on PATH lists this code object; it comes with LLVM",
                  {}};
  for (const auto& name : disassemblers(options)) {
    auto outcome = run_process({name, "--disassemble", "-"}, input, options.compile_deadline);
    if (!outcome) continue;
    if (outcome->ok() && !outcome->output.empty()) return without_padding(outcome->output);
    failure.log += fmt::format("{} {}\n{}", name, outcome->how_it_ended(options.compile_deadline),
                               outcome->errors);
  }
  return failure;
}

}  // namespace greta::device::hip
