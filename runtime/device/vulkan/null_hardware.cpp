#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "runtime/device/backend.hpp"
#include "runtime/device/vulkan/vulkan_backend.hpp"

namespace greta::device {

namespace {

/// Whether the Vulkan drivers start. Mesa's driver ends the process when it does not know the GPU
/// that it is told to use. So a fork of the process tries it, without output and for a limited
/// time.
bool drivers_start() {
  constexpr unsigned patience_s = 20;
  const pid_t child = ::fork();
  if (child < 0) return false;
  if (child == 0) {
    ::dup2(::open("/dev/null", O_WRONLY), STDERR_FILENO);
    const rlimit no_core_dump{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core_dump);
    ::alarm(patience_s);
    static_cast<void>(vulkan::create_backend()->probe());
    ::_exit(0);
  }
  int status = 0;
  pid_t ended = 0;
  do {
    ended = ::waitpid(child, &status, 0);
  } while (ended < 0 && errno == EINTR);
  return ended == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

std::string upper(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return result;
}

Failure unavailable(std::string_view gpu, std::string_view why) {
  return {
      Status::unavailable, fmt::format("{}: Mesa's Vulkan driver for AMD GPUs {}", gpu, why), {}};
}

/// Mesa's names up to release 22, and from 23 on.
constexpr std::array<std::array<std::string_view, 2>, 8> renamed{{
    {"gfx1036", "raphael_mendocino"},
    {"gfx1100", "navi31"},
    {"gfx1101", "navi32"},
    {"gfx1102", "navi33"},
    {"gfx1103_r1", "phoenix"},
    {"gfx1103_r2", "phoenix2"},
    {"arcturus", "mi100"},
    {"aldebaran", "mi200"},
}};

}  // namespace

std::vector<std::string> null_hardware_names(std::string_view gpu) {
  std::vector<std::string> names{std::string(gpu)};
  for (const auto& [before, now] : renamed) {
    if (gpu == before) names.emplace_back(now);
    if (gpu == now) names.emplace_back(before);
  }
  return names;
}

Result<std::unique_ptr<Device>> open_null_hardware(std::string_view gpu, OpenOptions options) {
  if (!drivers_start()) return unavailable(gpu, "does not know this GPU");
  options.compile_only = true;
  // This uses a new backend because drivers read the environment when they start.
  const auto backend = vulkan::create_backend();
  const std::string wanted = fmt::format("(RADV {})", upper(gpu));
  std::string found;
  for (const auto& device : backend->probe().devices) {
    if (!device.compile_only) continue;
    if (device.info.name.find(wanted) != std::string::npos) {
      return backend->open(device.info.index, options);
    }
    found = device.info.name;
  }
  if (found.empty()) {
    return unavailable(gpu,
                       "is not installed, is of Mesa 26 or later, or RADV_FORCE_FAMILY is unset");
  }
  return unavailable(gpu, "is set to another: " + found);
}

}  // namespace greta::device
