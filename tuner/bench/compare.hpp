#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tuner/measure/measured_result.hpp"

namespace greta::tuner {

/// Whether samples tell the time, or the processor time where there is, to 1 % or better: the 95 %
/// interval from all groups as change_of(), or blocks as processor_change_of() takes them. False
/// where there are too few for an interval.
bool settled(const Samples& samples);

/// What two measurements of the same thing say of it.
enum class Finding { slower, faster, same, unsure };
std::string_view to_string(Finding finding);

/// How the time of something changed: an interval of the ratio of the new time to the old one.
///
/// Samples that follow each other share what disturbs them, so they are taken together in groups of
/// whole blocks that follow each other, at most 24, of the same size on both sides. Each group
/// stands for itself by its fastest sample: load on the machine makes most samples slower, but
/// hardly all of a group. Of more than twelve groups the fastest count, the same part on both
/// sides, twelve of the smaller one. The interval of the typical ratio comes from all pairs of an
/// old and a new group (Hodges and Lehmann, with Wilcoxon's ranks, which are exact up to twelve
/// groups; Hollander, Wolfe & Chicken, Nonparametric Statistical Methods, 4.2). Where the controls,
/// in groups as well, changed in the same direction, that much is taken off. Where there are too
/// few groups for the confidence the interval is [0, infinity).
Interval change_of(const Samples& base, const Samples& fresh, double confidence);

/// The same of the time that a device's threads ran on the CPU, in which waiting for a processor is
/// not, and of the controls'. Kernels react up to 1.8 times as strongly as these to what slows down
/// the processor, which is taken off. Nothing where one side has none.
std::optional<Interval> fastest_processor_change_of(const Samples& base, const Samples& fresh,
                                                    double confidence);

/// The same where no sample may be undisturbed: each block's median processor time over that of the
/// control beside it, which blocks don't share. The interval allows for the stronger reaction
/// as well: where the controls' medians changed, as far as kernels may have changed more. Nothing
/// where one side has none.
std::optional<Interval> processor_change_of(const Samples& base, const Samples& fresh,
                                            double confidence);

/// `margin`: changes up to this (0.05) count as none. Slower is what has changed by more, and by
/// more than half of it for sure.
Finding judge(const Interval& change, double margin);

/// A subject that both baselines have.
struct ResultChange {
  MeasuredResult base, fresh;
  Interval change;
  Finding finding = Finding::unsure;
  bool by_processor = false;  ///< change and finding are of processor time
  bool broke = false;         ///< was right, and fails now
};

struct BaselineComparison {
  std::vector<ResultChange> changes;  ///< what matters first
  std::vector<MeasuredResult> only_base, only_fresh;
  double confidence = 0;    ///< of each single interval
  int regressions() const;  ///< number of results that are slower, or broke
};

/// Compares results of the same problem, backend, origin and caches. What came from a database is
/// one origin, as it becomes a winner where it is tuned. Results of a search (origins trial,
/// stand_in) don't count; several results of a subject are taken together. Where times can't tell,
/// processor times decide. Each interval has 95 % over the number of tests (Bonferroni): one of a
/// result, three where there are processor times. Of what is measured of the machine and the
/// runtime, a quarter is allowed for, which another process may explain. What changed by less than
/// 20 ns is the same.
BaselineComparison compare_baselines(const std::vector<MeasuredResult>& base,
                                     const std::vector<MeasuredResult>& fresh, double margin);

/// "gemm f16 m=1 n=2 k=3 layout=nt, winner": what is measured, for people.
std::string subject_text(const Subject& subject);

}  // namespace greta::tuner
