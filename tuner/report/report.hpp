#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tuner/measure/measured_result.hpp"
#include "tuner/session/contest.hpp"
#include "tuner/session/session.hpp"

namespace greta::tuner {

/// Returns the statistics of a winner's kernels: "gemm/tiled: 128 registers, 32 KiB shared memory";
/// empty if the compiler reports none.
std::string kernels_text(const std::vector<KernelFigures>& kernels);

/// Returns the minimum work of a problem; none if this build does not know the operation or
/// problem.
Work work_of(const Catalog& catalog, const Problem& problem);

/// Returns a winner with its problem, device and provenance; docs/json.md describes the fields.
nlohmann::json result_json(const StoredWinner& stored);

/// Returns "1.234× faster, median of paired rounds (95 % interval 1.180 to 1.301)", or that no
/// candidate is significantly faster.
std::string speedup_text(const Winner& winner);

/// Returns the report of a session as text: the winner, its time, rate and fraction of the
/// roofline, the ratio to the default, the error relative to its bound, trials by status, reasons
/// for rejected candidates, and where the result was stored.
std::string report_text(const SessionResult& result, const std::string& database);

/// Returns the report as one JSON object; docs/json.md describes the fields.
nlohmann::json report_json(const SessionResult& result, const std::string& database);

/// Returns whether and by how much one winner is significantly faster than another; devices are
/// named by their ids.
std::string comparison_row(const std::string& faster, const std::string& slower,
                           const Comparison& comparison, std::size_t indent);

/// Returns which device was the fastest for a problem, as text. `sessions` are those of the devices
/// that took part.
std::string contest_text(const std::vector<const SessionResult*>& sessions,
                         const ContestResult& contest);
nlohmann::json contest_json(const std::vector<const SessionResult*>& sessions,
                            const ContestResult& contest);

/// Returns each trial, then the default and the winner as certified.
std::vector<MeasuredResult> measured_results(const SessionResult& result, bool cold,
                                             const std::string& date);
/// Returns each trial of a stored session.
std::vector<MeasuredResult> measured_results(const Catalog& catalog, const StoredSession& session,
                                             const DeviceInfo& device,
                                             const std::vector<Trial>& trials);
/// Returns the default, whose configuration is not stored unless it is the winner, and the winner.
std::vector<MeasuredResult> measured_results(const Catalog& catalog, const StoredWinner& stored);

}  // namespace greta::tuner
