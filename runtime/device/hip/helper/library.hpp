#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/device/result.hpp"
#include "runtime/device/system/dynamic_library.hpp"

namespace greta::device::hip {

/// One of the two libraries that compile kernels at run time. They have the same functions under
/// different names.
/// Source: NVRTC's manual, https://docs.nvidia.com/cuda/nvrtc; HIP's hiprtc.h.
struct LibraryInterface {
  std::string title;               ///< "NVRTC"
  std::string prefix;              ///< prefix of its functions: "nvrtc"
  std::string code;                ///< name of the code object in its functions: "CUBIN"
  std::vector<std::string> files;  ///< file names to try, in order of preference
  int oldest = 0;                  ///< oldest supported version, in the library's numbering
};
const LibraryInterface& hiprtc_interface();
const LibraryInterface& nvrtc_interface();

/// The helper's option for an instantiation of a template.
constexpr std::string_view instantiate_option = "--instantiate=";

/// An open library of that kind.
class CompilerLibrary {
 public:
  /// Opens the first file that exists. Fails with `unavailable` and the reason: there is none, it
  /// lacks a function, or it is too old.
  static Result<CompilerLibrary> open(const LibraryInterface& interface);

  /// Returns text such as "hiprtc 5.2.21153" or "NVRTC 12.9".
  const std::string& version() const { return version_; }

  /// Compiles a source and returns its code object, which contains the instantiations of templates
  /// that `kernels` names. `log` receives the compiler's output.
  Result<std::string> compile(const std::string& source, const std::vector<std::string>& options,
                              const std::vector<std::string>& kernels, std::string& log) const;

 private:
  using Program = void*;
  struct Functions {
    const char* (*error_string)(int) = nullptr;
    int (*version)(int*, int*) = nullptr;
    int (*create)(Program*, const char* source, const char* name, int headers,
                  const char* const* texts, const char* const* names) = nullptr;
    int (*add_name)(Program, const char* expression) = nullptr;
    int (*compile)(Program, int count, const char* const* options) = nullptr;
    int (*log_size)(Program, std::size_t*) = nullptr;
    int (*log)(Program, char*) = nullptr;
    int (*code_size)(Program, std::size_t*) = nullptr;
    int (*code)(Program, char*) = nullptr;
  };

  explicit CompilerLibrary(DynamicLibrary library) : library_(std::move(library)) {}
  Result<void> load_functions(const LibraryInterface& interface);
  Result<void> learn_version(const LibraryInterface& interface);
  Failure failed(const std::string& what, int error) const;

  DynamicLibrary library_;
  Functions functions_;
  std::string version_;
};

}  // namespace greta::device::hip
