#include "runtime/device/hip/compiler.hpp"

#include <fmt/format.h>

#include <map>
#include <mutex>
#include <utility>

#include "runtime/device/hip/compiler_program.hpp"
#include "runtime/device/system/log.hpp"

namespace greta::device::hip {
namespace {

KernelSource empty_kernel() {
  KernelSource source;
  source.name = "empty";
  source.language = Language::hip;
  source.text =
      "#if !defined(__HIPCC_RTC__) && !defined(__CUDACC_RTC__)\n"
      "#define __global__ __attribute__((global))\n"
      "#endif\n"
      "extern \"C\" __global__ void empty() {}\n";
  source.entry = "empty";
  return source;
}

/// Compiler programs in order of preference. The first that supports an architecture is used.
class ProgramCompiler final : public Compiler {
 public:
  ProgramCompiler(std::vector<CompilerProgram> programs, Deadline deadline)
      : programs_(std::move(programs)), deadline_(deadline) {
    for (const auto& program : programs_) version_ += program.version + ", ";
    version_ += compiler_options;
  }

  const std::string& version() const override { return version_; }

  Result<std::string> used_for(const std::string& architecture) override {
    const auto program = choose(architecture);
    if (!program) return program.failure();
    return (*program)->version;
  }

  Result<CodeObject> compile(const KernelSource& source, const std::string& architecture) override {
    const CompilerProgram& first = programs_.front();
    if (is_untried(architecture) && !names_architecture(first, source)) {
      auto compiled = named(compile_with(first, source, architecture, deadline_), source);
      if (compiled) remember(architecture, first);
      if (compiled || compiled.failure().status != Status::compile) return compiled;
      const auto program = choose(architecture);
      if (program && *program == &first) return compiled;
    }
    const auto program = choose(architecture);
    if (!program) return program.failure();
    return named(compile_with(**program, source, architecture, deadline_), source);
  }

 private:
  using Choice = Result<const CompilerProgram*>;

  /// Has the kernel's name in a failure's message.
  static Result<CodeObject> named(Result<CodeObject> compiled, const KernelSource& source) {
    if (compiled || compiled.failure().message.starts_with(source.name)) return compiled;
    Failure failure = compiled.failure();
    failure.message = source.name + ": " + failure.message;
    return failure;
  }

  bool is_untried(const std::string& architecture) {
    const std::lock_guard lock(mutex_);
    return !choices_.contains(architecture);
  }

  /// A compiler that compiled a kernel for an architecture would also have compiled an empty one.
  void remember(const std::string& architecture, const CompilerProgram& program) {
    const std::lock_guard lock(mutex_);
    choices_.emplace(architecture, &program);
  }

  Choice choose(const std::string& architecture) {
    // The lock is held while compilers are tried, because concurrent callers need the same answer.
    const std::lock_guard lock(mutex_);
    const auto known = choices_.find(architecture);
    return known != choices_.end() ? known->second : ask(architecture);
  }

  /// Tries the compilers and caches the answer. An answer is not cached if a compiler could not be
  /// run or timed out.
  Choice ask(const std::string& architecture) {
    std::string why, whole_log;
    for (const auto& program : programs_) {
      const auto compiled = compile_with(program, empty_kernel(), architecture, deadline_);
      if (compiled) {
        if (&program != &programs_.front()) {
          log(LogLevel::info, "{} compiles for {}, as {}", program.version, architecture, why);
        }
        return choices_.emplace(architecture, &program).first->second;
      }
      const Failure& refusal = compiled.failure();
      if (refusal.status != Status::compile) return refusal;
      why += fmt::format("{}{}: {}", why.empty() ? "" : "; ", program.version, refusal.message);
      whole_log += refusal.log;
    }
    const Failure failure{Status::unavailable,
                          fmt::format("nothing compiles for {}: {}", architecture, why), whole_log};
    return choices_.emplace(architecture, failure).first->second;
  }

  std::vector<CompilerProgram> programs_;
  Deadline deadline_;
  std::string version_;
  std::mutex mutex_;
  std::map<std::string, Choice> choices_;
};

std::string no_clang() {
  return fmt::format("no clang {} or newer on PATH", oldest_clang);
}

Result<std::unique_ptr<Compiler>> create(std::vector<CompilerProgram> programs,
                                         const OpenOptions& options) {
  return std::unique_ptr<Compiler>(
      std::make_unique<ProgramCompiler>(std::move(programs), options.compile_deadline));
}

}  // namespace

Result<std::unique_ptr<Compiler>> create_clang_compiler(const OpenOptions& options) {
  if (!options.compiler.empty()) {
    auto program = clang_program(options.compiler.string(), options.compile_deadline);
    if (!program) return program.failure();
    return create({std::move(*program)}, options);
  }
  auto programs = clangs_on_path(options.compile_deadline);
  if (!programs.empty()) return create(std::move(programs), options);
  return Failure{Status::unavailable, no_clang(), {}};
}

Result<std::unique_ptr<Compiler>> create_amd_compiler(const OpenOptions& options) {
  if (!options.compiler.empty()) return create_clang_compiler(options);
  auto programs = clangs_on_path(options.compile_deadline);
  auto hiprtc = library_program("hiprtc", options);
  if (hiprtc) {
    programs.insert(programs.begin(), std::move(*hiprtc));
  } else if (programs.empty()) {
    return Failure{
        Status::unavailable, hiprtc.failure().message + "; and there is " + no_clang(), {}};
  } else {
    log(LogLevel::info, "clang compiles for AMD GPUs, as {}", hiprtc.failure().message);
  }
  return create(std::move(programs), options);
}

Result<std::unique_ptr<Compiler>> create_nvidia_compiler(const OpenOptions& options) {
  auto nvrtc = library_program("nvrtc", options);
  if (!nvrtc) return nvrtc.failure();
  return create({std::move(*nvrtc)}, options);
}

}  // namespace greta::device::hip
