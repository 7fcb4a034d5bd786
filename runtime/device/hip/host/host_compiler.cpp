#include "runtime/device/hip/host/host_compiler.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/device/hardware/architectures.hpp"
#include "runtime/device/hip/elf_bytes.hpp"
#include "runtime/device/hip/host/elf_image.hpp"
#include "runtime/device/hip/host/functions.hpp"
#include "runtime/device/hip/host/language_files.hpp"
#include "runtime/device/hip/host/sanitizer.hpp"
#include "runtime/device/system/process.hpp"
#include "runtime/device/text/hash.hpp"
#include "runtime/device/text/strings.hpp"

namespace greta::device::hip::host {
namespace {

constexpr std::string_view language_folder = "runtime/device/hip/host/language/";

/// Appends a header with everything that it includes, each file once.
void append_header(std::string& text, std::string_view name, std::set<std::string_view>& done) {
  constexpr std::string_view include = "#include \"";
  const auto& files = host_language_files();
  const auto file = std::find_if(files.begin(), files.end(),
                                 [&](const EmbeddedFile& known) { return known.path == name; });
  if (file == files.end()) throw Error(fmt::format("no header {} was built in", name));
  if (!done.insert(file->path).second) return;
  text += fmt::format("#line 1 \"hip-host/{}\"\n", name);
  std::string_view rest = file->text;
  for (int number = 1; !rest.empty(); ++number) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    if (line.starts_with(include)) {
      const auto path = line.substr(include.size(), line.rfind('"') - include.size());
      append_header(text, path.substr(language_folder.size()), done);
      text += fmt::format("#line {} \"hip-host/{}\"\n", number + 1, name);
    } else if (line != "#pragma once") {
      text.append(line).append("\n");
    } else {
      text += '\n';
    }
  }
}

const std::string& language() {
  static const std::string text = [] {
    std::string whole;
    std::set<std::string_view> done;
    append_header(whole, "greta_host.hpp", done);
    return whole;
  }();
  return text;
}

/// Returns the rest of `line` after `word` and white space, or nothing if it does not start with
/// the whole word.
std::optional<std::string_view> after_word(std::string_view line, std::string_view word) {
  if (!line.starts_with(word)) return std::nullopt;
  line.remove_prefix(word.size());
  const auto next = line.find_first_not_of(" \t");
  if (next == 0 || next == std::string_view::npos) return std::nullopt;
  return line.substr(next);
}

/// Maps declarations such as `extern __shared__ float rest[];` to the library's dynamic memory.
/// Each declaration must be on one line.
std::string name_dynamic_memory(std::string_view text) {
  constexpr std::string_view first = "extern";
  std::string result;
  while (true) {
    const auto start = text.find(first);
    result += text.substr(0, start);
    if (start == std::string_view::npos) return result;
    text.remove_prefix(start);
    const std::string_view line = text.substr(0, text.find_first_of("\n;{}"));
    auto rest = after_word(line, first);
    if (rest) rest = after_word(*rest, "__shared__");
    const bool array = rest && text.substr(line.size()).starts_with(";") && rest->ends_with("]");
    if (array) {
      result += fmt::format("extern {} __asm__(\"greta_host_dynamic\")", *rest);
    } else {
      result += line;
    }
    text.remove_prefix(line.size());
  }
}

/// An in-memory file that the linker writes to.
class OutputFile {
 public:
  OutputFile() : file_(memfd_create("hip-host", MFD_CLOEXEC)) {
    if (file_ < 0) throw Error("no memory for a compiler's output");
  }
  ~OutputFile() { close(file_); }
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  std::string path() const { return fmt::format("/proc/{}/fd/{}", getpid(), file_); }
  std::vector<std::byte> read() const {
    std::vector<std::byte> bytes(static_cast<std::size_t>(lseek(file_, 0, SEEK_END)));
    const ssize_t n = pread(file_, bytes.data(), bytes.size(), 0);
    bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
    return bytes;
  }

