#pragma once

#include <filesystem>
#include <string>

#include "db/tuned_db.hpp"
#include "tests/layers.hpp"

namespace greta::test {

/// Text that would do harm where it is read as HTML or as the end of a script.
inline const std::string hostile =
    "</script><img src=x onerror=\"window.harmed=1\"><!--\xe2\x80\xa8{b|'&amp;}";

/// Returns two views of one card, through HIP and Vulkan, and a hostile device.
DeviceInfo page_device(Api api);
DeviceInfo hostile_device();

/// Returns the trial number `i` of a search: its time follows from its parameters, and some fail.
Trial page_trial(int i);

/// Writes a database: searches with trials of a GEMM through two APIs, results of several shapes,
/// one of which stands for its default, ceilings, and texts that are hostile wherever text is free.
void write_page_database(const std::filesystem::path& file);
/// Adds a search of its own to a database, which is made if it does not exist. It begins at a time
/// of its own, or with the sample's other searches.
void add_page_search(const std::filesystem::path& file, int trials = 240,
                     const std::string& started_utc = {});
/// Writes a database of one search in which every trial failed, so that views have nothing to draw.
void write_empty_page_database(const std::filesystem::path& file);
/// Writes two CSV files of the same benchmarks: in the second, one is slower and one faster, and
/// the environment has hostile names.
void write_page_baselines(const std::filesystem::path& before, const std::filesystem::path& after);
/// Writes a trace of three passes, with hostile names and events that are none of a trace.
void write_page_trace(const std::filesystem::path& file);

}  // namespace greta::test
