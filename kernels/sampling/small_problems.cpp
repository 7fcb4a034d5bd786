#include "kernels/sampling/small_problems.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>

#include "kernels/model/problem_rules.hpp"
#include "kernels/model/random.hpp"
#include "kernels/sampling/coverage.hpp"
#include "kernels/sampling/random_problem.hpp"

namespace greta::kernels {
namespace {

/// Weights features by how likely they reveal an error. A rest after whole parts has more kinds of
/// edges than less than one part, and extents equal to their default hide swapped operands.
int worth(DivisionCase one) {
  return one == DivisionCase::rest ? 3 : 1;
}

int worth(const Feature& feature) {
  return feature.ends_with(" other") ? 3 : 1;
}

/// Returns the number of dimensions that became 1, which hides errors in products with their index.
int lost_extents(const Problem& problem, const Problem& given) {
  int lost = 0;
  for (std::size_t i = 0; i < problem.dims.size(); ++i) {
    lost += problem.dims[i].second == 1 && given.dims[i].second > 1 ? 1 : 0;
  }
  return lost;
}

/// Returns an extent in parts of this length, half of the time one or two elements next to whole
/// parts, where loops of kernels end.
std::int64_t extent_at_parts(std::int64_t part, std::mt19937_64& random) {
  constexpr std::int64_t rests[] = {-1, 1, 1, 2};
  const std::int64_t extent = extent_in_parts(part, random);
  if (extent < part || uniform_below(random, 2) == 0) return extent;
  return extent / part * part + rests[uniform_below(random, std::size(rests))];
}

/// Returns the plan of another problem if the configuration runs the same kernels on it.
std::optional<LaunchPlan> plan_with_kernels_of(const LaunchPlan& plan, const Operation& operation,
                                               const Problem& problem, const DeviceInfo& device,
                                               const Config& config) {
  auto other = operation.plan(problem, device, config);
  if (!other || !same_kernels(plan, *other)) return std::nullopt;
  return *std::move(other);
}

}  // namespace

bool same_kernels(const LaunchPlan& a, const LaunchPlan& b) {
  return std::equal(a.sources.begin(), a.sources.end(), b.sources.begin(), b.sources.end(),
                    [](const KernelSource& x, const KernelSource& y) {
                      return x.language == y.language && x.text == y.text && x.entry == y.entry &&
                             x.options == y.options && x.block == y.block &&
                             x.required_subgroup_size == y.required_subgroup_size &&
                             x.argument_bytes == y.argument_bytes && x.call == y.call &&
                             x.dynamic_shared_bytes == y.dynamic_shared_bytes;
                    });
}

SmallProblems::SmallProblems(const Operation& operation, const Problem& problem,
                             const DeviceInfo& device, std::uint64_t seed, const Config& first,
                             const LaunchPlan& plan, const Extent& extent)
    : operation_(operation),
      device_(device),
      problem_(problem),
      seed_(seed),
      most_threads_(extent.most_threads) {
  draw(first, plan, extent);
}

std::vector<SmallProblems::FreeValue> SmallProblems::free_values(const Config& config,
                                                                 const LaunchPlan& plan) const {
  std::vector<FreeValue> list;
  for (const Attribute& attribute : operation_.attributes) {
    if (attribute.packed != nullptr) continue;
    for (const std::string& value : values_to_test(attribute, problem_)) {
      const Problem other = with_attribute(operation_, problem_, attribute, value);
      if (check_problem(operation_, other) &&
          plan_with_kernels_of(plan, operation_, other, device_, config)) {
        list.push_back({&attribute, value});
      }
    }
  }
  return list;
}

// Returns whether every other extent of a dimension that the configuration supports changes its
// kernels.
bool SmallProblems::reaches_text(std::size_t dimension, const Config& config,
                                 const LaunchPlan& plan) const {
  const std::int64_t extent = problem_.dims[dimension].second;
  bool other_kernels = false;
  for (const std::int64_t other : {extent - 1, extent + 1, extent + 8, extent * 2, extent / 2,
                                   extent / 8 * 4, std::int64_t{1}}) {
    Problem changed = problem_;
    changed.dims[dimension].second = other;
    if (other == extent || !check_problem(operation_, changed)) continue;
    const auto other_plan = operation_.plan(changed, device_, config);
    if (!other_plan) continue;
    if (same_kernels(plan, *other_plan)) return false;
    other_kernels = true;
  }
  return other_kernels;
}

std::vector<std::vector<std::int64_t>> SmallProblems::parts_of(const Config& config) const {
  std::vector<std::vector<std::int64_t>> parts(problem_.dims.size());
  const Variant& variant = operation_.variant(config.variant);
  if (!variant.divisions) return parts;
  for (const Division& one : variant.divisions(operation_.shape(problem_), config)) {
    for (std::size_t j = 0; j < parts.size(); ++j) {
      if (one.part > 1 && one.extent == problem_.dims[j].second) parts[j].push_back(one.part);
    }
  }
  return parts;
}

// Replaces extents by those of a random problem, or by the configuration's own parts, or reduces
// them slightly; in up to half of the problems, one extent has parts and the others are tiny, so
// that it may have many. Extents that are compiled into the kernels mostly stay, since changing one
// changes all kernels.
void SmallProblems::draw(const Config& config, const LaunchPlan& plan, const Extent& bounds) {
  const WorkLimit& limit = bounds.limit;
  const auto values = free_values(config, plan);
  for (std::size_t i = 0; i < problem_.dims.size(); ++i) {
    fixed_.push_back(reaches_text(i, config, plan));
  }
  const auto parts = parts_of(config);
  std::mt19937_64 random(seed_);
  const auto one_of = [&](const std::vector<std::int64_t>& list) {
    return list[uniform_below(random, list.size())];
  };
  const auto chance = [&](std::uint64_t share, std::uint64_t of) {
    return uniform_below(random, of) < share;
  };
  for (std::size_t i = 0; i < bounds.attempts && drawn_.size() < bounds.most_drawn; ++i) {
    Problem problem = problem_;
    const auto part = chance(1, 3) ? std::int64_t{16} << uniform_below(random, 5) : 0;
    const Problem other =
        random_problem(operation_, {problem.dtype, problem.out_dtype}, {}, limit, random, part);
    const auto deep = static_cast<std::size_t>(uniform_below(random, problem.dims.size()));
    const bool is_deep = !fixed_[deep] && !parts[deep].empty() && chance(1, 2);
    for (std::size_t j = 0; j < problem.dims.size(); ++j) {
      auto& extent = problem.dims[j].second;
      if (is_deep && !fixed_[j]) {
        extent = j == deep ? extent_at_parts(one_of(parts[j]), random)
                           : operation_.dimensions[j].least +
                                 static_cast<std::int64_t>(uniform_below(random, 3));
        continue;
      }
      if (!chance(1 + i % 3, fixed_[j] ? 32 : 4)) continue;
      if (!parts[j].empty() && chance(1, 2)) {
        extent = extent_at_parts(one_of(parts[j]), random);
        continue;
      }
      const auto less = static_cast<std::int64_t>(1 + uniform_below(random, 24));
      // Kernels are specialised for stores of four elements and for wide loads.
      const std::int64_t step = chance(1, 2) ? 4 : 1;
      // An optional dimension of the given problem may be missing in the other one.
      extent = chance(1, 3) ? std::max(operation_.dimensions[j].least, extent - less)
                            : other.dim(problem.dims[j].first, 2);
      if (extent > step) extent -= extent % step;
    }
    for (const auto& [attribute, value] : values) {
      if (chance(1, 2)) problem = with_attribute(operation_, problem, *attribute, value);
    }
    for (int halvings = 0; halvings < 40 && !limit.allows(operation_, problem); ++halvings) {
      const auto j = static_cast<std::size_t>(uniform_below(random, problem.dims.size()));
      auto& extent = problem.dims[j].second;
      if (is_deep && j == deep && halvings < 20) continue;
      if (!fixed_[j] && extent / 2 >= operation_.dimensions[j].least) extent /= 2;
    }
    if (operation_.checks.odd > 0 && i % 2 == 0) make_odd(problem);
    if (problem == problem_ || !check_problem(operation_, problem)) continue;
    if (limit.allows(operation_, problem)) keep(std::move(problem));
  }
  own_features_ = feature_indices(problem_);
}

bool SmallProblems::varies(std::size_t dimension) const {
  const Dimension& d = operation_.dimensions[dimension];
  return !fixed_[dimension] && d.least < d.most;
}

void SmallProblems::make_odd(Problem& problem) const {
  for (std::size_t j = 0; j < problem.dims.size(); ++j) {
    auto& extent = problem.dims[j].second;
    if (varies(j) && extent % 2 == 0) extent += extent < operation_.dimensions[j].most ? 1 : -1;
  }
}

void SmallProblems::keep(Problem problem) {
  Drawn drawn{problem, operation_.shape(problem), feature_indices(problem),
              lost_extents(problem, problem_), true};
  for (std::size_t j = 0; j < problem.dims.size(); ++j) {
    if (varies(j) && problem.dims[j].second % 2 == 0) drawn.odd = false;
  }
  drawn_.push_back(std::move(drawn));
}

std::vector<std::size_t> SmallProblems::feature_indices(const Problem& problem) {
  std::vector<std::size_t> indices;
  for (const Feature& one : problem_features(operation_, problem, "")) {
    const auto [known, added] = known_.emplace(one, worth_.size());
    if (added) worth_.push_back(worth(one));
    indices.push_back(known->second);
  }
  return indices;
}

// Each class of an extent that was drawn is as likely as the others, however few problems have it.
std::optional<SmallProblems::Wish> SmallProblems::wish() const {
  std::vector<Wish> all;
  for (std::size_t j = 0; j < problem_.dims.size(); ++j) {
    std::set<int> classes;
    for (const Drawn& drawn : drawn_) {
      if (varies(j) && j < drawn.problem.dims.size())
        classes.insert(remainder_class(drawn.problem.dims[j].second));
    }
    for (const int one : classes) all.push_back({j, one});
  }
  if (all.empty()) return std::nullopt;
  return all[mix64(seed_ + 1) % all.size()];
}

// Features of parameters are those of the given problem, so only cases of divisions depend on the
// configuration.
int SmallProblems::gain(const Drawn& drawn, const std::vector<Division>& divisions,
                        const Seen& seen, std::optional<std::size_t> deep,
                        const std::optional<Wish>& wish) const {
  constexpr int of_parts = 16, of_wish = 4;
  int gain = -drawn.lost_extents;
  if (wish && wish->dimension < drawn.problem.dims.size() &&
      remainder_class(drawn.problem.dims[wish->dimension].second) == wish->remainder)
    gain += of_wish;
  if (deep) gain += of_parts * log2_of_parts(divisions[*deep]);
  for (const std::size_t one : drawn.features) gain += seen.features[one] ? 0 : worth_[one];
  for (std::size_t i = 0; i < divisions.size(); ++i) {
    const auto one = case_of(divisions[i]);
    if (one && !seen.cases.contains({i, *one})) gain += worth(*one);
  }
  return gain;
}

void SmallProblems::see(const std::vector<std::size_t>& features,
                        const std::vector<Division>& divisions, Seen& seen) {
  for (const std::size_t one : features) seen.features[one] = true;
  for (std::size_t i = 0; i < divisions.size(); ++i) {
    if (const auto one = case_of(divisions[i])) seen.cases.emplace(i, *one);
  }
}

std::vector<std::size_t> SmallProblems::in_order(
    const std::vector<bool>& tried, bool odd, const std::vector<std::vector<Division>>& divisions,
    const Seen& seen, bool deep) const {
  std::optional<std::size_t> deepest;
  if (deep && !divisions.empty() && !divisions.front().empty())
    deepest = mix64(seed_) % divisions.front().size();
  const auto wished = deep ? std::nullopt : wish();
  std::vector<std::pair<int, std::size_t>> order;  // gain, index
  for (std::size_t i = 0; i < drawn_.size(); ++i) {
    if (!tried[i] && (!odd || drawn_[i].odd)) {
      order.emplace_back(gain(drawn_[i], divisions[i], seen, deepest, wished), i);
    }
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::size_t> indices;
  for (const auto& [gain, i] : order) indices.push_back(i);
  return indices;
}

std::vector<SmallProblem> SmallProblems::with_kernels_of(const Config& config,
                                                         const LaunchPlan& plan,
                                                         std::size_t count) const {
  const Variant& variant = operation_.variant(config.variant);
  std::vector<std::vector<Division>> divisions;
  for (const Drawn& drawn : drawn_) divisions.push_back(variant.divisions(drawn.shape, config));
  Seen seen{std::vector<bool>(worth_.size()), {}};
  see(own_features_, variant.divisions(operation_.shape(problem_), config), seen);
  std::vector<SmallProblem> chosen;
  std::vector<bool> tried(drawn_.size());
  bool odd = true;  // there may be more
  while (chosen.size() < count) {
    const bool wants_odd = odd && chosen.size() < operation_.checks.odd;
    const std::size_t before = chosen.size();
    for (const std::size_t i :
         in_order(tried, wants_odd, divisions, seen, count > 1 && chosen.size() + 1 == count)) {
      tried[i] = true;
      const bool again = std::any_of(chosen.begin(), chosen.end(), [&](const SmallProblem& one) {
        return one.problem == drawn_[i].problem;
      });
      if (again) continue;
      auto plan_there = plan_with_kernels_of(plan, operation_, drawn_[i].problem, device_, config);
      if (!plan_there || launched_threads(*plan_there) > most_threads_) continue;
      see(drawn_[i].features, divisions[i], seen);
      chosen.push_back({drawn_[i].problem, *std::move(plan_there)});
      break;
    }
    if (chosen.size() > before) continue;
    if (!wants_odd) break;
    odd = false;
  }
  return chosen;
}

}  // namespace greta::kernels
