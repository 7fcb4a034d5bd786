#include "tests/kernels/compiled/samples.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <set>

#include "kernels/model/problem_rules.hpp"
#include "runtime/device/text/hash.hpp"
#include "tests/catalog.hpp"

namespace greta::test {
namespace {

using Random = std::mt19937_64;

template <typename T>
const T& pick(const std::vector<T>& values, Random& random) {
  return values[random() % values.size()];
}

/// Returns a problem of this size and these types. Its attributes are drawn until they are valid
/// for the types; of those that seldom are, the ones that the others allow are kept.
Problem problem(const Operation& entry, const DTypes& types, const TypicalSize& size,
                Random& random) {
  Problem plain{entry.name, types.in, types.out, {}, {}};
  for (std::size_t i = 0; i < size.extents.size(); ++i)
    plain.dims.emplace_back(entry.dimensions[i].name, size.extents.at(i));
  Problem drawn;
  for (int tries = 0; tries == 0 || (tries < 100 && !check_problem(entry, drawn)); ++tries) {
    drawn = plain;
    for (const Attribute& attribute : entry.attributes) {
      const std::string value = pick(values_to_test(attribute, drawn), random);
      if (value == default_value(attribute, drawn)) continue;
      drawn.attributes.emplace_back(attribute.name, value);
    }
  }
  if (check_problem(entry, drawn)) return drawn;
  for (const auto& attribute : drawn.attributes) {
    plain.attributes.push_back(attribute);
    if (!check_problem(entry, plain)) plain.attributes.pop_back();
  }
  return plain;
}

/// Returns every variant that one of the sizes has on this device.
const std::set<std::string>& variants(const Operation& entry, const DeviceInfo& device) {
  static std::map<std::pair<std::string, std::string>, std::set<std::string>> known;
  const auto [found, is_new] = known.try_emplace({entry.name, device.architecture});
  std::set<std::string>& names = found->second;
  if (!is_new) return names;
  Random random(1);
  for (const DTypes& types : entry.dtypes) {
    for (const auto& size : entry.sizes) {
      const Space space = entry.space(problem(entry, types, size, random), device);
      for (const Alternative& alternative : space.alternatives()) {
        const std::string& name = alternative.variant;
        if (!names.contains(name) && space.count(name) > 0) names.insert(name);
      }
    }
  }
  return names;
}

/// A configuration that `constraint` alone rejects, next to a valid one; nothing where few are.
std::optional<Config> just_rejected(const Alternative& all, const std::string& constraint,
                                    Random& random) {
  Alternative others = all;
  std::erase_if(others.constraints, [&](const Constraint& c) { return c.name == constraint; });
  if (others.constraints.size() == all.constraints.size()) return std::nullopt;
  const Space wider({others});
  const auto valid = [&](const Config& config) { return !rejects(all, config); };
  for (int tries = 0; tries < 1000 && wider.count() > 0; ++tries) {
    const Choice drawn = wider.choice(random() % wider.count());
    if (valid(wider.config(drawn))) continue;
    for (const Choice& near : wider.neighbours(drawn, true)) {
      if (valid(wider.config(near))) return wider.config(drawn);
    }
  }
  return std::nullopt;
}

}  // namespace

bool has_variant(const Operation& entry, const std::string& variant, const DeviceInfo& device) {
  return variants(entry, device).contains(variant);
}

/// Returns a generator of an operation's own: what others draw does not change its samples.
Random random_of(const Operation& operation, std::uint64_t seed) {
  return Random(Hash().add(operation.name).low() + seed);
}

void for_each_default(const DeviceInfo& device, const Sizes& sizes, const Visit& visit) {
  std::size_t number = 0;
  std::size_t turn = Hash().add(device.architecture).low() % 1000;
  for (const Operation& entry : catalog()) {
    Random random = random_of(entry, sizes.seed);
    const auto& types = entry.dtypes;
    for (const auto& size : entry.sizes) {
      const bool is_taken = number++ % sizes.step == sizes.first;
      for (std::size_t i = 0; i < (sizes.all ? types.size() : 1); ++i) {
        const Problem wanted = problem(entry, types[turn++ % types.size()], size, random);
        ASSERT_TRUE(check_problem(entry, wanted)) << wanted.key();
        if (is_taken) visit(entry, wanted, entry.default_config(wanted, device));
      }
    }
  }
}

void for_each_sample(const DeviceInfo& device, int each, const Visit& visit) {
  for (const Operation& entry : catalog()) {
    Random random = random_of(entry, 11);
    for (const std::string& variant : variants(entry, device)) {
      int sampled = 0;
      // Some variants are for one of several types, and need values of several attributes.
      for (int tries = 0; sampled < each && tries < 400 * each; ++tries) {
        const Problem wanted =
            problem(entry, pick(entry.dtypes, random), pick(entry.sizes, random), random);
        if (!check_problem(entry, wanted)) continue;
        const Space space = entry.space(wanted, device);
        if (space.count(variant) == 0) continue;
        visit(entry, wanted, space.sample(variant, random));
        ++sampled;
      }
      EXPECT_EQ(sampled, each) << entry.name << ' ' << variant;
    }
  }
}

void for_each_rejected(const DeviceInfo& device, const std::string& constraint, int each,
                       const Visit& visit) {
  for (const Operation& entry : catalog()) {
    Random random = random_of(entry, 17);
    for (const std::string& variant : variants(entry, device)) {
      int sampled = 0;
      for (int tries = 0; sampled < each && tries < 10 * each; ++tries) {
        const Problem wanted =
            problem(entry, pick(entry.dtypes, random), pick(entry.sizes, random), random);
        if (!check_problem(entry, wanted)) continue;
        const auto config = just_rejected(entry.variant(variant).space(entry.shape(wanted), device),
                                          constraint, random);
        if (!config) continue;
        visit(entry, wanted, *config);
        ++sampled;
      }
    }
  }
}

}  // namespace greta::test
