#include "tuner/cli/options/verified_kernels.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "runtime/device/system/input_file.hpp"
#include "runtime/device/system/log.hpp"
#include "runtime/device/system/output_file.hpp"
#include "runtime/device/text/hash.hpp"
#include "tuner/cli/program/known_operations.hpp"
#include "tuner/cli/program/paths.hpp"
#include "tuner/diagnose/comparison/case_sources.hpp"

namespace greta::tuner::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t most_bytes = std::uint64_t{64} << 20;

fs::path file_of_verified(const KernelFile& file) {
  std::error_code error;
  const fs::path path = fs::weakly_canonical(file.path, error);
  return default_cache_directory() / "verified" /
         fmt::format("{}-{}.json", file.description.name,
                     Hash().add(path.string()).hex().substr(0, 12));
}

/// Has the hash of the sources that failed last.
fs::path file_of_failed(const KernelFile& file) {
  return file_of_verified(file).replace_extension(".failed");
}

SourceFiles own_sources(const KernelFile& file) {
  return source_files(file.description, find_in(file.files));
}

/// Replaces a file. Throws Error or std::filesystem::filesystem_error.
void replace(const fs::path& to, const std::string& text) {
  fs::create_directories(to.parent_path());
  replace_file(to, text).value();
}

void remember(const KernelFile& file, bool verified) {
  try {
    const std::string text = nlohmann::json(own_sources(file)).dump();
    const std::string hash = Hash().add(text).hex();
    if (!verified) return replace(file_of_failed(file), hash);
    const auto failed = read_file(file_of_failed(file), most_bytes);
    if (!failed || *failed != hash) replace(file_of_verified(file), text);
  } catch (const std::exception& error) {  // no folder, or text that is not UTF-8
    log(LogLevel::warning, "{}: not kept as verified: {}", file.path.string(), error.what());
  }
}

void remember(const std::string& operation, bool verified) {
  for (const KernelFile& file : described_kernels()) {
    if (file.description.name == operation) remember(file, verified);
  }
}

}  // namespace

void remember_verified(const std::string& operation) {
  remember(operation, true);
}

void remember_failed(const std::string& operation) {
  remember(operation, false);
}

KnownGood last_verified(const KernelFile& file) {
  std::error_code error;
  const fs::path kept = file_of_verified(file);
  if (!fs::exists(kept, error)) return {};
  const auto text = read_file(kept, most_bytes);
  if (!text) return {};
  const auto json = nlohmann::json::parse(*text, nullptr, false);
  SourceFiles files;
  if (!json.is_object()) return {};
  for (const auto& [name, content] : json.items()) {
    if (!content.is_string()) return {};
    files[name] = content.get<std::string>();
  }
  return other_files("the version that passed verification last", std::move(files),
                     own_sources(file));
}

}  // namespace greta::tuner::cli
