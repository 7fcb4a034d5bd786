#include <cxxabi.h>
#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/device/hip/host/race_detector.hpp"
#include "runtime/device/hip/host/sanitizer.hpp"

namespace greta::device::hip::host {
namespace {

using greta_host::Access;

std::string_view what(const SharedAccess& access) {
  if (access.staged) return "ASYNCHRONOUS COPY";
  switch (access.access) {
    case Access::read:
      return "READ";
    case Access::write:
      return "WRITE";
    case Access::atomic_read:
      return "ATOMIC READ";
    case Access::atomic_write:
      return "ATOMIC OPERATION";
  }
  return "ACCESS";
}

std::string index_of(unsigned thread, const greta_host::Index& block) {
  return fmt::format("({},{},{})", thread % block.x, thread / block.x % block.y,
                     thread / (block.x * block.y));
}

/// Returns the kernel's frames, one a line as in AddressSanitizer's reports.
std::string stack_text(const SharedAccess& access) {
  std::string text;
  unsigned number = 0;
  for (const void* const code : access.stack) {
    std::array<char, 4096> frames{};  // of inlined functions, too, one string after the other
    address_sanitizer().symbolize(const_cast<void*>(code), "%p %F %L", frames.data(),
                                  frames.size() - 1);
    for (const char* frame = frames.data(); *frame != 0;) {
      const std::string_view line = frame;
      frame += line.size() + 1;
      if (line.find(" hip-host/entry") != std::string_view::npos) return text;
      text += fmt::format("    #{} {}\n", number++, line);
    }
  }
  return text;
}

/// Returns the name of a variable within a function: "tile" of "_ZZ4testPiE4tile".
std::string plain_name(const std::string& symbol) {
  if (symbol == "greta_host_dynamic") return "dynamic shared memory";
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> demangled(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), &std::free);
  const std::string name = demangled ? demangled.get() : symbol;
  const auto scope = name.rfind("::");
  return fmt::format("'{}'", scope == std::string::npos ? name : name.substr(scope + 2));
}

std::string place_text(std::uint64_t offset, const ElfSummary& summary) {
  for (const ElfVariable& variable : summary.shared) {
    if (offset < variable.at || offset >= variable.at + variable.bytes) continue;
    return fmt::format("byte {} of {} ({} bytes)", offset - variable.at, plain_name(variable.name),
                       variable.bytes);
  }
  return fmt::format("byte {} of shared memory", offset);
}

std::string missing_order(const Race& race, unsigned wave_size) {
  const unsigned one = race.earlier.thread / wave_size, other = race.later.thread / wave_size;
  if (race.earlier.staged) return "the copy has not been waited for";
  if (one == other) {
    return fmt::format(
        "no __syncthreads(), __syncwarp() or other operation of wave {} (of {} threads) lies "
        "between them",
        one, wave_size);
  }
  return fmt::format("no __syncthreads() lies between them, and the threads are of waves {} and {}",
                     one, other);
}

}  // namespace

std::string race_report(const Race& race, greta_host::Index block, unsigned wave_size,
                        const greta_host::Entry& entry, const ElfSummary& summary) {
  const auto offset = static_cast<std::uint64_t>(race.at - entry.shared);
  const std::string later = stack_text(race.later);
  const std::string_view first = std::string_view(later).substr(0, later.find('\n'));
  const auto in = first.find(" in ");
  return fmt::format(
      "ERROR: hip-host: data-race on {}\n"
      "{} by thread {}\n{}"
      "previous {} by thread {}\n{}"
      "{}\n"
      "SUMMARY: hip-host: data-race {}\n",
      place_text(offset, summary), what(race.later), index_of(race.later.thread, block), later,
      what(race.earlier), index_of(race.earlier.thread, block), stack_text(race.earlier),
      missing_order(race, wave_size), in == std::string_view::npos ? "" : first.substr(in + 4));
}

}  // namespace greta::device::hip::host
