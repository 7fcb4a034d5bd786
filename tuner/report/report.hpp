#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tuner/measure/measured_result.hpp"
#include "tuner/session/contest.hpp"
#include "tuner/session/session.hpp"

namespace greta::tuner {

/// What is known of a winner's kernels: "gemm/tiled: 128 registers, 32 KiB shared memory"; empty
/// where the compiler says nothing.
std::string kernels_text(const std::vector<KernelFigures>& kernels);

/// The least work of a problem; none where this build has no such operation or problem.
Work work_of(const Catalog& catalog, const Problem& problem);

/// A winner with its problem, device and provenance; fields in docs/json.md.
nlohmann::json result_json(const StoredWinner& stored);

/// What a session found, for people: the winner, its time, rate and share of the roofline, the
/// ratio to the default, the error against its bound, trials by status, why candidates were
/// rejected, and where the result went.
std::string report_text(const SessionResult& result, const std::string& database);

/// The same as one object; fields in docs/json.md.
nlohmann::json report_json(const SessionResult& result, const std::string& database);

/// Whether one winner is faster than another for sure, and by how much; devices by their ids.
std::string comparison_row(const std::string& faster, const std::string& slower,
                           const Comparison& comparison, std::size_t indent);

/// Which of several devices was the fastest for a problem, for people. `sessions`: those that took
/// part.
std::string contest_text(const std::vector<const SessionResult*>& sessions,
                         const ContestResult& contest);
nlohmann::json contest_json(const std::vector<const SessionResult*>& sessions,
                            const ContestResult& contest);

/// Each trial, then the default and the winner as certified.
std::vector<MeasuredResult> measured_results(const SessionResult& result, bool cold,
                                             const std::string& date);
/// Each trial of a stored session.
std::vector<MeasuredResult> measured_results(const Catalog& catalog, const StoredSession& session,
                                             const DeviceInfo& device,
                                             const std::vector<Trial>& trials);
/// The default, whose configuration is not stored where it is not the winner, and the winner.
std::vector<MeasuredResult> measured_results(const Catalog& catalog, const StoredWinner& stored);

}  // namespace greta::tuner
