#include "tuner/evaluate/worker_environment.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "runtime/device/result.hpp"

extern char** environ;  // NOLINT(readability-redundant-declaration)

namespace greta::tuner {
namespace {

std::string_view name_of(std::string_view variable) {
  return variable.substr(0, variable.find('='));
}

}  // namespace

WorkerErrors::WorkerErrors() : file_(memfd_create("errors of a worker", MFD_CLOEXEC)) {
  if (file_ < 0) throw Error("no memory for the messages of a worker process");
}

WorkerErrors::~WorkerErrors() {
  close(file_);
}

std::string WorkerErrors::text() const {
  // The worker shares this descriptor's file offset for its writes, so the offset must not change.
  std::string text(static_cast<std::size_t>(std::max<off_t>(lseek(file_, 0, SEEK_CUR), 0)), '\0');
  const ssize_t n = pread(file_, text.data(), text.size(), 0);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
  return text;
}

std::vector<std::string> environment_with(const std::vector<std::string>& variables) {
  std::vector<std::string> environment;
  for (char** inherited = environ; *inherited != nullptr; ++inherited) {
    const bool replaced = std::any_of(
        variables.begin(), variables.end(),
        [&](const std::string& variable) { return name_of(variable) == name_of(*inherited); });
    if (!replaced) environment.emplace_back(*inherited);
  }
  environment.insert(environment.end(), variables.begin(), variables.end());
  return environment;
}

}  // namespace greta::tuner
