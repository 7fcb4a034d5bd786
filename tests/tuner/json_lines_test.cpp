// Protects: the stream of events for programs. Each line is one JSON object with the fields of
// docs/json.md, and a reader that goes away ends the stream and nothing else.

#include "tuner/report/json_lines.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/temporary_folder.hpp"
#include "tests/tuner/session_fixture.hpp"
#include "tuner/report/card_view.hpp"
#include "tuner/report/format.hpp"

namespace greta::test::json_lines_test {
namespace {

using nlohmann::json;

/// Tunes a problem while its events are written as lines, and returns them.
class JsonLinesTest : public SessionTest {
 protected:
  class Passing final : public SessionObserver {
   public:
    Passing(JsonLines& lines, const DeviceInfo& device) : lines_(lines), device_(device) {}
    void on_phase(const std::string& what) override { lines_.on_phase(device_, what); }
    void on_trial(const SessionResult& result, const Budget& budget) override {
      lines_.on_trial(result, budget);
    }

   private:
    JsonLines& lines_;
    const DeviceInfo& device_;
  };

  std::vector<json> tune_and_read() {
    const auto file = folder_ / "lines";
    std::FILE* const stream = std::fopen(file.c_str(), "w");
    {
      JsonLines lines(stream);
      write_run(lines);
    }
    std::fclose(stream);
    std::vector<json> events;
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);) events.push_back(json::parse(line));
    return events;
  }
  void write_run(JsonLines& lines) {
    const DeviceInfo device = evaluator_.device();
    lines.on_resume({1, 7, "2026-01-01T00:00:00Z"});
    lines.on_run({{device}, 1, 1});
    lines.on_session({problem_, {device}, 1});
    SessionOptions options;
    options.budget = Budget::trials_of(30);
    Passing observer(lines, device);
    const std::atomic<bool> stop = false;
    result_ = tune(evaluator_, db_, problem_, options, observer, stop);
    lines.on_session_end(result_);
    lines.warn("careful");
    lines.end(true, false, "");
  }

  SessionResult result_;
};

TEST_F(JsonLinesTest, StreamsEachTrial) {
  evaluator_.fails = [](const Config& config) {
    return config.hash() % 5 == 0 ? std::optional(Status::correctness) : std::nullopt;
  };
  const auto events = tune_and_read();
  std::vector<json> trials;
  double before = 0;
  for (const json& event : events) {
    EXPECT_GE(event.at("seconds").get<double>(), before);
    before = event.at("seconds").get<double>();
    if (event.at("event") == "trial") trials.push_back(event);
  }
  ASSERT_EQ(trials.size(), result_.trials.size());
  for (std::size_t i = 0; i < trials.size(); ++i) {
    const Trial& trial = result_.trials[i];
    EXPECT_EQ(trials[i].at("number"), i + 1);
    EXPECT_EQ(trials[i].at("config"), trial.config.text());
    EXPECT_EQ(trials[i].at("status"), trial.ok() ? "ok" : "correctness");
    EXPECT_EQ(trials[i].at("median_us").is_null(), !trial.ok());
    for (const char* field :
         {"problem", "device", "session", "ran", "card", "message", "low_us", "high_us", "raced",
          "error", "bound", "compile_s", "verify_s", "measure_s", "best_us", "budget_used"}) {
      EXPECT_TRUE(trials[i].contains(field)) << field;
    }
  }
  EXPECT_EQ(events.front().at("event"), "resume");
  EXPECT_EQ(events.front().at("seed"), 7);
  EXPECT_EQ(events[1].at("event"), "run");
  EXPECT_EQ(events[1].at("format"), "greta-tune lines 1");
  EXPECT_EQ(events[1].at("cards").at(0).at("device"), evaluator_.device().id());
  EXPECT_EQ(events.back().at("event"), "end");
  EXPECT_EQ(events.back().at("all_won"), true);
  const json& warning = events[events.size() - 2];
  EXPECT_EQ(warning.at("text"), "careful");
  const json& end = events[events.size() - 3];
  EXPECT_EQ(end.at("event"), "session_end");
  EXPECT_EQ(end.at("winner").at("config"), result_.winner->config.text());
  EXPECT_EQ(end.at("winner").at("speedup"), result_.winner->speedup);
}

