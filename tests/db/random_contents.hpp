#pragma once

#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "db/merge.hpp"
#include "tests/layers.hpp"

namespace greta::test {

/// Returns a small database in which all keys of merging often collide: few devices, drivers,
/// compilers, templates, problems and times; some results uncertified, some without raw samples.
Contents random_contents(std::mt19937_64& random);

/// Returns JSON that may contain damaged text: invalid UTF-8 is replaced.
std::string dump(const nlohmann::json& json);

/// Returns every entry as text, sorted, so that equal databases are equal.
std::vector<std::string> canonical(const Contents& contents);

}  // namespace greta::test
