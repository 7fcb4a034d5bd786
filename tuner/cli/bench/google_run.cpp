#include "tuner/cli/bench/google_run.hpp"

#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <random>
#include <string_view>
#include <utility>

#include "runtime/device/version.hpp"
#include "tuner/bench/compare.hpp"
#include "tuner/cli/bench/entries.hpp"
#include "tuner/cli/program/tool.hpp"
#include "tuner/measure/stopwatch.hpp"
#include "tuner/report/format.hpp"
#include "tuner/report/print.hpp"

namespace greta::tuner::cli {
namespace {

/// Shows the progress of a run on standard error: one updated line on a terminal, else a line for
/// each tenth.
class BlockProgress {
 public:
  explicit BlockProgress(int total) : total_(total), live_(isatty(STDERR_FILENO) != 0) {}
  ~BlockProgress() { show_below(stderr, {}); }
  BlockProgress(const BlockProgress&) = delete;
  BlockProgress& operator=(const BlockProgress&) = delete;

  void next(const std::string& name) {
    const int tenth = 10 * done_ / std::max(total_, 1);
    if (live_) {
      show_below(stderr, {fmt::format("{} of {} blocks: {}", done_, total_, name)});
    } else if (tenth > tenth_) {
      print(stderr, "{} % of {} blocks\n", 10 * tenth, total_);
    }
    tenth_ = tenth;
    ++done_;
  }
  /// More blocks are taken of `open` benchmarks, for at most `seconds`.
  void settles(std::size_t open, double seconds) const {
    const auto line = fmt::format("more blocks of {} with wide intervals, for up to {}",
                                  format_count(static_cast<std::int64_t>(open), "benchmark"),
                                  format_time(1e6 * seconds));
    if (live_) {
      show_below(stderr, {line});
    } else {
      print(stderr, "{}\n", line);
    }
  }

 private:
  int total_;
  bool live_;
  int done_ = 0;
  int tenth_ = 0;
};

/// Suppresses Google Benchmark's output: GRETA prints its table at the end.
class SilentReporter : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>&) override {}
};

// Any exception becomes the benchmark's failure.
template <typename Body>
auto caught(const Body& body) -> decltype(body()) {
  try {
    return body();
  } catch (const Error& error) {
    return Failure{error.status(), error.what(), {}};
  }
}

// Entries of the same computation are checked consecutively, so that inputs and reference are
// created once.
void check(GoogleRun& run, const GoogleRun::Entry& first, int index) {
  for (auto& entry : run.entries) {
    if (!entry.benchmark.check || entry.checked > index || entry.result.failure ||
        !same_computation(entry.benchmark.subject, first.benchmark.subject) ||
        !matches(run.filter, entry.name)) {
      continue;
    }
    entry.checked = index + 1;
    const auto checked = caught(
        [&]() -> Result<bool> { return check_benchmark(entry.benchmark, index, entry.result); });
    if (!checked) entry.result.failure = checked.failure();
  }
}

void keep(GoogleRun::Entry& entry, const std::vector<double>& samples) {
  Samples& taken = entry.result.samples;
  const auto& processor = entry.benchmark.processor;
  taken.blocks_us.push_back(samples);
  if (processor) taken.cpu_us.push_back(processor().samples_us);
  if (!entry.benchmark.control) return;
  const auto steady = caught([&] { return entry.benchmark.control(); });
  if (steady) taken.control_us.push_back(*steady);
  if (steady && processor) taken.cpu_control_us.push_back(processor().control_us);
}

// Checks the kernels that other processes will time, because each process times all of them.
void check_apart(GoogleRun& run) {
  const bool live = isatty(STDERR_FILENO) != 0;
  for (const auto& entry : run.entries) {
    if (*run.stop) break;
    if (!entry.benchmark.apart || !entry.benchmark.check) continue;
    if (live) show_below(stderr, {"checking " + entry.name});
    check(run, entry, 0);
  }
  if (live) show_below(stderr, {});
}

void announce(const GoogleRun& run, const std::vector<GoogleRun::Entry*>& entries) {
  if (run.announce) run.announce({entries.begin(), entries.end()});
}

void announce_all(GoogleRun& run) {
  std::vector<GoogleRun::Entry*> entries;
  for (auto& entry : run.entries) {
    if (!entry.result.failure && matches(run.filter, entry.name)) entries.push_back(&entry);
  }
  announce(run, entries);
}

