#include "tuner/cli/program/gemm_logs.hpp"

#include <fmt/format.h>

#include <fstream>
#include <sstream>

#include "runtime/device/system/input_file.hpp"
#include "tuner/bench/preset.hpp"
#include "tuner/cli/program/tool.hpp"

namespace greta::tuner::cli {

GemmLog load_gemm_log(const std::filesystem::path& file) {
  auto text = read_file(file, most_tunableop_bytes);
  if (!text) throw CommandError(exit_usage, text.failure().message);
  std::istringstream in(*std::move(text));
  GemmLog log = read_gemm_log(in);
  if (!log.peers.empty()) return log;
  const std::string why = log.untranslated.empty() ? "has no rows"
                                                   : fmt::format("no row can be converted; {}: {}",
                                                                 log.untranslated.front().row,
                                                                 log.untranslated.front().reason);
  throw CommandError(exit_usage, fmt::format("{}: {}", file.string(), why));
}

void check_new_file(const std::string& option, const std::filesystem::path& file) {
  if (!std::filesystem::exists(file)) return;
  throw CommandError(exit_usage, fmt::format("{} {}: exists", option, file.string()));
}

void write_preset(const std::string& option, const std::filesystem::path& file,
                  const GemmLog& log) {
  check_new_file(option, file);
  std::vector<Problem> problems;
  for (const Peer& peer : log.peers) problems.push_back(peer.problem);
  std::ofstream out(file);
  out << preset_text(file.stem().string(), "GEMMs that " + log.tool + " recorded", problems);
  out.close();
  if (!out) {
    throw CommandError(exit_failed, fmt::format("{} {}: can't be written", option, file.string()));
  }
}

}  // namespace greta::tuner::cli