 private:
  int file_;
};

/// Returns the macros that describe the device for which a kernel is built.
Result<std::vector<std::string>> device_defines(const std::string& architecture) {
  for (int device = 0; device < device_count; ++device) {
    const std::string_view name = imitated(device);
    if (architecture != fmt::format("host-{}", name)) continue;
    return std::vector<std::string>{
        fmt::format("-DGRETA_HOST={}", imitated_number(device)),
        fmt::format("-DGRETA_HOST_DYNAMIC_BYTES={}", architecture_info(name)->shared_memory_bytes)};
  }
  return Failure{Status::unavailable, "hip-host does not imitate " + architecture, {}};
}

std::string first_error(const std::string& log) {
  std::string_view rest = log;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    if (line.find("error") != std::string_view::npos) return std::string(line);
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
  }
  return "the compiler gave no reason";
}

/// Enables the processor's instructions for fast 16-bit arithmetic and fused multiply-add.
std::vector<std::string> processor_options() {
#if defined(__x86_64__)
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("bmi2");
  if (v3) return {"-march=x86-64-v3"};
#endif
  return {};
}

std::vector<std::string> sanitizer_options(bool clang, Sanitize sanitize) {
  if (sanitize == Sanitize::races) {
    std::vector<std::string> options{"-DGRETA_HOST_RACES", "-g1", "-fsanitize=thread",
                                     "-fno-omit-frame-pointer"};
    if (clang) options.emplace_back("-fno-sanitize-link-runtime");
    return options;
  }
  if (!address_sanitizer().loaded()) {
    return {"-DGRETA_HOST_CHECKS_ALIGNMENT", "-fsanitize=alignment",
            "-fno-sanitize-recover=alignment"};
  }
  const bool undefined = dlsym(RTLD_DEFAULT, "__ubsan_handle_out_of_bounds") != nullptr;
  std::vector<std::string> options{
      "-g1", "-fno-omit-frame-pointer",
      undefined ? "-fsanitize=address,undefined" : "-fsanitize=address",
      "-fno-sanitize-recover=all"};
  // AddressSanitizer finds the same errors as object-size, and also names the variable.
  if (undefined) options.emplace_back("-fno-sanitize=vptr,object-size");
  // The runtime is already in the process.
  if (clang) options.emplace_back("-fno-sanitize-link-runtime");
  return options;
}

class HostCompiler final : public Compiler {
 public:
  HostCompiler(std::string program, const std::string& said, const OpenOptions& options)
      : deadline_(options.compile_deadline) {
    const bool clang = said.find("clang") != std::string::npos;
    // Kernels access memory under different types, hence -fno-strict-aliasing.
    command_ = {std::move(program),
                "-x",
                "c++",
                "-",
                "-std=c++17",
                "-O1",
                "-w",
                "-fPIC",
                "-shared",
                "-nostdlib",
                "-Wl,-Bsymbolic",
                "-fvisibility=hidden",
                "-fno-exceptions",
                "-fno-rtti",
                "-fno-threadsafe-statics",
                "-fstack-clash-protection",
                "-fno-math-errno",
                "-fno-strict-aliasing",
                "-ffp-contract=fast"};
    for (const auto& more : {processor_options(), sanitizer_options(clang, options.sanitize)}) {
      command_.insert(command_.end(), more.begin(), more.end());
    }
    Hash hash;
    for (const auto& word : command_) hash.add(word);
    version_ =
        fmt::format("{}, hip-host {}", first_line(said), hash.add(language()).hex().substr(0, 8));
    if (options.sanitize == Sanitize::races) {
      version_ += " with race detection";
    } else if (address_sanitizer().loaded()) {
      version_ += " with sanitizers";
    }
  }

  const std::string& version() const override { return version_; }

  Result<std::string> used_for(const std::string&) override { return version_; }

