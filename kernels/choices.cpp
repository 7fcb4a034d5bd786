#include "kernels/choices.hpp"

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <utility>

#include "kernels/catalog.hpp"
#include "kernels/model/random.hpp"

namespace greta {
namespace {

/// Gives values in random order, all of them before any comes again.
template <typename T>
class Deck {
 public:
  explicit Deck(std::vector<T> values) : values_(std::move(values)) {}

  const T& draw(std::mt19937_64& random) {
    if (left_ == 0) left_ = values_.size();
    const auto chosen = static_cast<std::size_t>(uniform_below(random, left_));
    std::swap(values_[chosen], values_[--left_]);
    return values_[left_];
  }
  /// Takes the value that was drawn last out of the game.
  void discard() { values_.erase(values_.begin() + static_cast<std::ptrdiff_t>(left_)); }
  bool empty() const { return values_.empty(); }

 private:
  std::vector<T> values_;
  std::size_t left_ = 0;  ///< the first so many have not been drawn in this round
};

/// What the kernels of a problem differ in most.
struct Kind {
  DTypes types;
  std::string variant;
};

struct AttributeDeck {
  const Attribute* attribute;
  Deck<std::string> values;
};

/// One of the dimension's examples, or an extent with few whole tiles: often tiny, often a multiple
/// of 8 so that wide loads are allowed.
std::int64_t random_extent(const Dimension& dimension, std::mt19937_64& random) {
  const auto& examples = dimension.examples;
  if (!examples.empty()) return examples[uniform_below(random, examples.size())];
  constexpr std::uint64_t tiny = 8, most = 160;
  if (uniform_below(random, 4) == 0)
    return 1 + static_cast<std::int64_t>(uniform_below(random, tiny));
  const auto extent = 1 + static_cast<std::int64_t>(uniform_below(random, most));
  return uniform_below(random, 2) == 0 ? extent : (extent + 7) / 8 * 8;
}

class Dealer {
 public:
  Dealer(const KernelTemplate& kernel_template, const DeviceInfo& device, std::string_view variant,
         std::uint64_t seed)
      : template_(kernel_template), device_(device), random_(seed), kinds_(all_kinds(variant)) {
    for (const Attribute& attribute : template_.attributes) {
      if (attribute.packed != nullptr) continue;
      attributes_.push_back(
          {&attribute, Deck(attribute.allowed.empty() ? attribute.examples : attribute.allowed)});
    }
  }

  /// Nothing when no problem has a configuration.
  std::optional<Choice> deal() {
    while (!kinds_.empty()) {
      const Kind kind = kinds_.draw(random_);
      constexpr int hands = 3;  // some attributes don't go with some types
      for (int i = 0; i < hands; ++i) {
        if (auto choice = find(kind)) return choice;
      }
      kinds_.discard();  // not on this device
    }
    return std::nullopt;
  }

 private:
  Deck<Kind> all_kinds(std::string_view variant) {
    std::vector<Kind> kinds;
    for (const DTypes& types : template_.dtypes) {
      for (const Variant& each : template_.variants) {
        if (variant.empty() || each.name == variant) kinds.push_back({types, each.name});
      }
    }
    return Deck(std::move(kinds));
  }

  /// With random extents and strides: most of these are the default.
  Problem problem_of(const DTypes& types,
                     std::vector<std::pair<std::string, std::string>> attributes) {
    Problem problem{template_.name, types.in, types.out, std::move(attributes), {}};
    for (const Dimension& dimension : template_.dimensions) {
      problem.dims.emplace_back(dimension.name, random_extent(dimension, random_));
    }
    for (const Attribute& attribute : template_.attributes) {
      if (attribute.packed == nullptr || uniform_below(random_, 2) == 0) continue;
      const auto values = values_to_test(attribute, problem);
      const std::string& value = values[uniform_below(random_, values.size())];
      if (value == default_value(attribute, problem)) continue;
      problem.attributes.emplace_back(attribute.name, value);
    }
    return problem;
  }

  /// Tries extents until one problem has the variant.
  std::optional<Choice> find(const Kind& kind) {
    std::vector<std::pair<std::string, std::string>> values;
    for (auto& [attribute, deck] : attributes_) {
      const std::string& value = deck.draw(random_);
      if (value != attribute->fallback) values.emplace_back(attribute->name, value);
    }
    constexpr int tries = 60;
    for (int i = 0; i < tries; ++i) {
      Problem problem = problem_of(kind.types, values);
      if (!check_problem(template_, problem)) continue;
      const Space space = template_.space(problem, device_);
      if (space.count(kind.variant) == 0) continue;
      return Choice{std::move(problem), space.sample(kind.variant, random_)};
    }
    return std::nullopt;
  }

  const KernelTemplate& template_;
  const DeviceInfo& device_;
  std::mt19937_64 random_;
  Deck<Kind> kinds_;
  std::vector<AttributeDeck> attributes_;
};

}  // namespace

std::vector<Choice> sample_choices(const KernelTemplate& kernel_template, const Problem& problem,
                                   const DeviceInfo& device, std::string_view variant,
                                   std::size_t count, std::uint64_t seed) {
  const Space space = kernel_template.space(problem, device);
  const std::uint64_t there = variant.empty() ? space.count() : space.count(variant);
  std::mt19937_64 random(seed);
  std::set<Config> drawn;
  std::vector<Choice> choices;
  while (choices.size() < std::min<std::uint64_t>(count, there)) {
    const Config config = variant.empty() ? space.sample(random) : space.sample(variant, random);
    if (drawn.insert(config).second) choices.push_back({problem, config});
  }
  return choices;
}

std::vector<Choice> random_choices(const KernelTemplate& kernel_template, const DeviceInfo& device,
                                   std::string_view variant, std::size_t count,
                                   std::uint64_t seed) {
  Dealer dealer(kernel_template, device, variant, seed);
  std::vector<Choice> choices;
  while (choices.size() < count) {
    auto choice = dealer.deal();
    if (!choice) break;
    choices.push_back(*std::move(choice));
  }
  return choices;
}

}  // namespace greta
