#include "tuner/remote/remote_build.hpp"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <set>
#include <sstream>

#include "runtime/device/system/input_file.hpp"
#include "runtime/device/system/process.hpp"
#include "runtime/device/text/hash.hpp"

namespace greta::tuner {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::minutes build_patience{10};
constexpr std::uint64_t most_file_bytes = std::uint64_t{4} << 30;

Failure no_build(const std::string& message) {
  return {Status::io, message, {}};
}

/// Runs a program of this machine.
Result<std::string> run_here(const std::vector<std::string>& words, const std::string& input = {}) {
  auto outcome = device::run_process(words, input, build_patience);
  if (!outcome) return no_build(outcome.failure().message);
  if (!outcome->ok()) {
    return no_build(fmt::format("{} {}: {}", words.front(), outcome->how_it_ended(build_patience),
                                outcome->last_error_line()));
  }
  return std::move(outcome->output);
}

/// Copies a program or a library, without symbols where strip is installed.
void copy_stripped(const fs::path& from, const fs::path& to) {
  const auto stripped =
      device::run_process({"strip", "-o", to.string(), from.string()}, "", build_patience);
  if (!stripped || !stripped->ok()) {
    fs::copy_file(from, to, fs::copy_options::overwrite_existing);
  }
  fs::permissions(to, fs::perms::owner_all | fs::perms::group_read | fs::perms::group_exec);
}

/// Whether a library belongs to the C library, which each system has its own of.
bool is_of_system(const std::string& name) {
  for (const char* const own : {"libc.so", "libm.so", "libpthread.so", "libdl.so", "librt.so",
                                "libresolv.so", "libutil.so", "ld-linux", "ld64", "linux-vdso"}) {
    if (name.starts_with(own)) return true;
  }
  return false;
}

/// Returns the libraries that a program loads at its start: lines "NAME => PATH (ADDRESS)".
Result<std::set<fs::path>> libraries_of(const fs::path& program) {
  auto listed = run_here({"env", "LD_TRACE_LOADED_OBJECTS=1", program.string()});
  if (!listed) return listed.failure();
  std::set<fs::path> found;
  std::istringstream lines(*listed);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name, arrow, path;
    words >> name >> arrow >> path;
    if (arrow == "=>" && path.starts_with('/') && !is_of_system(name)) found.insert(path);
  }
  return found;
}

/// Returns what uname -m says on machines that run a program.
Result<std::string> architecture_of(const fs::path& program) {
  auto file = device::InputFile::open(program);
  if (!file) return file.failure();
  auto text = file->read(most_file_bytes);
  if (!text) return text.failure();
  Elf64_Ehdr header{};
  if (text->size() < sizeof header) return no_build(program.string() + ": is not a program");
  std::memcpy(&header, text->data(), sizeof header);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
    return no_build(program.string() + ": is not a program");
  }
  switch (header.e_machine) {
    case EM_X86_64:
      return std::string("x86_64");
    case EM_AARCH64:
      return std::string("aarch64");
    case EM_RISCV:
      return std::string("riscv64");
    case EM_PPC64:
      return std::string("ppc64le");
    default:
      return fmt::format("machine {} of ELF", header.e_machine);
  }
}

void copy_files(const fs::path& from, const fs::path& to, const std::string& extension) {
  std::error_code ignored;
  if (!fs::is_directory(from, ignored)) return;
  for (const auto& entry : fs::recursive_directory_iterator(from)) {
    if (!entry.is_regular_file() || entry.path().extension() != extension) continue;
    const fs::path target = to / fs::relative(entry.path(), from);
    fs::create_directories(target.parent_path());
    fs::copy_file(entry.path(), target);
  }
}

/// Hashes all files in the order of their names.
Result<void> hash_files(RemoteBuild& build) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(build.folder.path())) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  device::Hash hash;
  for (const fs::path& file : files) {
    auto text = device::read_file(file, most_file_bytes);
    if (!text) return text.failure();
    build.bytes += text->size();
    hash.add(fs::relative(file, build.folder.path()).string()).add(*text);
  }
  build.hash = hash.hex();
  return {};
}

Result<void> fill(const fs::path& prefix, const fs::path& to) {
  for (const char* const folder : {"bin", "lib", "libexec/greta"}) {
    fs::create_directories(to / folder);
  }
  std::set<fs::path> libraries;
  for (const char* const name :
       {"bin/greta-tune", "bin/greta-bench", "libexec/greta/greta-compile-helper"}) {
    if (!fs::exists(prefix / name)) continue;
    auto needed = libraries_of(prefix / name);
    if (!needed) return needed.failure();
    libraries.insert(needed->begin(), needed->end());
    copy_stripped(prefix / name, to / name);
  }
  for (const fs::path& library : libraries) {
    copy_stripped(fs::canonical(library), to / "lib" / library.filename());
  }
  // Where it was built, the presets are those of the folder in which the tool runs.
  const fs::path installed = prefix / "share/greta/presets";
  copy_files(fs::exists(installed) ? installed : fs::path("presets"), to / "share/greta/presets",
             ".json");
  copy_files(prefix / "share/greta/tuned", to / "share/greta/tuned", ".db");
  return {};
}

}  // namespace

Result<RemoteBuild> collect_build(const fs::path& prefix) {
  if (!fs::exists(prefix / "bin/greta-tune")) {
    return no_build(fmt::format("{}: has no bin/greta-tune", prefix.string()));
  }
  auto folder = device::TemporaryFolder::make("greta-remote");
  if (!folder) return folder.failure();
  try {
    if (auto filled = fill(prefix, folder->path()); !filled) return filled.failure();
    RemoteBuild build{*std::move(folder), {}, 0, {}};
    auto architecture = architecture_of(build.folder.path() / "bin/greta-tune");
    if (!architecture) return architecture.failure();
    build.architecture = *architecture;
    if (auto hashed = hash_files(build); !hashed) return hashed.failure();
    return build;
  } catch (const fs::filesystem_error& error) {
    return no_build(fmt::format("{}: {}", error.path1().string(), error.code().message()));
  }
}

Result<std::string> archive_of(const fs::path& folder) {
  return run_here({"tar", "-C", folder.string(), "-czf", "-", "."});
}

Result<void> extract(const std::string& archive, const fs::path& folder) {
  auto extracted = run_here({"tar", "-C", folder.string(), "-xzf", "-"}, archive);
  if (!extracted) return extracted.failure();
  return {};
}

}  // namespace greta::tuner