  Result<CodeObject> compile(const KernelSource& source, const std::string& architecture) override {
    const OutputFile output;
    auto command = command_;
    const auto defines = device_defines(architecture);
    if (!defines) return defines.failure();
    command.insert(command.end(), defines->begin(), defines->end());
    command.insert(command.end(), source.options.begin(), source.options.end());
    // Sanitizer reports should contain the kernel's own name for its text, without a folder.
    std::error_code no_folder;
    command.push_back(
        fmt::format("-fdebug-prefix-map={}=.", std::filesystem::current_path(no_folder).string()));
    command.insert(command.end(), {"-o", output.path(), "-lgcc"});
    auto outcome = run_process(command, compilation_text(source), deadline_);
    if (!outcome) return outcome.failure();
    if (outcome->timed_out) {
      return Failure{
          Status::timeout,
          fmt::format("{}: {} {}", source.name, version_, outcome->how_it_ended(deadline_)),
          std::move(outcome->errors)};
    }
    if (!outcome->ok()) {
      const std::string why = outcome->signal != 0
                                  ? version_ + " " + outcome->how_it_ended(deadline_)
                                  : first_error(outcome->errors);
      return Failure{Status::compile, fmt::format("{}: {}", source.name, why),
                     std::move(outcome->errors)};
    }
    CodeObject compiled{output.read(), std::move(outcome->errors)};
    const auto variables = summarise(compiled.binary).variables;
    if (variables.empty()) return compiled;
    return Failure{Status::compile,
                   fmt::format("{}: variables that are neither const nor __shared__ are not "
                               "supported by hip-host: {}",
                               source.name, fmt::join(variables, ", ")),
                   {}};
  }

 private:
  std::vector<std::string> command_;
  std::string version_;
  Deadline deadline_;
};

Result<std::string> ask_version(const std::string& program, Deadline deadline) {
  auto outcome = run_process({program, "--version"}, {}, deadline);
  if (!outcome) return outcome.failure();
  if (outcome->ok()) return std::move(outcome->output);
  return Failure{Status::unavailable,
                 fmt::format("{} {}", program, outcome->how_it_ended(deadline)), outcome->errors};
}

}  // namespace

Result<FoundCompiler> find_compiler(const std::filesystem::path& given, Deadline deadline) {
  std::vector<std::string> programs{"c++", "g++", "clang++"};
  if (!given.empty()) programs = {given.string()};
  std::string reasons;
  for (const auto& program : programs) {
    auto said = ask_version(program, deadline);
    if (said) return FoundCompiler{program, *std::move(said)};
    reasons += (reasons.empty() ? "" : "; ") + said.failure().message;
  }
  return Failure{Status::unavailable, "no C++ compiler: " + reasons, {}};
}

Result<std::unique_ptr<Compiler>> create_compiler(const OpenOptions& options) {
  if (options.sanitize != Sanitize::none && !address_sanitizer().loaded()) {
    return Failure{Status::unavailable,
                   "sanitizers need AddressSanitizer's runtime in the process, as in the worker "
                   "that greta-tune verify --sanitize starts",
                   {}};
  }
  auto found = find_compiler(options.compiler, options.compile_deadline);
  if (!found) return found.failure();
  return std::unique_ptr<Compiler>(
      std::make_unique<HostCompiler>(std::move(found->program), found->said, options));
}

std::string library_interface() {
  Hash hash;
  const auto processor = processor_options();
  for (const auto& word : processor) hash.add(word);
  for (const auto& word : sanitizer_options(true, Sanitize::none)) hash.add(word);
  const std::string key = hash.add(language()).hex().substr(0, 8);
  return processor.empty() ? "baseline " + key : fmt::format("x86-64-v3 {}", key);
}

std::string compilation_text(const KernelSource& source) {
  return fmt::format(
      "{}#line 1 \"{}\"\n{}\n#line 1 \"hip-host/entry\"\nGRETA_HOST_ENTRY(\"{}\", {})\n",
      language(), source.name, name_dynamic_memory(source.text), source.entry, source.entry);
}

Result<KernelStatistics> read_statistics(std::span<const std::byte> library, const std::string&) {
  if (!is_whole_elf(library)) {
    return Failure{Status::invalid_argument, "it is not a library, or it is damaged", {}};
  }
  const ElfSummary summary = summarise(library);
  KernelStatistics statistics;
  statistics.shared_memory_bytes = summary.shared_bytes;
  statistics.code_bytes = summary.code_bytes;
  return statistics;
}

}  // namespace greta::device::hip::host
