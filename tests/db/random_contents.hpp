#pragma once

#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "db/merge.hpp"
#include "tests/layers.hpp"

namespace greta::test {

/// A small database in which everything that merging looks at collides often: few devices, drivers,
/// compilers, templates, problems and times; some results uncertified, some without raw samples.
Contents random_contents(std::mt19937_64& random);

/// JSON of what may be damaged: bytes that are no UTF-8 are replaced.
std::string dump(const nlohmann::json& json);

/// Every entry as text, sorted: equal for equal databases.
std::vector<std::string> canonical(const Contents& contents);

}  // namespace greta::test
