// Protects: everything that is stored is read back unchanged, and later results replace only those
// of the same circumstances.

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

#include "db/sqlite/connection.hpp"
#include "db/sqlite/rows.hpp"
#include "db/sqlite/winner_rows.hpp"
#include "db/winner_source.hpp"
#include "tests/db/fixture.hpp"
#include "tests/layers.hpp"

namespace greta::test::round_trip_test {
namespace {

TunedDb open(const std::filesystem::path& file) {
  return TunedDb::open(file, TunedDb::Mode::read_write);
}

TEST(RoundTrip, EveryTrialComesBackAsItWas) {
  const TemporaryFolder folder;
  std::mt19937_64 random(7);
  std::vector<Trial> trials;
  for (int i = 0; i < 200; ++i) trials.push_back(random_trial(random));
  trials.push_back(Trial{});
  trials.back().log = "a compiler's bytes: \xff\xfe";

  std::int64_t session = 0;
  {
    auto db = open(folder / "new/folder/t.db");
    session = db.begin_session(sample_session());
    const auto other = db.begin_session(sample_session());
    for (const auto& trial : trials) {
      db.add_trial(session, trial);
      db.add_trial(other, sample_trial("other"));
    }
    db.end_session(session, "done");
  }
  const auto db = open(folder / "new/folder/t.db");
  const auto stored = db.trials(session);
  ASSERT_EQ(stored.size(), trials.size());
  for (std::size_t i = 0; i < trials.size(); ++i) expect_equal(stored[i], trials[i]);
  EXPECT_EQ(db.counts().trials, 2 * static_cast<std::int64_t>(trials.size()));
  EXPECT_EQ(db.counts().sessions, 2);
  EXPECT_EQ(db.counts().devices, 1);
  EXPECT_EQ(db.counts().problems, 1);
  EXPECT_TRUE(db.check().empty());
}

TEST(RoundTrip, FinalistsComeBackInTheirOrder) {
  const TemporaryFolder folder;
  std::int64_t session = 0;
  {
    auto db = open(folder / "t.db");
    session = db.begin_session(sample_session());
    db.set_finalists(session, sample_finalists());
    EXPECT_THROW(db.set_finalists(session + 1, sample_finalists()), Error);
  }
  const auto db = open(folder / "t.db");
  EXPECT_EQ(db.finalists(session), sample_finalists());
  EXPECT_TRUE(db.finalists(session + 1).empty());
}

TEST(RoundTrip, EveryStatusCanBeStored) {
  const TemporaryFolder folder;
  auto db = open(folder / "t.db");
  const auto session = db.begin_session(sample_session());
  const std::vector<Status> all = {
      Status::constraints,   Status::compile,     Status::launch,
      Status::correctness,   Status::timeout,     Status::crash,
      Status::out_of_memory, Status::unavailable, Status::invalid_argument,
      Status::device_lost,   Status::io};
  for (const auto status : all) {
    auto trial = sample_trial("x");
    trial.failure = status;
    db.add_trial(session, trial);
  }
  const auto stored = db.trials(session);
  ASSERT_EQ(stored.size(), all.size());
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(stored[i].failure, all[i]);
}

TEST(RoundTrip, WinnerComesBackWithItsCircumstances) {
  const TemporaryFolder folder;
  auto db = open(folder / "t.db");
  const auto device = sample_device().fingerprint();
  const auto problem = sample_problem().key();
  EXPECT_FALSE(db.find_winner(device, problem, true));
  const auto session = db.begin_session(sample_session());
  db.set_winner(session, sample_winner());

  const auto found = db.find_winner(device, problem, true);
  ASSERT_TRUE(found);
  expect_equal(found->winner, sample_winner());
  EXPECT_EQ(found->problem, sample_problem());
  expect_equal(found->device, sample_device());
  EXPECT_EQ(found->device_id, "vulkan:2");
  EXPECT_EQ(found->provenance.greta_version, "0.1.0");
  EXPECT_EQ(found->provenance.template_key, "0123abcd");
  EXPECT_EQ(found->provenance.driver, "example 1.2.3");
  EXPECT_EQ(found->provenance.compiler, "glslang 12.0.0");
  EXPECT_EQ(found->provenance.started_utc, "2026-11-20T12:00:00Z");
  EXPECT_FALSE(db.find_winner(device, problem, false));
  EXPECT_FALSE(db.find_winner("another device", problem, true));
  EXPECT_FALSE(db.find_winner(device, "another problem", true));
}

// A clock that jumps ahead and back only affects the dates: what it dated is not the answer for
// ever.
TEST(RoundTrip, AnAnswerFromTheFutureIsDisplacedByLaterOnes) {
  const TemporaryFolder folder;
  auto db = open(folder / "t.db");
  const auto add = [&](const std::string& date, const std::string& key) {
    auto record = sample_session();
    record.provenance.started_utc = date;
    record.provenance.template_key = key;
    const auto session = db.begin_session(record);
    db.set_winner(session, sample_winner());
    return session;
  };
  const auto answer = [&] {
    const auto key = sample_problem().key();
    return db.find_winner(sample_device().fingerprint(), key, true)->session;
  };
  const auto ahead = add("9936-01-01T00:00:00Z", "a");
  EXPECT_EQ(answer(), ahead);
  const auto later = add("2026-11-20T12:00:00Z", "b");
  EXPECT_EQ(answer(), later);
  EXPECT_EQ(db.winners().front().session, later);
}

// What another machine certified with another compiler is not the answer here, however new it is.
TEST(RoundTrip, AnAnswerOfThePresentDriverAndCompilerComesBeforeALaterOne) {
  const TemporaryFolder folder;
  auto here = open(folder / "here.db"), there = open(folder / "there.db");
  const auto device = sample_device().fingerprint();
  const auto problem = sample_problem().key();
  auto record = sample_session();
  record.provenance.driver = record.device.driver;
  record.provenance.compiler = record.device.compiler;
  const auto own = here.begin_session(record);
  here.set_winner(own, sample_winner());
  record.provenance.started_utc = "2026-11-21T12:00:00Z";
  record.provenance.compiler = "another compiler";
  there.set_winner(there.begin_session(record), sample_winner());
  here.merge(there.contents());
  EXPECT_EQ(here.find_winners(device, problem, true).size(), 2U);
  EXPECT_EQ(here.find_winner(device, problem, true)->session, own);
  EXPECT_EQ(here.winners().front().session, own);
  // Here, the device as last seen is that of the other machine, and a look-up knows its own.
  record.device.compiler = "another compiler";
  const auto latest = here.begin_session(record);
  here.set_winner(latest, sample_winner());
  EXPECT_EQ(here.find_winner(device, problem, true)->session, latest);
  const WinnerSource source(folder / "here.db");
  EXPECT_EQ(source.find(device, problem, true, sample_device())->session, own);
  EXPECT_EQ(source.find(device, problem, true, record.device)->session, latest);
}

TEST(RoundTrip, LaterWinnerReplacesOnlyItsOwnKind) {
  const TemporaryFolder folder;
  auto db = open(folder / "t.db");
  auto later_session = sample_session();
  later_session.provenance.started_utc = "2026-11-21T12:00:00Z";
  auto later = sample_winner();
  later.measurement.median_us = 5;
  auto warm = sample_winner();
  warm.cold = warm.measurement.cold = false;
  warm.roofline = std::numeric_limits<double>::quiet_NaN();

  db.set_winner(db.begin_session(sample_session()), sample_winner());
  db.set_winner(db.begin_session(sample_session()), warm);
  db.set_winner(db.begin_session(later_session), later);
  ASSERT_EQ(db.winners().size(), 2U);
  expect_equal(db.winners()[0].winner, later);
  expect_equal(db.winners()[1].winner, warm);
  EXPECT_EQ(db.winners()[0].provenance.started_utc, "2026-11-21T12:00:00Z");
  EXPECT_EQ(db.counts().winners, 2);
}

TEST(RoundTrip, WinnersOfOtherCircumstancesStay) {
  const TemporaryFolder folder;
  auto db = open(folder / "t.db");
  auto newer = sample_session();
  newer.provenance.started_utc = "2026-11-21T12:00:00Z";
  auto fast = sample_winner();
  fast.measurement.median_us = 5;
  db.set_winner(db.begin_session(sample_session()), fast);
  for (std::string Provenance::*field :
       {&Provenance::driver, &Provenance::compiler, &Provenance::template_key}) {
    auto session = newer;
    session.provenance.*field += " changed";
    db.set_winner(db.begin_session(session), sample_winner());
  }
  EXPECT_EQ(db.results().size(), 4U);
  // The latest of several answers, not the fastest: times of different circumstances are not
  // comparable.
  ASSERT_EQ(db.winners().size(), 1U);
  expect_equal(db.winners()[0].winner, sample_winner());
  const auto found = db.find_winner(sample_device().fingerprint(), sample_problem().key(), true);
  EXPECT_EQ(found->provenance.started_utc, "2026-11-21T12:00:00Z");
}

TEST(RoundTrip, WinnerKeepsItsRawSamples) {
  const TemporaryFolder folder;
  auto db = open(folder / "t.db");
  const auto session = db.begin_session(sample_session());
  std::mt19937_64 random(11);
  for (int i = 0; i < 50; ++i) {
    auto winner = sample_winner();
    winner.measurement = random_measurement(random);
    winner.measurement.cold = true;    // taken from the session for a winner
    winner.measurement.raced = false;  // never set in rounds
    winner.default_samples_us = random_measurement(random).samples_us;
    db.set_winner(session, winner);
    expect_equal(db.winners().front().winner, winner);
  }
}

TEST(RoundTrip, TimesAreRecordedInUtc) {
  const TemporaryFolder folder;
  {
    auto db = open(folder / "t.db");
    db.end_session(db.begin_session(sample_session()), "done");
  }
  const Connection connection(folder / "t.db", TunedDb::Mode::read_only);
  connection.read([](SQLite::Database& database) {
    // In SQLite's functions; text in this form sorts by time.
    const auto recently = database.execAndGet(R"(
      SELECT ended_utc BETWEEN strftime('%Y-%m-%dT%H:%M:%SZ', 'now', '-5 minutes')
        AND strftime('%Y-%m-%dT%H:%M:%SZ', 'now') FROM sessions)");
    EXPECT_EQ(recently.getInt(), 1);
    EXPECT_EQ(database.execAndGet("SELECT length(ended_utc) FROM sessions").getInt(), 20);
  });
}

TEST(RoundTrip, CeilingsAreReplacedByKind) {
  const TemporaryFolder folder;
  auto db = open(folder / "t.db");
  const auto device = sample_device();
  EXPECT_TRUE(db.ceilings(device.fingerprint()).empty());
  db.set_ceilings(device, {{"copy_gbps", 4000, 1.5, "1.2.3", "2026-11-20T12:00:00Z"},
                           {"fma_f32_gflops", 60000, 0.5, "1.2.3", "2026-11-20T12:00:00Z"}});
  db.set_ceilings(device, {{"copy_gbps", 4100, 0.25, "1.2.4", "2026-11-21T12:00:00Z"}});
  const auto stored = db.ceilings(device.fingerprint());
  ASSERT_EQ(stored.size(), 2U);
  EXPECT_EQ(stored[0].kind, "copy_gbps");
  EXPECT_EQ(stored[0].value, 4100);
  EXPECT_EQ(stored[0].spread_percent, 0.25);
  EXPECT_EQ(stored[0].driver, "1.2.4");
  EXPECT_EQ(stored[0].measured_utc, "2026-11-21T12:00:00Z");
  EXPECT_EQ(stored[1].kind, "fma_f32_gflops");
  EXPECT_EQ(stored[1].value, 60000);
}

TEST(RoundTrip, DeviceIsOneRowThatFollowsItsDriver) {
  const TemporaryFolder folder;
  auto db = open(folder / "t.db");
  auto session = sample_session();
  db.begin_session(session);
  session.device.driver = "example 2.0";
  db.begin_session(session);
  EXPECT_EQ(db.counts().devices, 1);
  const Connection connection(folder / "t.db", TunedDb::Mode::read_only);
  connection.read([](SQLite::Database& database) {
    EXPECT_EQ(database.execAndGet("SELECT driver FROM devices").getString(), "example 2.0");
  });
}

TEST(RoundTrip, FastestConfigurationsComeBestFirst) {
  const TemporaryFolder folder;
  auto db = TunedDb::open(folder / "a.db", TunedDb::Mode::read_write);
  const auto session = db.begin_session(sample_session());
  const auto add = [&](int bm, double us, bool stand_in, std::optional<Status> failure,
                       bool raced = false) {
    Trial trial = sample_trial("x");
    trial.config = {"tiled", {{"BM", bm}}};
    trial.measurement.median_us = us;
    trial.measurement.raced = raced;
    trial.problem_key = stand_in ? "gemm dtype=f32 out=f32 m=1 n=1 k=1" : sample_problem().key();
    trial.failure = failure;
    db.add_trial(session, trial);
  };
  add(1, 30, false, {});
  add(2, 20, false, {});
  add(2, 25, false, {});
  add(3, 1, true, {});
  add(4, 5, false, Status::correctness);
  add(5, 6, false, {}, true);  // too few samples to say how fast it is
  const auto fastest =
      db.fastest_configs(sample_device().fingerprint(), sample_problem().key(), true, 3);
  ASSERT_EQ(fastest.size(), 3U);
  EXPECT_EQ(fastest[0]["BM"], 2);
  EXPECT_EQ(fastest[1]["BM"], 1);
  EXPECT_EQ(fastest[2]["BM"], 3);  // on a stand-in: its time is meaningless at full size
  EXPECT_TRUE(db.fastest_configs("another", sample_problem().key(), true, 3).empty());
  EXPECT_TRUE(
      db.fastest_configs(sample_device().fingerprint(), sample_problem().key(), false, 3).empty());
}

// Times on different stand-ins are not comparable.
TEST(RoundTrip, TimesOfDifferentStandInsAreNotCompared) {
  const TemporaryFolder folder;
  auto db = open(folder / "t.db");
  const auto session = db.begin_session(sample_session());
  const auto add = [&](int bm, double us, const std::string& problem) {
    Trial trial = sample_trial("x");
    trial.config = {"tiled", {{"BM", bm}}};
    trial.measurement.median_us = us;
    trial.problem_key = problem;
    db.add_trial(session, trial);
  };
  const std::string full = sample_problem().key();
  const std::string small = "gemm dtype=f16 out=f32 layout=nt m=1 n=1 k=1";
  const std::string medium = "gemm dtype=f16 out=f32 layout=nt m=8 n=8 k=8";
  add(1, 100, full);
  add(2, 90, full);
  add(1, 1, small);  // faster than 2 on the stand-in only
  add(2, 2, small);
  add(3, 3, small);
  add(4, 50, medium);  // best of its stand-in: before the third of the other one
  add(5, 60, medium);
  std::vector<int> order;
  for (const auto& config : db.fastest_configs(sample_device().fingerprint(), full, true, 9)) {
    order.push_back(config["BM"]);
  }
  EXPECT_EQ(order, (std::vector<int>{2, 1, 4, 5, 3}));
}

TEST(RoundTrip, CardsOfAModelAreOneDevice) {
  const TemporaryFolder folder;
  auto db = open(folder / "t.db");
  auto session = sample_session();
  const auto first = session.device.card;
  db.begin_session(session);
  session.device.card = {"ffffffffffffffffffffffffffffffff", "0000:41:00.0"};
  const auto id = db.begin_session(session);
  auto trial = sample_trial("x");
  trial.card = session.device.card.uuid;
  db.add_trial(id, trial);
  trial.card = "";
  db.add_trial(id, trial);
  const auto devices = db.devices();
  ASSERT_EQ(devices.size(), 1U);
  EXPECT_EQ(devices[0].info.card, session.device.card) << "the card that was seen last";
  ASSERT_EQ(devices[0].cards.size(), 2U);
  EXPECT_EQ(devices[0].cards[0].card, first);
  EXPECT_EQ(devices[0].cards[1].card, session.device.card);
  EXPECT_EQ(db.trials(id)[0].card, session.device.card.uuid);
  EXPECT_EQ(db.trials(id)[1].card, "");
  session.device.card.pci_address = "0000:42:00.0";
  db.begin_session(session);
  EXPECT_EQ(db.devices()[0].cards[1].card, session.device.card) << "it was moved";
  EXPECT_TRUE(db.check().empty());
}

// A card may be faulty while the others of its model are not.
TEST(RoundTrip, AFailedHealthCheckIsOfOneCard) {
  const TemporaryFolder folder;
  auto db = open(folder / "t.db");
  const auto faulty = sample_device();
  auto sound = faulty;
  sound.card.uuid = "ffffffffffffffffffffffffffffffff";
  db.set_unsafe(faulty, {"matrix", "correctness", "wrong", "", "2026-11-20T12:00:00Z"});
  EXPECT_EQ(db.unsafe(faulty).size(), 1U);
  EXPECT_TRUE(db.unsafe(sound).empty());
  db.clear_unsafe(sound, "matrix");
  EXPECT_EQ(db.unsafe(faulty).size(), 1U);
  db.set_unsafe(sound, {"matrix", "crash", "", "", "2026-11-20T12:00:00Z"});
  db.clear_unsafe(faulty, "matrix");
  EXPECT_TRUE(db.unsafe(faulty).empty());
  EXPECT_EQ(db.unsafe(sound).size(), 1U);
}

TEST(RoundTrip, TheLatestCeilingOfAnyCardIsTheModels) {
  const TemporaryFolder folder;
  auto db = open(folder / "t.db");
  auto device = sample_device();
  db.set_ceilings(device, {{"copy_gbps", 4000, 1, "1", "2026-11-22T00:00:00Z"},
                           {"fma_f32_gflops", 60000, 1, "1", "2026-11-20T00:00:00Z"}});
  device.card.uuid = "ffffffffffffffffffffffffffffffff";
  db.set_ceilings(device, {{"copy_gbps", 3900, 1, "1", "2026-11-21T00:00:00Z"},
                           {"fma_f32_gflops", 59000, 1, "1", "2026-11-21T00:00:00Z"}});
  const auto ceilings = db.ceilings(device.fingerprint());
  ASSERT_EQ(ceilings.size(), 2U);
  EXPECT_EQ(ceilings[0].value, 4000);
  EXPECT_EQ(ceilings[0].card, sample_device().card.uuid);
  EXPECT_EQ(ceilings[1].value, 59000);
  EXPECT_EQ(ceilings[1].card, device.card.uuid);
  EXPECT_EQ(db.contents().ceilings.size(), 4U) << "none is lost";
}

TEST(RoundTrip, UnknownSessionIsAnError) {
  const TemporaryFolder folder;
  auto db = open(folder / "t.db");
  const auto expected = (folder / "t.db").string() + ": there is no session 77";
  EXPECT_EQ(error_of([&] { db.add_trial(77, sample_trial("x")); }), expected);
  EXPECT_EQ(error_of([&] { db.end_session(77, "done"); }), expected);
  EXPECT_EQ(error_of([&] { db.set_winner(77, sample_winner()); }), expected);
  EXPECT_TRUE(db.trials(77).empty());
}

TEST(RoundTrip, FailedCallLeavesNothingBehind) {
  const TemporaryFolder folder;
  auto db = open(folder / "t.db");
  // The second ceiling violates a CHECK, so the device and the first one must be rolled back as
  // well.
  error_of([&] { db.set_ceilings(sample_device(), {{"copy_gbps", 1, 1, "", ""}, {}}); });
  EXPECT_EQ(db.counts().devices, 0);
  EXPECT_TRUE(db.ceilings(sample_device().fingerprint()).empty());
  db.begin_session(sample_session());
  EXPECT_EQ(db.counts().sessions, 1);
}

TEST(RoundTrip, LookupsUseIndices) {
  const TemporaryFolder folder;
  const Connection connection(folder / "t.db", TunedDb::Mode::read_write);
  connection.read([](SQLite::Database& database) {
    for (const std::string& query :
         {select_winner(), select_problem_winners(), std::string(select_trials),
          std::string(select_ceilings), std::string(select_comparisons)}) {
      SQLite::Statement plan(database, "EXPLAIN QUERY PLAN " + query);
      int steps = 0;
      for (; plan.executeStep(); ++steps) {
        EXPECT_EQ(plan.getColumn(3).getString().find("SCAN"), std::string::npos)
            << plan.getColumn(3).getString();
      }
      EXPECT_GT(steps, 1);
    }
  });
}

}  // namespace
}  // namespace greta::test::round_trip_test
