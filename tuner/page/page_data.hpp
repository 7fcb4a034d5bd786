#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "db/tuned_db.hpp"
#include "kernels/catalog.hpp"
#include "tuner/measure/measured_result.hpp"
#include "tuner/replay/replay.hpp"

namespace greta::tuner {

// The data of the page of greta-report, as one JSON object. Its texts come from databases and
// files, and the page shows them as text only. A number that is unknown is null; times end in _us
// or _s; a share is 0 to 1. Columns of numbers are typed arrays (tuner/page/columns.hpp).
//
// format    "greta-report 1"
// made      greta_version, utc, files: list of {name, kind: "database" | "recording" |
//           "baselines" | "trace", damaged (of a database): rows that are left out}
// devices   list of: name, id, backend, vendor, architecture, driver, compiler, kind, fingerprint,
//           units, memory_bytes, hardware (equal for views of one card through two APIs),
//           ceilings: {copy_gbps: …, fma_f32_gflops: …}, ceilings_utc,
//           summary: problems, beaten (defaults), stale, no_ratio,
//                    speedup and roofline: spreads {count, geometric_mean, least, quarter, half,
//                    three_quarters, most}
// rivals    list of hardware whose problems were tuned through two APIs: a and b (indices of
//           devices), problems: list of {a, b (indices of results), ratio (time of a divided by
//           time of b), sure}, spread of the ratios
// results   list of winners, current ones and those of earlier environments: device (index), file
//           (index), session, search (index or null), problem (key), op, dtype, out_dtype, dims,
//           attributes, cold, current, config, variant, is_default, us, low_us, high_us, p99_us,
//           default_us, speedup, speedup_low, speedup_high (null if the default failed),
//           confidence, rounds, dropped, roofline (null if unknown), regret: null or {neighbour,
//           ratio, source}, stale: list of reasons, flops, bytes, driver, compiler, version, utc,
//           clocks, watts, ties: list of {config, ratio}, finalists: list of {config, is_default,
//           left (null: it stayed to the end), us, low_us, high_us, speedup, speedup_low,
//           speedup_high (null: no common rounds with the default), rounds_us}, rounds_us and
//           default_rounds_us: columns by round, kernels: list of figures, verdict: text, command
// searches  list of sessions with trials, and of recordings: recorded (whether it is one, whose
// trials
//           are in no strategy's order and have no times of the host), device, file, session,
//           result (index or null), problem, op, dtype, dims, attributes, cold, outcome, strategy,
//           budget, utc, driver, version, flops, bytes, trials, statuses: list of names, variants,
//           parameters: list of {name, values: numbers, or
//           the words for them}, messages: list of {text, log, count}, columns:
//           status, variant, phase, message (u1 or u2, 0: none, else index + 1), us, low_us,
//           high_us, end_s (since the session began), compile_s, verify_s, measure_s, registers,
//           lds_bytes, spills, code_bytes, matrix_instructions, waves, raced, and p0, p1 …: the
//           place of each parameter's value (the type's largest number: it has none), best: {trial,
//           us} as columns: the trials that were faster than all before, fronts: {registers,
//           lds_bytes}: trials that no other one beats in time and in this figure, effects: list of
//           {parameter, and by its values: trials (correct ones with this value), best_us,
//           quarter_us, median_us, three_quarters_us (null without trials)}, importance: fit,
//           marginals: list of {parameter, share}, pairs: list of {a, b, share}; parameters are
//           indices, −1: the variant
// lookups   list of devices: device, answers: list of {problem, dims, op, origin, regret
// (expected),
//           command (null for an exact answer)}
// next      list of {problem, device, why, gain_us (null: unknown), stale, command, result}, those
//           with the most to gain of all databases first
// baselines list of groups: device, preset (empty: unknown), files: list of {name, utc, driver,
// compiler, version,
//           revision: the commit, or empty}, rows: list of {name, status: list, us, low_us,
//           high_us: columns by file}, comparisons: list of {from, to (indices of files),
//           confidence, margin, regressions, only_from and only_to: names of benchmarks that the
//           other file lacks, changes: list of {name, finding, processor (whether
//           the ratio is of processor times), ratio, low, high}}
// passes    list of passes of models: file, number (in the file), configurations ("tuned",
//           "default" or empty), device (name and API, or empty), tokens (null: unknown),
//           launches, wall_us, gaps_us, operations: list of {name, problem, runs, us, launches,
//           config, origin, speedup, regret (null: unknown)}; texts are empty in traces of older
//           versions

/// A database, with the name by which the page shows its file.
struct PageDatabase {
  std::string name;
  const TunedDb* db = nullptr;
  std::filesystem::path path{};  ///< as commands name it
};

/// A recording of configurations of a space (greta-tune --record).
struct PageRecording {
  std::string name;
  const Recording* recording = nullptr;
};

/// Rows of a CSV file.
struct PageBaselines {
  std::string name;
  std::vector<MeasuredResult> results;
};

/// A trace of greta-run --trace, as JSON.
struct PageTrace {
  std::string name;
  nlohmann::json trace;
};

struct PageInput {
  std::vector<PageDatabase> databases{};
  std::vector<PageRecording> recordings{};  ///< with a subject()
  std::vector<PageBaselines> baselines{};
  std::vector<PageTrace> traces{};
  std::string utc;  ///< when the page is made
  /// Returns the command line that tunes a problem, with what a database contains. A shipped one is
  /// never written.
  std::function<std::string(const Problem&, const std::string& device, bool cold,
                            const PageDatabase& database)>
      tune_command;
};

/// Returns the data. Operations that the catalog lacks have no work and no look-ups. Throws Error
/// if a database can't be read.
nlohmann::json page_data(const PageInput& input, const Catalog& catalog);

}  // namespace greta::tuner
