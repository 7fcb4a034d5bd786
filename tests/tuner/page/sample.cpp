#include "tests/tuner/page/sample.hpp"

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/db/fixture.hpp"
#include "tuner/measure/ceilings.hpp"
#include "tuner/report/csv.hpp"

namespace greta::test {
namespace {

constexpr int trials_of_a_search = 240;

Problem gemm(std::int64_t m) {
  return {"gemm", DType::f16, DType::f32, {}, {{"m", m}, {"n", 1024}, {"k", 4096}}};
}

SessionRecord session_of(const DeviceInfo& device, const Problem& problem, bool is_hostile) {
  SessionRecord session = sample_session();
  session.device = device;
  session.problem = problem;
  session.provenance.driver = device.driver;
  session.provenance.compiler = device.compiler;
  if (is_hostile) {
    session.strategy = hostile;
    session.budget = hostile;
    session.command = hostile;
    session.provenance.greta_version = hostile;
  }
  return session;
}

Winner winner_of(double us, double speedup) {
  Winner winner = sample_winner();
  winner.config = page_trial(1).config;
  winner.is_default = speedup == 1;
  winner.speedup = speedup;
  winner.speedup_low = speedup * 0.97;
  winner.speedup_high = speedup * 1.03;
  winner.default_us = us * speedup;
  winner.roofline = std::min(0.9, 0.2 * speedup);
  winner.rounds = 40;
  winner.measurement.samples_us.clear();
  winner.default_samples_us.clear();
  for (int i = 0; i < winner.rounds; ++i) {
    const double wave = 1 + 0.01 * std::sin(i);
    winner.measurement.samples_us.push_back(us * wave);
    winner.default_samples_us.push_back(us * speedup * wave * (1 + 0.005 * std::cos(3 * i)));
  }
  winner.measurement.median_us = us;
  winner.measurement.low_us = us * 0.99;
  winner.measurement.high_us = us * 1.01;
  winner.ties = {{page_trial(3).config, 1.004}};
  return winner;
}

/// Returns finalists of which the first are the default and the winner of winner_of().
std::vector<Finalist> finalists_of(const Winner& winner) {
  std::vector<Finalist> finalists{
      {.config = page_trial(0).config, .us = winner.default_samples_us, .is_default = true},
      {.config = winner.config, .us = winner.measurement.samples_us},
      {.config = winner.ties.front().config, .us = winner.measurement.samples_us},
      {.config = page_trial(2).config, .us = winner.default_samples_us, .left = Departure::slower}};
  for (double& us : finalists[2].us) us *= 1.004;
  finalists[3].us.resize(8);
  return finalists;
}

void add_search(TunedDb& db, const DeviceInfo& device, const Problem& problem, bool is_hostile,
                int trials = trials_of_a_search, const std::string& started_utc = {}) {
  SessionRecord record = session_of(device, problem, is_hostile);
  if (!started_utc.empty()) record.provenance.started_utc = started_utc;
  const auto session = db.begin_session(record);
  for (int i = 0; i < trials; ++i) {
    Trial trial = page_trial(i);
    trial.problem_key = problem.key();
    if (is_hostile) {
      trial.log = hostile;
      if (!trial.ok()) trial.message = hostile;
      for (auto& kernel : trial.kernels) kernel.name = hostile;
    }
    db.add_trial(session, trial);
  }
  Winner winner = winner_of(21, 1.8);
  if (is_hostile) {
    winner.measurement.clocks = hostile;
    winner.verdict.method = hostile;
    for (auto& kernel : winner.kernels) kernel.name = hostile;
  }
  db.set_winner(session, winner);
  db.set_finalists(session, finalists_of(winner));
  db.end_session(session, "done");
}

void add_result(TunedDb& db, const DeviceInfo& device, const Problem& problem, double us,
                double speedup) {
  const auto session = db.begin_session(session_of(device, problem, false));
  const Winner winner = winner_of(us, speedup);
  db.set_winner(session, winner);
  db.set_finalists(session, finalists_of(winner));
  db.end_session(session, "done");
}

MeasuredResult benchmark(std::int64_t m, double us, const std::string& date) {
  MeasuredResult result;
  result.subject.problem = gemm(m);
  result.subject.set_device(page_device(Api::hip));
  result.subject.origin = ResultOrigin::untuned;
  result.subject.cache = CacheState::cold;
  result.subject.config = page_trial(1).config;
  result.date = date;
  for (int block = 0; block < 12; ++block) {
    auto& samples = result.samples.blocks_us.emplace_back();
    for (int i = 0; i < 5; ++i) samples.push_back(us * (1 + 0.002 * ((block * 5 + i) % 7)));
  }
  result.us = {us * 1.006, us * 1.004, us * 1.008, us * 1.012, 1};
  result.count = 60;
  return result;
}

/// Returns a text with JSON's escapes.
std::string json_text(const std::string& text) {
  const std::string quoted = nlohmann::json(text).dump();
  return quoted.substr(1, quoted.size() - 2);
}

}  // namespace

DeviceInfo page_device(Api api) {
  DeviceInfo device = sample_device();
  device.backend = api;
  device.index = 0;
  return device;
}

DeviceInfo hostile_device() {
  DeviceInfo device = sample_device();
  device.name = hostile;
  device.vendor = hostile;
  device.driver = hostile;
  device.compiler = hostile;
  device.architecture = "ex91";
  device.card.uuid = "ffeeddccbbaa99887766554433221100";
  device.card.pci_address = "0000:02:00.0";
  return device;
}

Trial page_trial(int i) {
  Trial trial = sample_trial(std::to_string(i));
  const int bm = 16 << (i % 4), bk = 8 << (i / 4 % 3), stages = 1 + i / 12 % 3;
  trial.config = {i % 5 == 4 ? "split_k" : "tiled", {{"BM", bm}, {"BK", bk}, {"STAGES", stages}}};
  if (i % 5 == 4) trial.config.values.emplace_back("SPLIT", 2 << (i / 5 % 3));
  const double us = 20 * (1 + std::abs(std::log2(bm / 64.0))) * (bk == 16 ? 1 : 1.3) *
                    (1 + 0.1 / stages) * (1 + 0.01 * (i * 37 % 11));
  trial.measurement.median_us = us;
  trial.measurement.low_us = us * 0.99;
  trial.measurement.high_us = us * 1.01;
  trial.compile_s = 0.4 + 0.01 * (i % 9);
  trial.verify_s = 0.05;
  trial.measure_s = 0.1;
  trial.elapsed_s = 0.55 * (i + 1);
  trial.phase = i == 0    ? db::TrialPhase::plan
                : i < 230 ? db::TrialPhase::search
                          : db::TrialPhase::finals;
  trial.kernels.front().statistics.registers = static_cast<std::uint32_t>(32 + bm);
  if (i % 13 == 7) {
    trial.failure = i % 2 == 0 ? Status::compile : Status::timeout;
    trial.message = "too many registers";
    trial.log = "line 1\nline 2";
    trial.measurement = {};
    trial.kernels.clear();
  }
  return trial;
}

void write_page_database(const std::filesystem::path& file) {
  TunedDb db = TunedDb::open(file, TunedDb::Mode::read_write);
  const DeviceInfo hip = page_device(Api::hip), vulkan = page_device(Api::vulkan);
  add_search(db, hip, gemm(2048), false);
  add_search(db, vulkan, gemm(2048), false);
  add_search(db, hostile_device(), gemm(2048), true);
  add_result(db, hip, gemm(16), 4, 2);
  add_result(db, hip, gemm(512), 9, 1);
  add_result(db, vulkan, gemm(512), 7.5, 1.2);
  add_result(db, hip, {"softmax", DType::f32, DType::f32, {}, {{"rows", 512}, {"cols", 4096}}}, 12,
             1.1);
  for (const DeviceInfo& device : {hip, vulkan, hostile_device()}) {
    db.set_ceilings(
        device,
        {{std::string(ceiling_copy), 3900, 1, device.driver, "2026-11-20T12:00:00Z"},
         {std::string(ceiling_fma_f32), 60000, 1, device.driver, "2026-11-20T12:00:00Z"},
         {ceiling_matrix(DType::f16), 800000, 1, device.driver, "2026-11-20T12:00:00Z"},
         {ceiling_matrix(MatrixNumbers::fp8), 1.6e6, 1, device.driver, "2026-11-20T12:00:00Z"},
         {ceiling_matrix(MatrixNumbers::int8), 1.6e6, 1, device.driver, "2026-11-20T12:00:00Z"}});
  }
}

void add_page_search(const std::filesystem::path& file, int trials,
                     const std::string& started_utc) {
  TunedDb db = TunedDb::open(file, TunedDb::Mode::read_write);
  add_search(db, page_device(Api::hip), gemm(64), false, trials, started_utc);
}

void write_empty_page_database(const std::filesystem::path& file) {
  TunedDb db = TunedDb::open(file, TunedDb::Mode::read_write);
  const auto session = db.begin_session(session_of(page_device(Api::hip), gemm(64), false));
  for (int i = 0; i < 2; ++i) {
    Trial trial = page_trial(7);  // fails
    trial.problem_key = gemm(64).key();
    trial.config.values[0].second += i;
    trial.compile_s = trial.verify_s = trial.measure_s = 0;
    db.add_trial(session, trial);
  }
  db.end_session(session, "no winner");
}

void write_page_baselines(const std::filesystem::path& before, const std::filesystem::path& after) {
  std::vector<MeasuredResult> old_rows, new_rows;
  for (std::int64_t m = 1; m <= 6; ++m) {
    const double us = 100.0 * static_cast<double>(m);
    const double factor = m == 2 ? 1.5 : m == 3 ? 0.6 : 1;
    old_rows.push_back(benchmark(m, us, "2026-11-20T12:00:00Z"));
    new_rows.push_back(benchmark(m, us * factor, "2026-11-22T12:00:00Z"));
    old_rows.back().subject.greta_revision = "0123456789ab";
    new_rows.back().subject.greta_revision = "ba9876543210-dirty";
    new_rows.back().subject.driver = hostile;
    new_rows.back().subject.compiler = hostile;
    new_rows.back().subject.greta_version = hostile;
  }
  append_csv(before, old_rows).value();
  append_csv(after, new_rows).value();
}

void write_page_trace(const std::filesystem::path& file) {
  std::ofstream(file)
      << R"({"traceEvents": [
{"name": "process_name", "ph": "M", "pid": 1, "tid": 0, "args": {"name": "hip:0"}},
{"name": "host work", "ph": "X", "pid": 0, "tid": 0, "ts": 0, "dur": 9000},
{"name": "embedding", "ph": "X", "pid": 1, "tid": 0, "ts": 0, "dur": 10, "args": {"tokens": 5,
 "problem": "embedding dtype=f16 out=f16 tokens=5", "config": "flat VEC=8", "origin": "default", "launches": 1}},
{"name": "layer 0 attention", "ph": "X", "pid": 1, "tid": 0, "ts": 12, "dur": 30, "args": {"tokens": 5,
 "problem": "attention dtype=f16 out=f16 q=5", "config": "tiled BM=64", "origin": "exact", "launches": 2,
 "speedup": 1.5}},
{"name": "layer 1 attention", "ph": "X", "pid": 1, "tid": 0, "ts": 45, "dur": 35, "args": {"tokens": 5,
 "problem": "attention dtype=f16 out=f16 q=5", "config": "tiled BM=64", "origin": "exact", "launches": 2,
 "speedup": 1.5}},
{"name": ")"
      << json_text(hostile)
      << R"(", "ph": "X", "pid": 1, "tid": 0, "ts": 100, "dur": 8, "args": {"tokens": 1,
 "problem": ")"
      << json_text(hostile) << R"(", "config": ")" << json_text(hostile) << R"(", "origin": ")"
      << json_text(hostile) << R"("}},
{"name": "embedding", "ph": "X", "pid": 1, "tid": 0, "ts": 5000, "dur": 8, "args": "not an object"},
{"name": 7, "ph": "X", "pid": "hip", "ts": "soon", "dur": null},
"not an event"
]})";
}

}  // namespace greta::test
