#include "tuner/bundle/machine.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>

#include "runtime/device/hardware/known_gpus.hpp"
#include "runtime/device/hip/compiler_program.hpp"
#include "runtime/device/system/input_file.hpp"
#include "runtime/device/system/process.hpp"
#include "runtime/device/text/strings.hpp"
#include "tuner/report/format.hpp"

namespace greta::tuner {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_file_bytes = 16384;  // limit for files that are copied
constexpr auto program_deadline = std::chrono::seconds(20);

/// Returns the contents of a small file; empty if it can't be read.
std::string read_text(const fs::path& file) {
  auto text = read_file(file, most_file_bytes);
  return text ? *std::move(text) : std::string();
}

/// Returns the sorted entries of a folder; nothing if it does not exist.
std::vector<fs::path> entries(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> found;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    found.push_back(at->path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

/// Lists display controllers (class 03) and processing accelerators (12).
std::string pci_text() {
  std::string text;
  for (const auto& device : entries("/sys/bus/pci/devices")) {
    const std::string kind = first_line(read_text(device / "class"));
    if (!kind.starts_with("0x03") && !kind.starts_with("0x12")) continue;
    std::error_code no_driver;
    const auto driver = fs::read_symlink(device / "driver", no_driver).filename().string();
    text += fmt::format(
        "{} vendor {} device {} revision {} driver {}\n", device.filename().string(),
        first_line(read_text(device / "vendor")), first_line(read_text(device / "device")),
        first_line(read_text(device / "revision")), driver.empty() ? "none" : driver);
  }
  return text.empty() ? "none\n" : text;
}

std::string modules_text() {
  std::string text;
  for (const char* module : {"amdgpu", "nvidia", "i915", "xe"}) {
    const fs::path folder = fs::path("/sys/module") / module;
    std::error_code error;
    if (!fs::exists(folder, error)) continue;
    const auto version = first_line(read_text(folder / "version"));
    text += fmt::format("{} {}\n", module, version.empty() ? "of the kernel" : version);
  }
  for (const auto& folder : entries("/opt")) {
    if (!folder.filename().string().starts_with("rocm")) continue;
    text +=
        fmt::format("{} {}\n", folder.string(), first_line(read_text(folder / ".info/version")));
  }
  return text.empty() ? "none\n" : text;
}

/// Reports whether this user may open the drivers' device files, the most frequent reason why a GPU
/// is not found.
std::string device_files_text() {
  std::vector<fs::path> files{"/dev/kfd", "/dev/nvidiactl", "/dev/nvidia-uvm"};
  for (const auto& file : entries("/dev/dri")) files.push_back(file);
  std::string text;
  for (const auto& file : files) {
    std::error_code error;
    if (fs::is_directory(file, error)) continue;
    const char* state = !fs::exists(file, error)                 ? "is not there"
                        : access(file.c_str(), R_OK | W_OK) == 0 ? "can be opened"
                                                                 : "is not this user's to open";
    text += fmt::format("{} {}\n", file.string(), state);
  }
  return text;
}

/// Lists nodes of the kernel's compute driver, without serial numbers of cards.
std::string compute_nodes_text() {
  std::string text;
  for (const auto& node : entries("/sys/class/kfd/kfd/topology/nodes")) {
    text += "node " + node.filename().string() + "\n";
    std::istringstream lines(read_text(node / "properties"));
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with("unique_id")) text += "  " + line + "\n";
    }
  }
  return text.empty() ? "none\n" : text;
}

std::string manifests_text() {
  std::string text;
  for (const char* folder :
       {"/etc/vulkan/icd.d", "/usr/share/vulkan/icd.d", "/usr/local/share/vulkan/icd.d",
        "/etc/vulkan/implicit_layer.d", "/usr/share/vulkan/implicit_layer.d"}) {
    for (const auto& file : entries(folder)) {
      text += fmt::format("{}\n{}\n", file.string(), read_text(file));
    }
  }
  return text.empty() ? "none\n" : text;
}

/// Returns the path of a program and the first line of its version output.
std::string program_text(const std::string& name) {
  const auto found =
      run_process({"sh", "-c", "command -v \"$1\"", "sh", name}, {}, program_deadline);
  if (!found || !found->ok()) return fmt::format("{}: not on PATH\n", name);
  const auto version = run_process({name, "--version"}, {}, program_deadline);
  return fmt::format("{}: {}, {}\n", name, first_line(found->output),
                     version ? first_line(version->output) : version.failure().message);
}

}  // namespace

std::string system_text() {
  utsname name{};
  uname(&name);
  struct sysinfo memory {};
  sysinfo(&memory);
  std::string distribution = "unknown";
  std::istringstream lines(read_text("/etc/os-release"));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("PRETTY_NAME=")) distribution = line.substr(line.find('=') + 1);
  }
  const HostProcessor processor = host_processor();
  return fmt::format(
      "system     {}\nkernel     {} {} {}\nprocessor  {}, {} threads\nmemory     {}\n",
      distribution, name.sysname, name.release, name.machine, processor.model, processor.cores,
      format_bytes(static_cast<double>(memory.totalram) * memory.mem_unit));
}

std::string drivers_text() {
  const std::array<std::pair<std::string_view, std::string>, 5> parts{
      {{"Graphics cards and accelerators on the PCI bus", pci_text()},
       {"Kernel drivers, and installations of ROCm", modules_text()},
       {"Device files", device_files_text()},
       {"Compute nodes", compute_nodes_text()},
       {"Manifests of Vulkan", manifests_text()}}};
  std::string text;
  for (const auto& [title, part] : parts) text += fmt::format("== {}\n{}\n", title, part);
  return text;
}

std::string compilers_text() {
  std::string text = "== For HIP, in the order of preference\n";
  const auto add = [&](const hip::CompilerProgram& program) {
    text += fmt::format("{}: {}\n", program.version, fmt::join(program.command, " "));
  };
  for (const char* library : {"hiprtc", "nvrtc"}) {
    const auto program = hip::library_program(library, {});
    if (program) {
      add(*program);
    } else {
      text += fmt::format("{}: {}\n", library, program.failure().message);
    }
  }
  for (const auto& program : hip::clangs_on_path(program_deadline)) add(program);
  text += "\n== Programs\n";
  std::vector<std::string> names{"g++", "c++", "clang++", "hipcc", "amdclang++", "nvcc"};
  for (int version = hip::oldest_clang; version <= hip::newest_clang; ++version) {
    const auto name = fmt::format("clang-{}", version);
    const auto there = run_process({name, "--version"}, {}, program_deadline);
    if (!there) continue;
    names.push_back(name);
    names.push_back(fmt::format("llvm-objdump-{}", version));
  }
  for (const auto& name : names) text += program_text(name);
  return text;
}

std::vector<std::string> loaded_libraries() {
  std::set<std::string> paths;
  std::istringstream maps(read_system_file("/proc/self/maps"));
  for (std::string line; std::getline(maps, line);) {
    const auto path = line.find('/');
    if (path != line.npos && line.find(".so", path) != line.npos) paths.insert(line.substr(path));
  }
  return {paths.begin(), paths.end()};
}

}  // namespace greta::tuner