// The maximum multiple of the planned number of blocks. Each one of a separate process costs the
// start of the process.
std::size_t most_blocks(const Benchmark& benchmark) {
  return benchmark.apart ? 2 : 4;
}

bool is_settled(const Benchmark& benchmark, const Samples& samples) {
  const bool by_process = benchmark.apart && !benchmark.processor;
  return by_process ? settled_in_processes(samples) : settled(samples);
}

// Takes more blocks of kernels whose intervals are still wide.
void settle(GoogleRun& run, const BlockProgress& progress, double seconds) {
  const Stopwatch watch;
  const auto planned =
      static_cast<std::size_t>(run.iterations) * static_cast<std::size_t>(run.runs);
  std::mt19937 random(1);
  bool told = seconds <= 0;
  std::vector<GoogleRun::Entry*> open;
  for (auto& entry : run.entries) {
    if (entry.benchmark.kind == Benchmark::Kind::kernel) open.push_back(&entry);
  }
  while (!open.empty()) {
    std::erase_if(open, [&](const GoogleRun::Entry* entry) {
      const Samples& taken = entry->result.samples;
      const auto blocks = taken.blocks_us.size();
      return blocks == 0 || entry->result.failure ||
             blocks >= most_blocks(entry->benchmark) * planned ||
             is_settled(entry->benchmark, taken);
    });
    if (!std::exchange(told, true) && !open.empty()) progress.settles(open.size(), seconds);
    announce(run, open);
    std::shuffle(open.begin(), open.end(), random);
    for (auto* entry : open) {
      if (*run.stop || watch.seconds() > seconds) return;
      const auto samples =
          caught([&]() -> Result<std::vector<double>> { return entry->benchmark.take(run.batch); });
      if (samples) {
        keep(*entry, *samples);
      } else {
        entry->result.failure = samples.failure();
      }
    }
  }
}

void set_counters(benchmark::State& state, const Benchmark& benchmark, const Verdict& verdict,
                  const std::vector<double>& samples) {
  double us = 0;
  for (const double sample : samples) us += sample / static_cast<double>(samples.size());
  if (us <= 0) return;
  if (benchmark.work.flops > 0) state.counters["TFLOPS"] = benchmark.work.flops / us / 1e6;
  if (benchmark.work.bytes > 0) state.counters["GBps"] = benchmark.work.bytes / us / 1e3;
  if (benchmark.roofline_us > 0) state.counters["roofline"] = benchmark.roofline_us / us;
  if (verdict.bound > 0) {
    state.counters["error"] = verdict.error;
    state.counters["bound"] = verdict.bound;
  }
}

// Google Benchmark requires the same number of iterations of all blocks of a benchmark, even after
// a failure.
void skip(benchmark::State& state, const std::string& why) {
  for (auto _ : state) state.SetIterationTime(1e-9);
  state.SkipWithError(why.c_str());
}

// A process that takes a block of each benchmark has taken blocks of some that were not asked for
// them yet. After an interrupt, those are kept of checked ones.
bool is_measured(const GoogleRun::Entry& entry, int count) {
  const Benchmark& benchmark = entry.benchmark;
  return benchmark.waiting && benchmark.waiting(count) && (entry.checked > 0 || !benchmark.check);
}

