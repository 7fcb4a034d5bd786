#include "tuner/project/project_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>

#include "runtime/device/version.hpp"
#include "tuner/report/format.hpp"

namespace greta::tuner {
namespace {

std::string c_string(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
}

bool is_define(const std::string& option) {
  return option.starts_with("-D") && option.size() > 2;
}

/// Returns the #define line of an option "-DNAME=VALUE".
std::string define_line(const std::string& option) {
  const auto equals = option.find('=');
  if (equals == std::string::npos) return fmt::format("#define {}\n", option.substr(2));
  return fmt::format("#define {} {}\n", option.substr(2, equals - 2), option.substr(equals + 1));
}

std::string argument_text(const CaseArgument& argument) {
  if (const auto* place = std::get_if<CaseAddress>(&argument)) {
    if (place->offset == 0) return fmt::format("address({})", place->buffer);
    return fmt::format("address({}, {})", place->buffer, place->offset);
  }
  if (const auto* number = std::get_if<std::uint32_t>(&argument))
    return fmt::format("u32({})", *number);
  if (const auto* number = std::get_if<float>(&argument)) {
    return fmt::format("f32(0x{:08X} /* {} */)", std::bit_cast<std::uint32_t>(*number), *number);
  }
  return fmt::format("u64({})", std::get<std::uint64_t>(argument));
}

/// Returns an argument for readers: "A", "workspace + 256 bytes", "4096".
std::string argument_name(const CaseArgument& argument, const KernelCase& run) {
  if (const auto* place = std::get_if<CaseAddress>(&argument)) {
    const std::string& name = run.buffers[place->buffer].name;
    return place->offset == 0 ? name : fmt::format("{} + {} bytes", name, place->offset);
  }
  if (const auto* number = std::get_if<std::uint32_t>(&argument)) return fmt::format("{}", *number);
  if (const auto* number = std::get_if<float>(&argument)) return fmt::format("{:#.9g}", *number);
  return fmt::format("{} (64 bits)", std::get<std::uint64_t>(argument));
}

std::string buffer_line(const CaseBuffer& buffer, bool checked) {
  return fmt::format(
      "    {{{}, {}, Type::{}, {}, {}, {}}},\n", c_string(buffer.name), buffer.bytes,
      buffer.name == "workspace" ? "i32" : buffer.dtype,
      c_string(buffer.data.empty() || buffer.name == "workspace" ? "" : input_file_name(buffer)),
      c_string(checked ? expected_file_name(buffer) : ""), buffer.zeroed_bytes);
}

std::string launch_lines(const CaseLaunch& launch, const ProjectKernel& kernel) {
  std::vector<std::string> arguments;
  for (const auto& argument : launch.arguments) arguments.push_back(argument_text(argument));
  return fmt::format("    {{{}, {}, {{{}}}, {{{}}}, {}, {},\n     {{{}}}}},\n",
                     c_string(kernel.binary_file), c_string(launch.kernel),
                     fmt::join(launch.grid, ", "), fmt::join(launch.block, ", "),
                     launch.dynamic_shared_bytes, launch.subgroup_size, fmt::join(arguments, ", "));
}

/// Returns the size of the cache flush before each timed run: that of the certified measurement, or
/// twice the last-level cache; 0 for warm results.
std::uint64_t flush_bytes(const KernelProject& project) {
  if (!project.winner.winner.cold) return 0;
  const std::uint64_t measured = project.winner.winner.measurement.flush_bytes;
  constexpr std::uint64_t fallback = std::uint64_t{64} << 20;
  const std::uint64_t cache = 2 * project.target.last_level_cache_bytes;
  return (measured != 0 ? measured : std::max(cache, fallback)) / 4 * 4;
}

/// Returns the compiler's command as CMake's words, with @SOURCE@ and @BINARY@; empty if the kernel
/// can't be compiled without GRETA.
std::string compile_command(const KernelProject& project, const ProjectKernel& kernel) {
  std::vector<std::string> options;
  bool named = false;
  for (const std::string& option : kernel.source.options) {
    if (is_define(option)) continue;
    named = named || option.starts_with("--gpu-architecture=");
    options.push_back(option);
  }
  const std::string& architecture = project.target.architecture;
  const std::string more = fmt::format("{}{}", options.empty() ? "" : " ", fmt::join(options, " "));
  switch (project.platform) {
    case ProjectPlatform::amd:
      return fmt::format(
          "${{COMPILER}} -x hip @SOURCE@ -o @BINARY@ --cuda-device-only --no-gpu-bundle-output "
          "-nogpuinc -nogpulib -O3 -std=c++17 -mcode-object-version=5 --offload-arch={}{}",
          architecture, more);
    case ProjectPlatform::nvidia:
      return fmt::format("${{COMPILER}} -cubin -x cu -std=c++17 @SOURCE@ -o @BINARY@{}{}",
                         named ? "" : " --gpu-architecture=" + architecture, more);
    case ProjectPlatform::vulkan:
      return "${COMPILER} -V --target-env vulkan1.3 -S comp @SOURCE@ -o @BINARY@";
    case ProjectPlatform::hip_host:
      break;
  }
  return {};
}

std::string replaced(std::string text, std::string_view from, const std::string& to) {
  if (const auto at = text.find(from); at != std::string::npos) text.replace(at, from.size(), to);
  return text;
}

bool compiles_alone(const KernelProject& project) {
  // GRETA rewrites these modules, as glslang translates the older extension only.
  const auto& definitions = project.definitions;
  return project.platform != ProjectPlatform::hip_host &&
         std::find(definitions.begin(), definitions.end(), "KERNEL_USES_KHR_MATRICES") ==
             definitions.end();
}

/// Returns the part of CMakeLists.txt that compiles the kernels, or an empty string.
std::string compile_text(const KernelProject& project) {
  if (!compiles_alone(project)) return {};
  const char* const programs =
      project.platform == ProjectPlatform::amd
          ? "clang++-22 clang++-21 clang++-20 clang++-19 clang++ PATHS /opt/rocm/llvm/bin"
      : project.platform == ProjectPlatform::nvidia ? "nvcc PATHS /usr/local/cuda/bin"
                                                    : "glslangValidator glslang";
  std::string text = fmt::format(
      "\noption(KERNELS_FROM_SOURCE \"Compile kernels/ instead of using the binaries in it\" OFF)\n"
      "if(KERNELS_FROM_SOURCE)\n"
      "  set(BINARIES ${{CMAKE_CURRENT_BINARY_DIR}})\n"
      "  file(MAKE_DIRECTORY ${{BINARIES}}/kernels)\n"
      "  find_program(COMPILER NAMES {} REQUIRED)\n",
      programs);
  for (const ProjectKernel& kernel : project.kernels) {
    const std::string binary = "${BINARIES}/" + kernel.binary_file;
    const std::string source = "${CMAKE_CURRENT_SOURCE_DIR}/" + kernel.source_file;
    const std::string command = compile_command(project, kernel);
    text += fmt::format(
        "  add_custom_command(OUTPUT {0} DEPENDS {1} VERBATIM\n    COMMAND {2})\n"
        "  target_sources(run PRIVATE {0})\n",
        binary, source, replaced(replaced(command, "@SOURCE@", source), "@BINARY@", binary));
  }
  return text + "endif()\n";
}

std::string_view libraries_text(ProjectPlatform platform) {
  switch (platform) {
    case ProjectPlatform::amd:
      return "find_path(HIP_INCLUDE hip/hip_runtime_api.h PATHS /opt/rocm/include REQUIRED)\n"
             "find_library(HIP_LIBRARY amdhip64 PATHS /opt/rocm/lib REQUIRED)\n"
             "target_include_directories(run SYSTEM PRIVATE ${HIP_INCLUDE})\n"
             "target_compile_definitions(run PRIVATE __HIP_PLATFORM_AMD__)\n"
             "target_link_libraries(run PRIVATE ${HIP_LIBRARY})\n";
    case ProjectPlatform::hip_host:
      return "# hip-host runs the kernels on the CPU. It is part of GRETA; the header is HIP's.\n"
             "find_path(HIP_INCLUDE hip/hip_runtime_api.h PATHS /opt/rocm/include REQUIRED)\n"
             "find_library(HIP_HOST_LIBRARY greta-hip-host REQUIRED)\n"
             "target_include_directories(run SYSTEM PRIVATE ${HIP_INCLUDE})\n"
             "target_compile_definitions(run PRIVATE __HIP_PLATFORM_AMD__)\n"
             "target_link_libraries(run PRIVATE ${HIP_HOST_LIBRARY})\n";
    case ProjectPlatform::nvidia:
      return "find_path(CUDA_INCLUDE cuda.h PATHS /usr/local/cuda/include REQUIRED)\n"
             "find_library(CUDA_LIBRARY cuda PATHS /usr/local/cuda/lib64\n"
             "             PATH_SUFFIXES stubs REQUIRED)\n"
             "target_include_directories(run SYSTEM PRIVATE ${CUDA_INCLUDE})\n"
             "target_link_libraries(run PRIVATE ${CUDA_LIBRARY})\n";
    case ProjectPlatform::vulkan:
      return "find_package(Vulkan REQUIRED)\n"
             "target_link_libraries(run PRIVATE Vulkan::Vulkan)\n";
  }
  return {};
}

std::string_view program_of(ProjectPlatform platform) {
  switch (platform) {
    case ProjectPlatform::nvidia:
      return "gpu_cuda.cpp";
    case ProjectPlatform::vulkan:
      return "gpu_vulkan.cpp";
    case ProjectPlatform::amd:
    case ProjectPlatform::hip_host:
      return "gpu_hip.cpp";
  }
  return {};
}

std::string_view needs_text(ProjectPlatform platform) {
  switch (platform) {
    case ProjectPlatform::amd:
      return "ROCm, or Debian's libamdhip64-dev";
    case ProjectPlatform::hip_host:
      return "an installed GRETA (its folder in CMAKE_PREFIX_PATH) and HIP's headers, e.g. "
             "Debian's "
             "libamdhip64-dev";
    case ProjectPlatform::nvidia:
      return "the CUDA toolkit";
    case ProjectPlatform::vulkan:
      return "a Vulkan 1.3 loader with headers, e.g. Debian's libvulkan-dev";
  }
  return {};
}

/// Returns the ordinal of the device that the program uses without --device.
int default_device(const KernelProject& project) {
  const bool numbered =
      project.platform == ProjectPlatform::hip_host || project.platform == ProjectPlatform::vulkan;
  return numbered ? project.target.index : 0;
}

std::string speedup_words(const Winner& winner) {
  if (winner.is_default) return "the default configuration; nothing was significantly faster";
  if (!has_ratio(winner)) return "its ratio to the default configuration is not known";
  return fmt::format("{:.2f}x the speed of the default configuration ({:.2f} to {:.2f})",
                     winner.speedup, winner.speedup_low, winner.speedup_high);
}

}  // namespace

ProjectPlatform platform_of(const DeviceInfo& device) {
  if (device.language == Language::glsl) return ProjectPlatform::vulkan;
  if (device.is_cpu()) return ProjectPlatform::hip_host;
  return device.vendor == "NVIDIA" ? ProjectPlatform::nvidia : ProjectPlatform::amd;
}

bool belongs_to(ProjectPlatform platform, std::string_view file) {
  return !file.starts_with("gpu_") || file == program_of(platform);
}

std::string input_file_name(const CaseBuffer& buffer) {
  return fmt::format("data/{}.bin", buffer.name);
}

std::string expected_file_name(const CaseBuffer& buffer) {
  return fmt::format("data/{}.expected", buffer.name);
}

std::string kernel_text(const KernelProject& project, const ProjectKernel& kernel) {
  constexpr std::string_view version_word = "#version ";
  std::string_view body = kernel.source.text;
  std::string text;
  if (body.starts_with(version_word)) {  // must be the first line
    const auto end = std::min(body.find('\n') + 1, body.size());
    text = body.substr(0, end);
    body.remove_prefix(end);
  }
  text += fmt::format(
      "// {} for {}, from GRETA {}. SPDX-License-Identifier: Apache-2.0\n"
      "// {}\n// {}\n",
      kernel.source.name, project.target.architecture, version(), project.run.problem,
      project.run.config);
  for (const std::string& option : kernel.source.options) {
    if (is_define(option)) text += define_line(option);
  }
  return text.append(body);
}

std::string launches_text(const KernelProject& project) {
  std::string text = fmt::format(
      "// What is run: written by GRETA {}.\n#pragma once\n\n#include \"case.hpp\"\n\n"
      "constexpr const char* problem = {};\nconstexpr const char* configuration = {};\n\n"
      "constexpr int default_device = {};\n"
      "/// Bytes written before each timed run, so that it starts with cold caches; 0: warm "
      "caches.\n"
      "constexpr std::size_t flush_bytes = {};\n\n"
      "const std::vector<Buffer> buffers{{\n"
      "    // name, bytes, type, initial contents, reference values, leading zeros\n",
      version(), c_string(project.run.problem), c_string(project.run.config),
      default_device(project), flush_bytes(project));
  for (std::size_t i = 0; i < project.run.buffers.size(); ++i) {
    text += buffer_line(project.run.buffers[i], project.checked[i] > 0);
  }
  text +=
      "};\n\nconst std::vector<Launch> launches{\n"
      "    // binary, entry, grid, block, dynamic shared memory, subgroup size, arguments\n";
  for (const CaseLaunch& launch : project.run.launches) {
    text += launch_lines(launch, project.kernels[launch.code_object]);
  }
  return text + "};\n";
}

std::string cmake_text(const KernelProject& project) {
  std::string definitions;
  for (const std::string& name : project.definitions) definitions += " " + name;
  return fmt::format(
      "cmake_minimum_required(VERSION 3.16)\n"
      "project(kernel LANGUAGES CXX)\n"
      "if(NOT CMAKE_BUILD_TYPE)\n"
      "  set(CMAKE_BUILD_TYPE Release)\n"
      "endif()\n\n"
      "add_executable(run main.cpp {})\n"
      "target_compile_features(run PRIVATE cxx_std_20)\n"
      "{}"
      "set(BINARIES ${{CMAKE_CURRENT_SOURCE_DIR}})\n"
      "{}\n"
      "target_compile_definitions(run PRIVATE FOLDER=\"${{CMAKE_CURRENT_SOURCE_DIR}}\"\n"
      "                                       BINARIES=\"${{BINARIES}}\"{})\n\n"
      "enable_testing()\n"
      "add_test(NAME check COMMAND run --runs 1)\n",
      program_of(project.platform), libraries_text(project.platform), compile_text(project),
      definitions);
}

std::string readme_text(const KernelProject& project) {
  const StoredWinner& from = project.winner;
  std::string text = fmt::format(
      "# {}\n\n"
      "| | |\n|---|---|\n"
      "| configuration | `{}` |\n"
      "| tuned on | {} ({}), {} |\n"
      "| time | {} with {} caches; {} |\n"
      "| compiled for | {} by {} |\n\n"
      "```sh\ncmake -S . -B build && cmake --build build && build/run\n```\n\n"
      "builds the program, runs the kernels on the inputs in `data/`, compares the results with "
      "FP64 "
      "reference values, and times them. It needs {}. ",
      project.run.problem, project.run.config, from.device.name, from.device.architecture,
      from.provenance.driver, format_time(from.winner.measurement),
      from.winner.cold ? "cold" : "warm", speedup_words(from.winner), project.target.architecture,
      project.target.compiler, needs_text(project.platform));
  text +=
      compiles_alone(project)
          ? "With `-DKERNELS_FROM_SOURCE=ON` it compiles the sources instead of using the binaries "
            "beside them.\n"
          : "The binaries are used as they are; only GRETA compiles these sources.\n";
  text +=
      "\n## Launches\n\n| kernel | grid | block | dynamic shared memory | arguments |\n"
      "|---|---|---|---|---|\n";
  for (const CaseLaunch& launch : project.run.launches) {
    std::vector<std::string> arguments;
    for (const auto& argument : launch.arguments) {
      arguments.push_back(argument_name(argument, project.run));
    }
    text += fmt::format("| `{}` in `{}` | {} | {} | {} bytes | {} |\n", launch.kernel,
                        project.kernels[launch.code_object].source_file,
                        fmt::join(launch.grid, " x "), fmt::join(launch.block, " x "),
                        launch.dynamic_shared_bytes, fmt::join(arguments, ", "));
  }
  text += "\n## Files\n\n| | |\n|---|---|\n";
  for (const ProjectKernel& kernel : project.kernels) {
    text += fmt::format(
        "| `{}` | source: includes are inlined, parameters are macros |\n| `{}` | its "
        "binary |\n",
        kernel.source_file, kernel.binary_file);
  }
  text +=
      "| `launches.hpp` | buffers and launches: grid, block, arguments |\n"
      "| `data/*.bin` | inputs, row-major, little-endian |\n"
      "| `data/*.expected` | checked elements: index (u64), value (f64), allowed deviation (f64) "
      "|\n"
      "| `main.cpp`, `gpu_*.cpp` | the program |\n\n";
  for (std::size_t i = 0; i < project.run.buffers.size(); ++i) {
    if (project.checked[i] == 0) continue;
    text += fmt::format("`{}`: {} elements are checked.\n", project.run.buffers[i].name,
                        project.checked[i]);
  }
  if (project.described) {
    text += "\nThe kernels come from a description, and their authors say under which licence.";
    return text +
           " The program around them comes from GRETA and is under the Apache License 2.0.\n";
  }
  return text + "\nThe kernels come from GRETA and are under the Apache License 2.0.\n";
}

}  // namespace greta::tuner
