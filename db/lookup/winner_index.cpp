#include "db/lookup/winner_index.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

namespace greta::db {
namespace {

bool same_family(const Problem& a, const Problem& b) {
  return a.op == b.op && a.dtype == b.dtype && a.out_dtype == b.out_dtype &&
         a.attributes == b.attributes &&
         std::equal(a.dims.begin(), a.dims.end(), b.dims.begin(), b.dims.end(),
                    [](const auto& x, const auto& y) { return x.first == y.first; });
}

/// Appends the dimensions of a key if it has this family's printed form. Otherwise appends nothing
/// and returns false.
bool read_extents(std::string_view key, WinnerIndex::Family& family) {
  if (!key.starts_with(family.prefix)) return false;
  const std::size_t before = family.extents.size();
  const char* at = key.data() + family.prefix.size();
  const char* const end = key.data() + key.size();
  for (const std::string& name : family.names) {
    std::int64_t extent = 0;
    const bool named = static_cast<std::size_t>(end - at) > name.size() &&
                       std::equal(name.begin(), name.end(), at);
    const char* const digits = named ? at + name.size() : end;
    const auto [stop, error] = std::from_chars(digits, end, extent);
    const bool printed = stop - digits == 1 || (digits < end && *digits >= '1' && *digits <= '9');
    const bool is_last = &name == &family.names.back();
    if (!named || error != std::errc() || !printed || (stop == end) != is_last ||
        (!is_last && *stop != ' ')) {
      family.extents.resize(before);
      return false;
    }
    family.extents.push_back(extent);
    at = stop + 1;
  }
  return true;
}

WinnerIndex::Family new_family(Problem problem) {
  WinnerIndex::Family family;
  const std::string key = problem.key();
  family.prefix = key.substr(0, key.size() - problem.dims_text().size());
  for (const auto& [name, extent] : problem.dims) family.names.push_back(name + "=");
  family.problem = std::move(problem);
  return family;
}

}  // namespace

std::span<const std::int64_t> WinnerIndex::Family::extents_of(std::size_t winner) const {
  return std::span(extents).subspan(winner * names.size(), names.size());
}

Problem WinnerIndex::Family::problem_of(std::size_t winner) const {
  Problem one = problem;
  const auto own = extents_of(winner);
  for (std::size_t i = 0; i < own.size(); ++i) one.dims[i].second = own[i];
  return one;
}

bool WinnerIndex::add(std::string_view problem_key, Place place) {
  if (last_ < families_.size() && read_extents(problem_key, families_[last_])) {
    families_[last_].places.push_back(place);
    return true;
  }
  auto problem = Problem::parse(problem_key);
  if (!problem || problem->dims.empty()) return false;
  const auto found = std::find_if(families_.begin(), families_.end(), [&](const Family& family) {
    return same_family(family.problem, *problem);
  });
  last_ = static_cast<std::size_t>(found - families_.begin());
  if (found == families_.end()) families_.push_back(new_family(*problem));
  Family& family = families_[last_];
  for (const auto& [name, extent] : problem->dims) family.extents.push_back(extent);
  family.places.push_back(place);
  return true;
}

const WinnerIndex::Family* WinnerIndex::find(const Problem& problem) const {
  const auto found = std::find_if(families_.begin(), families_.end(), [&](const Family& family) {
    return same_family(family.problem, problem);
  });
  return found == families_.end() ? nullptr : &*found;
}

}  // namespace greta::db
