#include "tuner/interchange/gemm_log.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <istream>
#include <limits>
#include <sstream>

#include "tuner/interchange/blas_capture.hpp"
#include "tuner/interchange/gemm_log_rows.hpp"

namespace greta::tuner {
namespace {

using gemm_log::Fields;

bool is_tunableop(const std::string& line) {
  const std::string first = line.substr(0, line.find(','));
  return line.find(',') != std::string::npos &&
         (first == "Validator" || first.find("TunableOp") != std::string::npos);
}

/// Whether a line names the columns of AITER's tables.
bool is_aiter(const std::string& line) {
  const auto names = gemm_log::columns(line);
  const auto has = [&](const char* name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  return has("M") && has("N") && has("K");
}

bool is_bench_header(const std::string& line) {
  return line.find("transA,transB,") != std::string::npos;
}

/// Whether a line has a problem of hipblaslt-bench.
bool is_bench(const std::string& line) {
  return line.find("hipblaslt-bench ") != std::string::npos || is_bench_header(line) ||
         (line.find("function:") != std::string::npos && line.find("matmul") != std::string::npos);
}

/// Adds a row's problem, or the reason why there is none.
void add(GemmLog& log, std::size_t number, const Result<Fields>& fields,
         const std::function<Result<Peer>(const Fields&)>& translate) {
  auto peer = fields ? translate(*fields) : Result<Peer>(fields.failure());
  if (!peer) {
    log.untranslated.push_back({fmt::format("line {}", number), peer.failure().message});
    return;
  }
  log.assumed_packed += fields->contains("lda") || log.tool == "AITER" ? 0 : 1;
  log.peers.push_back(*std::move(peer));
}

void read_aiter(const std::vector<std::string>& lines, GemmLog& log) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].empty()) continue;
    if (is_aiter(lines[i])) {
      names = gemm_log::columns(lines[i]);
      continue;
    }
    add(log, i + 1, gemm_log::table_row(names, lines[i]), gemm_log::aiter_gemm);
  }
}

void read_bench(const std::vector<std::string>& lines, GemmLog& log) {
  std::vector<std::string> names;  // of the results that follow
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string& line = lines[i];
    if (const auto header = line.find("transA,transB,"); header != std::string::npos) {
      names = gemm_log::columns(line.substr(header));
    } else if (!names.empty()) {
      add(log, i + 1, gemm_log::table_row(names, line), gemm_log::hipblaslt_gemm);
      names.clear();
    } else if (line.find("hipblaslt-bench ") != std::string::npos) {
      add(log, i + 1, gemm_log::command_line(line), gemm_log::hipblaslt_gemm);
    } else if (is_bench(line)) {
      add(log, i + 1, gemm_log::yaml_problem(line), gemm_log::hipblaslt_gemm);
    }
  }
}

/// Reads a capture of libgreta-capture.so, whose times are those within a program, and no peer's.
GemmLog read_captured_calls(const std::string& text) {
  GemmLog log;
  log.tool = captured_calls_tool;
  const auto capture = read_blas_capture("the capture", text, Catalog::built_in().at("gemm"));
  if (!capture) {
    log.untranslated.push_back({"its calls", capture.failure().message});
    return log;
  }
  for (const BlasCapture::Row& row : capture->rows) {
    if (!row.problem) {
      log.untranslated.push_back({fmt::format("line {}", row.line), row.reason});
      continue;
    }
    Peer& peer = log.peers.emplace_back();
    peer.problem = *row.problem;
    peer.us = std::numeric_limits<double>::quiet_NaN();
  }
  return log;
}

}  // namespace

GemmLog read_gemm_log(std::istream& in) {
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    lines.push_back(std::move(line));
  }
  const auto any = [&](bool (*is)(const std::string&)) {
    return std::any_of(lines.begin(), lines.end(), is);
  };
  GemmLog log;
  if (const std::string text = fmt::format("{}\n", fmt::join(lines, "\n")); is_blas_capture(text)) {
    log = read_captured_calls(text);
  } else if (any(is_bench)) {
    log.tool = "hipblaslt-bench";
    read_bench(lines, log);
  } else if (any(is_aiter)) {
    log.tool = "AITER";
    read_aiter(lines, log);
  } else if (any(is_tunableop)) {
    std::istringstream again(fmt::format("{}\n", fmt::join(lines, "\n")));
    TunableOpFile file = read_tunableop(again);
    return {tunableop_library, std::move(file.peers), std::move(file.untranslated),
            file.assumed_packed};
  } else if (!lines.empty()) {
    log.untranslated.push_back(
        {"line 1",
         "not a row of PyTorch TunableOp, AITER, hipblaslt-bench or libgreta-capture.so"});
  }
  for (Peer& peer : log.peers) peer.library = log.tool;
  return log;
}

}  // namespace greta::tuner
