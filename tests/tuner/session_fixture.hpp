#pragma once

#include <gtest/gtest.h>

#include "tests/catalog.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/tuner/fake_evaluator.hpp"
#include "tests/tuner/silent_observer.hpp"
#include "tuner/session/session.hpp"

namespace greta::test {

/// Sessions on a simulated device, with a database.
class SessionTest : public ::testing::Test {
 protected:
  SessionResult tune_problem(const std::string& budget = "60", const Problem* other = nullptr) {
    SessionOptions options;
    options.budget = Budget::parse(budget).value();
    options.seed = 3;
    options.rounds = rounds_;
    options.reject_spills = reject_spills_;
    options.answered = answered_;
    options.suggested = suggested_;
    options.retry_failed = retry_failed_;
    options.for_energy = for_energy_;
    options.started_utc = "2026-01-01T00:00:00Z";
    return tune(evaluator_, db_, other != nullptr ? *other : problem_, options, observer_,
                observer_.stop_);
  }
  /// Makes a known configuration faster than all others and returns it.
  Config winner_from_now_on() {
    const Config first = tune_problem().winner->config;
    evaluator_.factor = [first, usual = default_config()](const Config& config) {
      return config == first ? 0.8 : config == usual ? 1.0 : 1.05;
    };
    evaluator_.renewed_ = 0;
    return first;
  }
  /// Returns how a configuration left the rounds; nothing if it stayed or was no finalist.
  static std::optional<Departure> departure(const SessionResult& result, const Config& config) {
    for (const Finalist& one : result.finalists) {
      if (one.config == config) return one.left;
    }
    return std::nullopt;
  }
  Config default_config() const {
    return built_in("gemm").default_config(problem_, evaluator_.device());
  }

  test::TemporaryFolder folder_;
  Problem problem_ = Problem::parse("gemm dtype=f32 out=f32 m=512 n=512 k=512").value();
  FakeEvaluator evaluator_;
  TunedDb db_ = TunedDb::open(folder_ / "tuned.db", TunedDb::Mode::read_write);
  SilentObserver observer_;
  int rounds_ = SessionOptions().rounds;
  bool reject_spills_ = false;
  bool retry_failed_ = false;
  bool for_energy_ = false;
  std::optional<Config> answered_;
  std::vector<Config> suggested_;
};

}  // namespace greta::test
