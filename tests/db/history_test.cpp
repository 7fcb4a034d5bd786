// Protects: merging with trials carries sessions, trials, comparisons and the winners' sessions;
// merging again adds nothing, and a source that has grown adds what is new.

#include "db/history.hpp"

#include <gtest/gtest.h>

#include "db/merge.hpp"
#include "tests/db/fixture.hpp"
#include "tests/layers.hpp"

namespace greta::test::history_test {
namespace {

using Mode = TunedDb::Mode;

class History : public ::testing::Test {
 protected:
  TunedDb open(const std::string& name) {
    return TunedDb::open(folder_ / (name + ".db"), Mode::read_write);
  }
  /// Adds a session of these trials.
  static std::int64_t add(TunedDb& db, const std::vector<Trial>& trials, const char* outcome,
                          std::uint64_t seed = 1) {
    SessionRecord record = sample_session();
    record.seed = seed;
    const auto session = db.begin_session(record);
    for (const Trial& trial : trials) db.add_trial(session, trial);
    if (outcome == nullptr) return session;
    db.set_winner(session, sample_winner());
    db.set_finalists(session, sample_finalists());
    db.end_session(session, outcome);
    return session;
  }
  static HistoryMerge merge(TunedDb& into, const TunedDb& from) {
    static_cast<void>(into.merge(from.contents()));
    const HistoryMerge rehearsed = into.merge_history(from, true);
    const HistoryMerge merged = into.merge_history(from);
    EXPECT_EQ(rehearsed.sessions, merged.sessions);
    EXPECT_EQ(rehearsed.trials, merged.trials);
    EXPECT_TRUE(into.check().empty());
    return merged;
  }
  static std::vector<Trial> random_trials(int count, std::mt19937_64& random) {
    std::vector<Trial> trials;
    for (int i = 0; i < count; ++i) {
      trials.push_back(random_trial(random));
      trials.back().problem_key = sample_problem().key();
    }
    return trials;
  }

  TemporaryFolder folder_;
  std::mt19937_64 random_{3};
};

TEST_F(History, CarriesEveryTrialInOrder) {
  auto part = open("part"), all = open("all");
  const auto trials = random_trials(30, random_);
  add(all, random_trials(2, random_), "done", 9);
  add(part, trials, "done");
  const auto merged = merge(all, part);
  EXPECT_EQ(merged.sessions, 1);
  EXPECT_EQ(merged.trials, 30);
  const auto sessions = all.sessions();
  ASSERT_EQ(sessions.size(), 2U);
  const auto theirs = part.sessions().front();
  EXPECT_EQ(sessions[1].outcome, "done");
  EXPECT_EQ(sessions[1].provenance.started_utc, theirs.provenance.started_utc);
  const auto carried = all.trials(sessions[1].id), original = part.trials(theirs.id);
  ASSERT_EQ(carried.size(), 30U);
  for (std::size_t i = 0; i < carried.size(); ++i) {
    expect_equal(carried[i], original[i]);
    EXPECT_EQ(carried[i].recorded_utc, original[i].recorded_utc);
  }
  EXPECT_EQ(all.finalists(sessions[1].id), sample_finalists());
}

TEST_F(History, AgainAddsNothing) {
  auto part = open("part"), all = open("all");
  add(part, random_trials(5, random_), "done");
  add(part, random_trials(5, random_), "failed", 2);
  EXPECT_EQ(merge(all, part).trials, 10);
  for (int i = 0; i < 2; ++i) {
    const auto again = merge(all, part);
    EXPECT_EQ(again.sessions + again.trials + again.comparisons, 0);
    EXPECT_EQ(all.finalists(all.sessions().front().id), sample_finalists());
  }
  EXPECT_EQ(merge(part, all).sessions, 0);
}

TEST_F(History, TakesWhatARunningSessionHasAddedSince) {
  auto part = open("part"), all = open("all");
  const auto trials = random_trials(6, random_);
  add(part, {}, nullptr, 5);  // nothing happened in it
  const auto session = add(part, {trials[0], trials[1]}, nullptr);
  EXPECT_EQ(merge(all, part).sessions, 1);
  EXPECT_EQ(all.sessions().front().outcome, std::nullopt);
  for (std::size_t i = 2; i < trials.size(); ++i) part.add_trial(session, trials[i]);
  part.set_finalists(session, sample_finalists());
  part.end_session(session, "done");
  const auto merged = merge(all, part);
  EXPECT_EQ(merged.sessions, 0);
  EXPECT_EQ(merged.trials, 4);
  ASSERT_EQ(all.sessions().size(), 1U);
  EXPECT_EQ(all.sessions().front().outcome, "done");
  EXPECT_EQ(all.trials(all.sessions().front().id).size(), 6U);
  EXPECT_EQ(all.finalists(all.sessions().front().id), sample_finalists());
}

// Two machines may begin the same tune in the same second.
TEST_F(History, SessionsThatShareNoTrialAreDifferent) {
  auto part = open("part"), all = open("all");
  add(part, random_trials(3, random_), "done");
  add(all, random_trials(3, random_), "done");
  EXPECT_EQ(merge(all, part).sessions, 1);
  EXPECT_EQ(all.counts().trials, 6);
}

TEST_F(History, WinnersAndComparisonsReferToTheirSessions) {
  auto part = open("part"), all = open("all");
  add(all, random_trials(1, random_), nullptr, 7);  // so that ids differ
  const auto a = add(part, random_trials(3, random_), "done");
  SessionRecord record = sample_session();
  record.seed = 2;
  record.device.index += 1;
  const auto b = part.begin_session(record);
  part.add_trial(b, random_trials(1, random_).front());
  part.end_session(b, "done");
  part.set_comparison({a, b, 1.5, 1.4, 1.6, 0.95, {1, 2}, {2, 3}});
  EXPECT_EQ(merge(all, part).comparisons, 1);
  const auto winner = all.find_winner(sample_device().fingerprint(), sample_problem().key(), true);
  ASSERT_TRUE(winner);
  EXPECT_EQ(all.trials(winner->session).size(), 3U);
  EXPECT_NE(winner->session, a);
}

}  // namespace
}  // namespace greta::test::history_test
