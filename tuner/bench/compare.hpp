#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tuner/measure/measured_result.hpp"

namespace greta::tuner {

/// Returns whether the samples determine the time, or the CPU time if present, within 1 %: the 95 %
/// interval over groups as in change_of(), or over blocks as in processor_change_of(). False if
/// there are too few for an interval.
bool settled(const Samples& samples);
/// The same for a kernel whose blocks come from separate processes on a GPU: whether the median of
/// the processes' medians is known within 2 %. Two such results of ten processes or more show a
/// change of 10 % in a table of 150 rows.
bool settled_in_processes(const Samples& samples);

/// The conclusion from two measurements of the same subject.
enum class Finding { slower, faster, same, unsure };
std::string_view to_string(Finding finding);

/// Returns a confidence interval of the ratio of the new time to the old one.
///
/// Consecutive samples share disturbances, so consecutive whole blocks are combined to at most 24
/// groups, of the same size on both sides. A group is represented by its fastest sample: load on
/// the machine slows most samples, but rarely all of a group. If there are more than twelve groups,
/// the same fraction of both sides is kept, the fastest, so that the smaller side has twelve. The
/// interval is shift_interval(). A change of the controls in the same direction, grouped in the
/// same way, is divided out.
Interval change_of(const Samples& base, const Samples& fresh, double confidence);

/// The same for samples of which each block comes from a process of its own, on a device that
/// nothing else uses. A process is represented by the median of its block, and all processes count,
/// because they are independent: within one process, launches take longer or shorter by a constant
/// that another process does not have. A change of the controls' medians in the same direction is
/// divided out.
Interval process_change_of(const Samples& base, const Samples& fresh, double confidence);

/// Returns process_change_of() for kernels on a GPU of which both sides have samples from six
/// processes or more, otherwise change_of().
Interval change_of(const MeasuredResult& base, const MeasuredResult& fresh, double confidence);

/// Like change_of() for the CPU time of a device's threads, which excludes waiting for a core, and
/// that of the controls. Under load, kernels change up to 1.8 times as much as the controls (as
/// logarithms), which is divided out. Nothing if one side has no CPU times.
std::optional<Interval> fastest_processor_change_of(const Samples& base, const Samples& fresh,
                                                    double confidence);

/// Like fastest_processor_change_of(), for machines on which no sample may be undisturbed: uses
/// each block's median CPU time divided by that of the control beside it. The interval is widened
/// by the stronger reaction of kernels to a change of the controls' medians. Nothing if one side
/// has none.
std::optional<Interval> processor_change_of(const Samples& base, const Samples& fresh,
                                            double confidence);

/// Judges a change. Changes up to `margin` (0.05) count as none. A result is slower if its estimate
/// exceeds the margin and its whole interval exceeds half of it.
Finding judge(const Interval& change, double margin);

/// Why a slowdown is accepted, and the last day of that.
struct AcceptedChange {
  std::string reason, until;
};

/// A subject that both baselines contain.
struct ResultChange {
  MeasuredResult base, fresh;
  Interval change;
  Finding finding = Finding::unsure;
  bool by_processor = false;                   ///< change and finding are based on CPU time
  bool broke = false;                          ///< was correct and fails now
  std::optional<AcceptedChange> acceptance{};  ///< of a slower result

  /// Returns whether the result broke, or is slower and not accepted.
  bool is_regression() const { return broke || (finding == Finding::slower && !acceptance); }
};

struct BaselineComparison {
  std::vector<ResultChange> changes;  ///< most important first
  std::vector<MeasuredResult> only_base, only_fresh;
  double confidence = 0;    ///< confidence of each single interval
  int regressions() const;  ///< number of results of which is_regression() holds
};

/// Compares results of the same problem, backend, origin and cache state. All results from a
/// database count as one origin, because tuning turns them into winners. Results of a search
/// (origins trial, stand_in) are ignored; several results of a subject are merged. CPU times decide
/// if times are inconclusive. The intervals have 95 % confidence over all tests (Bonferroni): one
/// per result, three if there are CPU times. With samples from fewer than six processes, a ratio of
/// 1.25 for the machine and the runtime and 0.4 µs of a launch are attributed to the process, and a
/// change of less than 20 ns counts as none.
BaselineComparison compare_baselines(const std::vector<MeasuredResult>& base,
                                     const std::vector<MeasuredResult>& fresh, double margin);

/// Returns a description of the subject, "gemm f16 m=1 n=2 k=3 layout=nt, winner", for readers.
std::string subject_text(const Subject& subject);

/// Returns a name of the benchmark on one line that stays the same from run to run:
/// "gemm f32 m=32 n=32 k=32, tuned, hip". Configurations from a database are "tuned" wherever they
/// come from. Rows of one file have different names.
std::string benchmark_name(const Subject& subject);

}  // namespace greta::tuner
