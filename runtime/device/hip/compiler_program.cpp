#include "runtime/device/hip/compiler_program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <utility>

#include "runtime/device/hip/code_object.hpp"
#include "runtime/device/hip/entry_symbol.hpp"
#include "runtime/device/hip/helper/library.hpp"
#include "runtime/device/system/module_paths.hpp"
#include "runtime/device/system/process.hpp"
#include "runtime/device/text/strings.hpp"

namespace greta::device::hip {
namespace {

namespace fs = std::filesystem;

constexpr int helper_refusal = 10;  // greta-compile-helper's exit code for a rejected source

/// Returns the first line that reports an error, or else the last line that is not empty.
std::string first_error(const std::string& log) {
  std::istringstream lines(log);
  std::string last;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("error") != std::string::npos) return line;
    if (!line.empty()) last = line;
  }
  return last.empty() ? "the compiler gave no reason" : last;
}

std::vector<std::byte> bytes_of(const std::string& text) {
  std::vector<std::byte> bytes(text.size());
  if (!text.empty()) std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

/// Converts the outcome of a failed compilation to a Failure.
Failure judge(const CompilerProgram& program, ProcessOutcome outcome, Deadline deadline) {
  const std::string how = fmt::format("{} {}", program.version, outcome.how_it_ended(deadline));
  if (outcome.timed_out) return {Status::timeout, how, std::move(outcome.errors)};
  std::string message = first_error(outcome.errors);
  if (outcome.signal != 0 || outcome.exit_code != program.refusal) {
    message = fmt::format("the compiler aborted: {}: {}", how, message);
  }
  return {Status::compile, std::move(message), std::move(outcome.errors)};
}

/// Finds greta-compile-helper beside the file, or in libexec/greta of a parent folder, which is
/// where installations and build trees have it.
fs::path helper_near(const fs::path& file, std::string_view name) {
  std::error_code error;
  const fs::path start = file.parent_path();
  if (fs::path beside = start / name; fs::exists(beside, error)) return beside;
  for (fs::path folder = start; folder.has_relative_path(); folder = folder.parent_path()) {
    if (fs::path found = folder / "libexec" / "greta" / name; fs::exists(found, error)) {
      return found;
    }
  }
  return {};
}

/// Finds it near the library that contains GRETA, or near the running program.
Result<std::string> find_helper(const fs::path& given) {
  constexpr std::string_view name = "greta-compile-helper";
  if (!given.empty()) return given.string();
  const fs::path module = own_module_file(), program = program_file();
  for (const fs::path& file : {module, program}) {
    if (const fs::path found = helper_near(file, name); !found.empty()) return found.string();
  }
  const std::string beside =
      module == program ? "" : fmt::format(", {}", module.parent_path().string());
  return Failure{Status::unavailable,
                 fmt::format("no {} in {}{} or in libexec/greta above", name,
                             program.parent_path().string(), beside),
                 {}};
}

/// Returns a program's output when it is asked for its version.
Result<std::string> ask_version(const std::vector<std::string>& command, Deadline deadline) {
  auto outcome = run_process(command, {}, deadline);
  if (!outcome) return outcome.failure();
  if (outcome->ok()) return std::move(outcome->output);
  const std::string reason =
      outcome->errors.empty() || outcome->signal != 0
          ? fmt::format("{} {}", command.front(), outcome->how_it_ended(deadline))
          : first_error(outcome->errors);
  return Failure{Status::unavailable, reason, std::move(outcome->errors)};
}

}  // namespace

bool names_architecture(const CompilerProgram& program, const KernelSource& source) {
  return std::any_of(source.options.begin(), source.options.end(), [&](const auto& option) {
    return option.starts_with(program.architecture_option);
  });
}

