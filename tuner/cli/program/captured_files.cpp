#include "tuner/cli/program/captured_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "runtime/device/system/input_file.hpp"
#include "runtime/pipeline/compute/capture.hpp"
#include "tuner/cli/program/tool.hpp"
#include "tuner/interchange/blas_capture.hpp"
#include "tuner/report/format.hpp"
#include "tuner/report/print.hpp"

namespace greta::tuner::cli {
namespace {

std::string calls_text(std::uint64_t count) {
  return format_count(static_cast<std::int64_t>(count), "call");
}

/// Adds up captures.
class Sum {
 public:
  Sum(const Catalog& catalog, std::string_view verb, bool quiet)
      : catalog_(catalog), verb_(verb), quiet_(quiet) {}

  void add_file(const std::string& file) {
    auto text = read_file(file, most_capture_bytes);
    if (!text) throw CommandError(exit_usage, text.failure().message);
    if (is_blas_capture(*text)) {
      add_blas(file, *text);
    } else {
      add_runtime(file);
    }
  }

  CapturedWork take() { return std::move(work_); }

 private:
  void add(const Problem& problem, double us) {
    const auto [found, is_new] = known_.emplace(problem.key(), work_.problems.size());
    if (is_new) {
      work_.problems.push_back({problem, us});
    } else {
      work_.problems[found->second].us += us;
    }
  }

  void add_runtime(const std::string& file) {
    const auto capture = read_capture(file, catalog_);
    if (!capture) throw CommandError(exit_usage, capture.failure().message);
    work_.devices.emplace_back(capture->device, capture->fingerprint);
    for (const CapturedProblem& each : capture->problems) {
      // Without times, problems that ran more often come first.
      add(each.problem, each.device_us > 0 ? each.device_us : static_cast<double>(each.count));
    }
  }

  void add_blas(const std::string& file, const std::string& text) {
    const Operation& gemm = catalog_.at("gemm");
    const auto capture = read_blas_capture(file, text, gemm);
    if (!capture) throw CommandError(exit_usage, capture.failure().message);
    std::uint64_t calls = capture->uncounted, tuned = 0;
    std::size_t rows = 0;
    for (const BlasCapture::Row& row : capture->rows) {
      calls += row.count;
      if (row.problem) {
        ++rows, tuned += row.count;
        const double us = row.us > 0 ? row.us : estimated_us(gemm, *row.problem);
        add(*row.problem, static_cast<double>(row.count) * us);
      } else {
        work_.not_tuned.push_back({file, row.call, row.reason, row.line, row.count});
      }
    }
    if (quiet_) return;
    print(stderr, "{}: {} of {} of {} can be {}d, in {} of {}\n", file, rows,
          format_count(static_cast<std::int64_t>(capture->rows.size()), "GEMM"), capture->program,
          verb_, tuned, calls_text(calls));
    if (capture->uncounted > 0) {
      print(stderr, "{}: {} were not recorded, as there were too many shapes\n", file,
            calls_text(capture->uncounted));
    }
  }

  const Catalog& catalog_;
  std::string_view verb_;
  bool quiet_;
  CapturedWork work_;
  std::map<std::string, std::size_t> known_;  ///< problem → place in the list
};

/// Prints each reason once, the one with most calls first, and an example.
void report_not_tuned(const CapturedWork& work, std::string_view verb) {
  struct Group {
    const NotTuned* example;
    std::size_t rows = 0;
    std::uint64_t calls = 0;
  };
  std::map<std::string, Group> groups;
  for (const NotTuned& each : work.not_tuned) {
    Group& group = groups.try_emplace(each.reason, Group{&each}).first->second;
    if (each.count > group.example->count) group.example = &each;
    ++group.rows, group.calls += each.count;
  }
  std::vector<std::pair<std::string, Group>> list(groups.begin(), groups.end());
  std::stable_sort(list.begin(), list.end(),
                   [](const auto& a, const auto& b) { return a.second.calls > b.second.calls; });
  for (const auto& [reason, group] : list) {
    print(stderr, "not {}d: {} in {}: {} ({}, line {}: {})\n", verb,
          format_count(static_cast<std::int64_t>(group.rows), "GEMM"), calls_text(group.calls),
          reason, group.example->file, group.example->line, group.example->call);
  }
}

}  // namespace

CapturedWork read_captured(const std::vector<std::string>& files, const Catalog& catalog,
                           std::string_view verb, bool quiet) {
  Sum sum(catalog, verb, quiet);
  for (const std::string& file : files) sum.add_file(file);
  CapturedWork work = sum.take();
  report_not_tuned(work, verb);
  if (work.problems.empty()) {
    throw CommandError(exit_usage, fmt::format("{}: has no problems to {}", files.front(), verb));
  }
  return work;
}

nlohmann::json not_tuned_json(const CapturedWork& work) {
  nlohmann::json list = nlohmann::json::array();
  for (const NotTuned& each : work.not_tuned) {
    list.push_back({{"file", each.file},
                    {"line", each.line},
                    {"call", each.call},
                    {"count", each.count},
                    {"reason", each.reason}});
  }
  return list;
}

}  // namespace greta::tuner::cli