void run_block(benchmark::State& state, GoogleRun& run, GoogleRun::Entry& entry,
               BlockProgress& progress) {
  if (!*run.stop) progress.next(entry.name);
  auto& failure = entry.result.failure;
  const int count = static_cast<int>(std::min<std::int64_t>(state.max_iterations, 1'000));
  const bool interrupted = *run.stop;
  if (!failure && interrupted && !is_measured(entry, count)) {
    failure = Failure{Status::unavailable, "interrupted", {}};
  }
  if (!failure && !interrupted) check(run, entry, entry.blocks / run.iterations);
  if (!failure) ++entry.blocks;
  if (failure) {
    skip(state, failure->message);
    return;
  }
  auto samples =
      caught([&]() -> Result<std::vector<double>> { return entry.benchmark.take(count); });
  if (!samples) {
    failure = samples.failure();
    skip(state, failure->message);
    return;
  }
  keep(entry, *samples);
  std::size_t at = 0;
  for (auto _ : state) state.SetIterationTime((*samples)[at++ % samples->size()] * 1e-6);
  set_counters(state, entry.benchmark, entry.result.verdict, *samples);
}

void register_entries(GoogleRun& run, BlockProgress& progress) {
  const bool own_length = !given(run.flags, "--benchmark_min_time");
  const bool own_repetitions = !given(run.flags, "--benchmark_repetitions");
  benchmark::ClearRegisteredBenchmarks();
  for (auto& entry : run.entries) {
    auto* registered = benchmark::RegisterBenchmark(
        entry.name.c_str(),
        [&](benchmark::State& state) { run_block(state, run, entry, progress); });
    registered->UseManualTime()->Unit(benchmark::kMicrosecond);
    if (own_length) registered->Iterations(run.batch);
    if (own_repetitions) registered->Repetitions(run.iterations * run.runs);
  }
}

void initialize(const GoogleRun& run) {
  // Google Benchmark keeps the pointer to the first word for its reports.
  static std::string tool = "greta-bench";
  std::vector<std::string> words;
  if (!given(run.flags, "--benchmark_enable_random_interleaving")) {
    words.push_back(fmt::format("--benchmark_enable_random_interleaving={}", run.interleave));
  }
  words.insert(words.end(), run.flags.begin(), run.flags.end());
  words.emplace_back("--benchmark_color=false");  // they would be escaped
  std::vector<char*> pointers{tool.data()};
  for (auto& word : words) pointers.push_back(word.data());
  int count = static_cast<int>(pointers.size());
  // Called for invalid values, before Google Benchmark would end the process.
  const auto refuse = [] {
    throw CommandError(exit_usage, "--benchmark_…: a value that Google Benchmark does not take");
  };
  benchmark::Initialize(&count, pointers.data(), refuse);
  if (count > 1) {
    throw CommandError(exit_usage,
                       fmt::format("{}: Google Benchmark does not take that", pointers[1]));
  }
  if (!run.filter.empty()) benchmark::SetBenchmarkFilter(run.filter);
}

}  // namespace

std::string filter_of(const std::vector<std::string>& flags) {
  constexpr std::string_view name = "--benchmark_filter=";
  std::string filter;
  for (const auto& flag : flags) {
    if (flag.starts_with(name)) filter = flag.substr(name.size());
  }
  return filter == "all" ? "" : filter;
}

bool given(const std::vector<std::string>& flags, std::string_view name) {
  return std::any_of(flags.begin(), flags.end(), [&](const std::string& flag) {
    return std::string_view(flag).substr(0, flag.find('=')) == name;
  });
}

bool GoogleRun::run() {
  const bool own_filter = !filter.empty();
  if (!own_filter) filter = filter_of(flags);
  initialize(*this);
  BlockProgress progress(static_cast<int>(entries.size()) * iterations * runs);
  register_entries(*this, progress);
  static bool described = false;  // the context belongs to the process
  if (!std::exchange(described, true) && !entries.empty()) {
    benchmark::AddCustomContext("greta_version", std::string(version()));
    const Subject& subject = entries.front().benchmark.subject;
    benchmark::AddCustomContext("device", subject.backend + " " + subject.device);
    benchmark::AddCustomContext("driver", subject.driver);
  }
  const bool own_output =
      given(flags, "--benchmark_format") || given(flags, "--benchmark_list_tests");
  SilentReporter silent;
  if (!given(flags, "--benchmark_list_tests")) {
    check_apart(*this);
    announce_all(*this);
  }
  const Stopwatch watch;
  const auto matched =
      own_output ? benchmark::RunSpecifiedBenchmarks() : benchmark::RunSpecifiedBenchmarks(&silent);
  benchmark::ClearRegisteredBenchmarks();
  if (matched == 0) {
    throw CommandError(exit_usage, fmt::format("--{} {}: matches no benchmark",
                                               own_filter ? "filter" : "benchmark_filter",
                                               benchmark::GetBenchmarkFilter()));
  }
  // No more blocks are taken if their number was given, or if each would load its operands anew.
  const bool fixed = given(flags, "--benchmark_min_time") ||
                     given(flags, "--benchmark_repetitions") ||
                     given(flags, "--benchmark_list_tests") || !interleave;
  if (!fixed) settle(*this, progress, std::min(settle_s, 1.75 * watch.seconds()));
  return !own_output;
}

}  // namespace greta::tuner::cli
