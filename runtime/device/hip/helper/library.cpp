#include "runtime/device/hip/helper/library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>
#include <utility>

namespace greta::device::hip {
namespace {

/// Returns "5.2.21153" for a library whose file is libamdhip64.so.5.2.21153, or an empty string if
/// the file name contains no full version.
std::string version_of_file(const void* function) {
  Dl_info info{};
  if (dladdr(function, &info) == 0) return {};
  std::error_code error;
  const std::string name = std::filesystem::canonical(info.dli_fname, error).filename().string();
  const auto mark = name.find(".so.");
  const std::string version = mark == std::string::npos ? "" : name.substr(mark + 4);
  return version.find('.') == std::string::npos ? "" : version;
}

}  // namespace

const LibraryInterface& hiprtc_interface() {
  // Up to ROCm 5.2, and on Debian, libamdhip64 also contains hiprtc's functions.
  static const LibraryInterface interface {
    "hiprtc", "hiprtc", "Code", {"libhiprtc.so.7",   "libhiprtc.so.6",
                                 "libhiprtc.so.5",   "/opt/rocm/lib/libhiprtc.so",
                                 "libamdhip64.so.7", "libamdhip64.so.6",
                                 "libamdhip64.so.5", "/opt/rocm/lib/libamdhip64.so"},
        5
  };
  return interface;
}

const LibraryInterface& nvrtc_interface() {
  static const LibraryInterface interface {
    "NVRTC", "nvrtc", "CUBIN",
        {"libnvrtc.so.13", "libnvrtc.so.12", "/usr/local/cuda/lib64/libnvrtc.so.13",
         "/usr/local/cuda/lib64/libnvrtc.so.12"},
        12
  };
  return interface;
}

Failure CompilerLibrary::failed(const std::string& what, int error) const {
  const char* const text = functions_.error_string(error);
  return {Status::compile,
          fmt::format("{}: error {}: {}", what, error, text != nullptr ? text : "unknown"),
          {}};
}

Result<void> CompilerLibrary::load_functions(const LibraryInterface& interface) {
  const auto& [title, prefix, code, files, oldest] = interface;
  Result<void> loaded;
  const auto load = [&](auto& function, const std::string& name) {
    if (loaded) loaded = library_.load(function, prefix + name);
  };
  load(functions_.error_string, "GetErrorString");
  load(functions_.version, "Version");
  load(functions_.create, "CreateProgram");
  load(functions_.add_name, "AddNameExpression");
  load(functions_.compile, "CompileProgram");
  load(functions_.log_size, "GetProgramLogSize");
  load(functions_.log, "GetProgramLog");
  load(functions_.code_size, "Get" + code + "Size");
  load(functions_.code, "Get" + code);
  return loaded;
}

Result<void> CompilerLibrary::learn_version(const LibraryInterface& interface) {
  int major = 0, minor = 0;
  if (const int error = functions_.version(&major, &minor); error != 0) {
    return Failure{Status::unavailable, failed(interface.prefix + "Version", error).message, {}};
  }
  if (major < interface.oldest) {
    return Failure{Status::unavailable,
                   fmt::format("{} is {} {}.{}, and {} or newer is needed", library_.name(),
                               interface.title, major, minor, interface.oldest),
                   {}};
  }
  // hiprtc returns 9.0 for every release.
  std::string file = version_of_file(reinterpret_cast<const void*>(functions_.version));
  version_ = fmt::format("{} {}", interface.title,
                         file.empty() ? fmt::format("{}.{}", major, minor) : file);
  return {};
}

Result<CompilerLibrary> CompilerLibrary::open(const LibraryInterface& interface) {
  auto opened = DynamicLibrary::open(interface.files);
  if (!opened) return opened.failure();
  CompilerLibrary library(std::move(*opened));
  if (const auto loaded = library.load_functions(interface); !loaded) return loaded.failure();
  if (const auto fit = library.learn_version(interface); !fit) return fit.failure();
  return library;
}

Result<std::string> CompilerLibrary::compile(const std::string& source,
                                             const std::vector<std::string>& options,
                                             const std::vector<std::string>& kernels,
                                             std::string& log) const {
  std::vector<const char*> words;
  for (const auto& option : options) words.push_back(option.c_str());
  Program program = nullptr;
  int error = functions_.create(&program, source.c_str(), "kernel", 0, nullptr, nullptr);
  if (error != 0) return failed("creating the program", error);
  for (const auto& kernel : kernels) {
    if ((error = functions_.add_name(program, kernel.c_str())) != 0) return failed(kernel, error);
  }
  const int compiled = functions_.compile(program, static_cast<int>(words.size()), words.data());
  const auto fetch = [&](auto size_of, auto read, std::string& text) {
    std::size_t size = 0;
    if ((error = size_of(program, &size)) != 0) return;
    text.resize(size);
    if (size > 0) error = read(program, text.data());
  };
  fetch(functions_.log_size, functions_.log, log);
  if (const auto end = log.find('\0'); end != std::string::npos) log.resize(end);
  if (!log.empty() && log.back() != '\n') log += '\n';
  if (compiled != 0) return failed("compiling", compiled);
  std::string code;
  fetch(functions_.code_size, functions_.code, code);
  if (error != 0) return failed("fetching the code", error);
  return code;
}

}  // namespace greta::device::hip
