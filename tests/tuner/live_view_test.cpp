// Protects: the live display fits a terminal of any usual width, divides no word and no number, and
// shows what is known; on a stream that is not a terminal, lines are printed.

#include "tuner/report/live_view.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <sstream>

#include "runtime/device/hardware/architectures.hpp"
#include "tests/catalog.hpp"
#include "tests/temporary_folder.hpp"
#include "tuner/report/format.hpp"
#include "tuner/report/progress.hpp"

namespace greta::test::live_view_test {
namespace {

Trial trial(const std::string& key, const Config& config, double us) {
  Trial one;
  one.problem_key = key;
  one.config = config;
  one.measurement.median_us = us;
  one.measurement.low_us = 0.95 * us;
  one.measurement.high_us = 1.05 * us;
  return one;
}

/// A session with a default, a faster candidate and two failures.
SessionResult session() {
  SessionResult result;
  result.problem = Problem::parse("gemm dtype=f16 out=f16 layout=nt m=4096 n=4096 k=4096").value();
  const Operation& gemm = built_in("gemm");
  result.work = gemm.work(result.problem);
  result.device = architecture_info("gfx942").value();
  result.default_config = gemm.default_config(result.problem, result.device);
  const auto key = result.problem.key();
  result.trials.push_back(trial(key, result.default_config, 2000));
  Config other = result.default_config;
  other.variant = "other";
  for (const Status status : {Status::correctness, Status::timeout}) {
    result.trials.push_back(trial(key, other, 0));
    result.trials.back().failure = status;
  }
  result.trials.push_back(trial(key, other, 1000));
  return result;
}

LiveView view() {
  LiveView view;
  const SessionResult result = session();
  view.problem = result.problem.key();
  view.device = "hip:0 AMD Instinct MI300X";
  view.phase = "searching 914944 configurations";
  Budget budget = Budget::seconds(60);
  budget.start(914944);
  update(view, result, budget);
  return view;
}

std::string words_of(const std::string& text) {
  std::istringstream stream(text);
  std::string word, all;
  while (stream >> word) all += word + " ";
  return all;
}

TEST(LiveView, FitsEveryWidthAndKeepsEveryWord) {
  const LiveView shown = view();
  const std::string all = words_of(
      "problem " + shown.problem + " device " + shown.device + " phase " + shown.phase + " time " +
      shown.time + " trials " + shown.trials + " best " + shown.best + " config " + shown.config);
  for (const std::size_t columns : {60U, 80U, 120U, 200U}) {
    std::string text;
    for (const auto& line : live_lines(shown, columns)) {
      EXPECT_LE(text_columns(line), columns) << line;
      text += line + " ";
    }
    EXPECT_EQ(words_of(text), all) << columns;
  }
}

TEST(LiveView, CountsTrialsByReasonAndComparesWithTheDefault) {
  const LiveView shown = view();
  EXPECT_EQ(shown.trials, "2 of 4 passed, 1 correctness, 1 timeout");
  EXPECT_NE(shown.best.find("1.00 ms ± 5 %"), std::string::npos) << shown.best;
  EXPECT_NE(shown.best.find("2.00× the default (1.81 to 2.21, not certified)"), std::string::npos)
      << shown.best;
  EXPECT_EQ(shown.best.find("roofline"), std::string::npos) << "no peaks are known";
  EXPECT_NE(shown.time.find("s left of 60s, with certification"), std::string::npos) << shown.time;
}

TEST(LiveView, SaysThatNothingHasPassedYet) {
  SessionResult result = session();
  result.trials.erase(result.trials.begin());
  result.trials.pop_back();
  LiveView shown;
  Budget budget = Budget::trials_of(10);
  budget.start(100);
  update(shown, result, budget);
  EXPECT_EQ(shown.best, "no candidate has passed yet");
  EXPECT_EQ(shown.trials, "0 of 2 passed, 1 correctness, 1 timeout");
  EXPECT_EQ(shown.config, "");
}

/// Returns what a session's progress prints to a file.
std::string printed(Verbosity verbosity) {
  const TemporaryFolder folder;
  const auto file = folder / "progress";
  std::FILE* const stream = std::fopen(file.c_str(), "w+");
  {
    Progress progress(stream, verbosity);
    SessionResult result = session();
    const auto trials = std::exchange(result.trials, {});
    Budget budget = Budget::trials_of(100);
    budget.start(1000);
    progress.on_session(result.problem, result.device, 1);
    progress.on_phase("searching");
    for (const Trial& one : trials) {
      result.trials.push_back(one);
      budget.count_trial();
      progress.on_trial(result, budget);
    }
  }
  std::rewind(stream);
  std::string text;
  for (int c = 0; (c = std::fgetc(stream)) != EOF;) text += static_cast<char>(c);
  std::fclose(stream);
  return text;
}

TEST(Progress, IsLinesWhereThereIsNoTerminal) {
  const std::string normal = printed(Verbosity::normal);
  EXPECT_EQ(std::count(normal.begin(), normal.end(), '\n'), 3)
      << normal;  // phase, two improvements
  EXPECT_EQ(normal.find('\x1b'), std::string::npos);
  EXPECT_NE(normal.find("other"), std::string::npos);
  const std::string verbose = printed(Verbosity::verbose);
  EXPECT_EQ(std::count(verbose.begin(), verbose.end(), '\n'), 5) << verbose;
  EXPECT_NE(verbose.find("trial 2, other"), std::string::npos) << verbose;
  EXPECT_NE(verbose.find(": correctness: "), std::string::npos) << verbose;
  EXPECT_EQ(printed(Verbosity::quiet), "");
}

}  // namespace
}  // namespace greta::test::live_view_test