TEST_F(JsonLinesTest, AReaderThatGoesAwayEndsOnlyTheStream) {
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  std::FILE* const stream = fdopen(ends[1], "w");
  close(ends[0]);
  {
    JsonLines lines(stream);
    write_run(lines);
  }
  EXPECT_TRUE(result_.winner);
  EXPECT_EQ(std::ferror(stream), 0);
  std::fclose(stream);
  std::signal(SIGPIPE, before);
}

/// The display of a run on three cards: two share a problem.
class CardViewTest : public SessionTest {
 protected:
  CardViewTest() {
    for (int i = 0; i < 3; ++i) {
      cards_.push_back(evaluator_.device());
      cards_.back().index = i;
      cards_.back().card.uuid = "uuid" + std::to_string(i);
    }
    view_.begin(RunStart{cards_, 5, 1}, at(0));
    view_.begin(SessionStart{problem_, {cards_[0], cards_[1]}, 1}, at(0));
    result_.problem = problem_;
    result_.device = cards_[0];
    result_.work = built_in("gemm").work(problem_);
    result_.ceilings = {{"copy_gbps", 4000, 1, "", ""}, {"fma_f32_gflops", 50000, 1, "", ""}};
    budget_.start(1000);
  }
  static CardView::Clock::time_point at(int seconds) {
    return CardView::Clock::time_point(std::chrono::seconds(seconds));
  }
  void add_trial(int card, double us, int seconds) {
    Trial trial;
    trial.problem_key = problem_.key();
    trial.config = default_config();
    trial.card = cards_[static_cast<std::size_t>(card)].card.uuid;
    trial.measurement.median_us = us;
    result_.trials.push_back(trial);
    budget_.count_trial();
    view_.add_trial(result_, budget_, at(seconds));
  }

  std::vector<DeviceInfo> cards_;
  CardView view_;
  SessionResult result_;
  Budget budget_ = Budget::trials_of(100);
};

TEST_F(CardViewTest, HasALineForEachCard) {
  view_.set_phase(cards_[2], "measuring a peak");
  for (int i = 0; i < 6; ++i) add_trial(i % 3 == 2 ? 1 : 0, 30 - i, i + 1);
  view_.lose("vulkan:2: the device does not answer");
  const auto lines = view_.lines(200, at(6));
  ASSERT_EQ(lines.size(), 5U);
  EXPECT_EQ(lines[0], "0 of 5 problems done, 6 trials, 1.0 a second");
  EXPECT_NE(lines[2].find("vulkan:0"), std::string::npos);
  EXPECT_NE(lines[2].find(" 4 "), std::string::npos) << lines[2];
  EXPECT_NE(lines[3].find(" 2 "), std::string::npos) << lines[3];
  for (const auto& line : {lines[2], lines[3]}) {
    EXPECT_NE(line.find("25.0 µs"), std::string::npos) << line;
    EXPECT_NE(line.find(" %"), std::string::npos) << line;
    EXPECT_NE(line.find(problem_.key()), std::string::npos) << line;
  }
  EXPECT_NE(lines[4].find("lost"), std::string::npos) << lines[4];
  view_.end(result_);
  EXPECT_EQ(view_.lines(200, at(6))[0].find("1 of 5 problems done"), 0U);
}

TEST_F(CardViewTest, FitsTheTerminal) {
  for (int i = 0; i < 6; ++i) add_trial(0, 30 - i, i + 1);
  for (const std::size_t columns : {40U, 60U, 80U, 120U}) {
    for (const auto& line : view_.lines(columns, at(6))) {
      EXPECT_LE(text_columns(line), columns) << line;
    }
  }
}

}  // namespace
}  // namespace greta::test::json_lines_test