Result<CodeObject> compile_with(const CompilerProgram& program, const KernelSource& source,
                                const std::string& architecture, Deadline deadline) {
  if (source.language != Language::hip) {
    return Failure{
        Status::compile, fmt::format("the language {} is not hip", to_string(source.language)), {}};
  }
  auto command = program.command;
  if (!names_architecture(program, source)) {
    command.push_back(program.architecture_option + architecture);
  }
  const auto is_standard = [](const std::string& option) {
    return option.find("-std=") != std::string::npos;
  };
  if (std::any_of(source.options.begin(), source.options.end(), is_standard)) {
    std::erase_if(command, is_standard);
  }
  command.insert(command.end(), source.options.begin(), source.options.end());
  // Errors should name the kernel instead of a temporary file.
  std::string text = fmt::format("#line 1 \"{}\"\n{}", source.name, source.text);
  if (is_instantiation(source.entry) && !program.instantiate_option.empty()) {
    command.push_back(program.instantiate_option + source.entry);
  } else if (is_instantiation(source.entry)) {
    text += fmt::format(
        "\n#line 1 \"entry\"\n__attribute__((device, used)) const void* const greta_entry = "
        "(const void*)&{};\n",
        source.entry);
  }
  auto outcome = run_process(command, text, deadline);
  if (!outcome) return outcome.failure();
  if (!outcome->ok()) return judge(program, std::move(*outcome), deadline);
  auto binary = extract_code_object(bytes_of(outcome->output), architecture);
  if (!binary) {
    return Failure{Status::compile,
                   fmt::format("{} gave {}", program.version, binary.failure().message),
                   std::move(outcome->errors)};
  }
  return CodeObject{std::move(*binary), std::move(outcome->errors)};
}

Result<CompilerProgram> clang_program(const std::string& name, Deadline deadline) {
  const auto said = ask_version({name, "--version"}, deadline);
  if (!said) return said.failure();
  constexpr std::string_view mark = "clang version ";
  const auto start = said->find(mark);
  if (start == std::string::npos) {
    return Failure{Status::unavailable, name + " is not clang", *said};
  }
  const std::string line = said->substr(start, said->find('\n', start) - start);
  CompilerProgram program;
  program.version = "clang " + line.substr(mark.size());
  if (std::atoi(line.c_str() + mark.size()) < oldest_clang) {
    return Failure{
        Status::unavailable,
        fmt::format("{} is {}, and {} or newer is needed", name, program.version, oldest_clang),
        {}};
  }
  // Drivers from ROCm 5.5 up to the newest load version 5 of the code object format.
  program.command = {name,
                     "-x",
                     "hip",
                     "-",
                     "-o",
                     "-",
                     "--cuda-device-only",
                     "--no-gpu-bundle-output",
                     "-nogpuinc",
                     "-nogpulib",
                     "-O3",
                     "-std=c++17",
                     "-mcode-object-version=5"};
  program.architecture_option = "--offload-arch=";
  return program;
}

std::vector<CompilerProgram> clangs_on_path(Deadline deadline) {
  std::vector<std::string> names;
  for (int version = newest_clang; version >= oldest_clang; --version) {
    names.push_back(fmt::format("clang-{}", version));
  }
  names.insert(names.end(), {"clang", "/opt/rocm/llvm/bin/clang"});
  std::vector<CompilerProgram> found;
  for (const auto& name : names) {
    auto program = clang_program(name, deadline);
    if (!program) continue;
    const bool again = std::any_of(found.begin(), found.end(), [&](const auto& other) {
      return other.version == program->version;
    });
    if (!again) found.push_back(std::move(*program));
  }
  return found;
}

Result<CompilerProgram> library_program(const std::string& library, const OpenOptions& options) {
  const auto helper = find_helper(options.compile_helper);
  if (!helper) return helper.failure();
  const auto version = ask_version({*helper, library, "--version"}, options.compile_deadline);
  if (!version) return version.failure();
  CompilerProgram program;
  program.version = first_line(*version);
  program.command = {*helper, library};
  program.refusal = helper_refusal;
  program.instantiate_option = instantiate_option;
  if (library == "nvrtc") {
    program.command.emplace_back("--std=c++17");
    program.architecture_option = "--gpu-architecture=";
  } else {
    program.command.insert(program.command.end(), {"-O3", "-std=c++17"});
    program.architecture_option = "--offload-arch=";
  }
  return program;
}

}  // namespace greta::device::hip
