// greta-compile-helper compiles one kernel with a library that may end the process it runs in.
//
//   greta-compile-helper hiprtc|nvrtc --version
//   greta-compile-helper hiprtc|nvrtc OPTION…
//
// It reads the source from standard input and passes the options to the library, except
// --instantiate=NAME, which names an instantiation of a template that the code needs. It writes the
// code object to standard output and the log to standard error. Exit codes: 0 compiled, 1 the
// output can't be written, 2 wrong usage, 3 the library is missing or unsuitable, 10 the source was
// rejected.

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/device/hip/helper/library.hpp"

namespace {

using greta::device::hip::CompilerLibrary;

bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = write(descriptor, text.data(), text.size());
    if (n < 0 && errno != EINTR) return false;
    if (n > 0) text.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

std::string read_all(int descriptor) {
  std::string text;
  std::array<char, 65536> block;
  for (;;) {
    const ssize_t n = read(descriptor, block.data(), block.size());
    if (n == 0 || (n < 0 && errno != EINTR)) return text;
    if (n > 0) text.append(block.data(), static_cast<std::size_t>(n));
  }
}

int run(std::span<char* const> arguments, int output) {
  const std::string_view name = arguments.size() > 1 ? arguments[1] : "";
  if (name != "hiprtc" && name != "nvrtc") {
    fmt::print(stderr, "usage: greta-compile-helper hiprtc|nvrtc --version|OPTION...\n");
    return 2;
  }
  const auto library =
      CompilerLibrary::open(name == "hiprtc" ? greta::device::hip::hiprtc_interface()
                                             : greta::device::hip::nvrtc_interface());
  if (!library) {
    fmt::print(stderr, "{}\n", library.failure().message);
    return 3;
  }
  std::vector<std::string> options, kernels;
  for (const std::string argument : arguments.subspan(2)) {
    const bool kernel = argument.starts_with(greta::device::hip::instantiate_option);
    (kernel ? kernels : options)
        .push_back(argument.substr(kernel ? greta::device::hip::instantiate_option.size() : 0));
  }
  if (options == std::vector<std::string>{"--version"}) {
    return write_all(output, library->version() + "\n") ? 0 : 1;
  }
  std::string log;
  const auto code = library->compile(read_all(STDIN_FILENO), options, kernels, log);
  write_all(STDERR_FILENO, log);
  if (!code) {
    fmt::print(stderr, "{}\n", code.failure().message);
    return 10;
  }
  return write_all(output, *code) ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  // The output of libraries must not end up in the code object.
  const int output = dup(STDOUT_FILENO);
  dup2(STDERR_FILENO, STDOUT_FILENO);
  const int code = run(std::span(argv, static_cast<std::size_t>(argc)), output);
  std::fflush(nullptr);
  // Skips the destructors of compiler libraries, which are not needed at the end of the process.
  _exit(code);
}
