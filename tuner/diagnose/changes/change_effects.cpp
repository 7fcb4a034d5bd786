#include "tuner/diagnose/changes/change_effects.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/reference/findings.hpp"
#include "tuner/compile/element.hpp"

namespace greta::tuner {

EffectJudge::EffectJudge(const KernelCase& run, std::vector<std::vector<std::byte>> unchanged,
                         const std::vector<std::vector<char>>& marks)
    : unchanged_(std::move(unchanged)) {
  for (std::size_t b = 0; b < run.buffers.size(); ++b) {
    const CaseBuffer& buffer = run.buffers[b];
    if (buffer.expected.empty()) continue;
    const std::size_t at = dtypes_.size();
    dtypes_.push_back(buffer.dtype);
    for (std::size_t i = 0; i < buffer.expected.size(); ++i) {
      if (!marks.empty() && marks[b][i] == 0) continue;
      const double value = load_element(buffer.dtype, unchanged_.at(at).data(), i);
      const bool wrong = !kernels::accepts(buffer.expected[i], value);
      elements_.push_back({at, i, buffer.expected[i], wrong});
      wrong_ += wrong ? 1 : 0;
    }
  }
}

ChangeEffect EffectJudge::effect_of(const std::vector<std::vector<std::byte>>& contents) const {
  if (wrong_ == 0 || contents.size() != unchanged_.size()) return {};
  std::size_t wrong = 0, right = 0, mended = 0;
  std::vector<std::size_t> sizes;
  for (const std::string& dtype : dtypes_) sizes.push_back(element_bytes(dtype));
  for (const Element& one : elements_) {
    const std::string& dtype = dtypes_[one.buffer];
    const std::size_t size = sizes[one.buffer], at = one.index * size;
    const std::byte* const found = contents[one.buffer].data();
    if (std::memcmp(found + at, unchanged_[one.buffer].data() + at, size) == 0) continue;
    ++(one.wrong ? wrong : right);
    if (one.wrong && kernels::accepts(one.expected, load_element(dtype, found, one.index)))
      ++mended;
  }
  const auto share = [](std::size_t part, std::size_t all) {
    return all == 0 ? 0.0F : static_cast<float>(part) / static_cast<float>(all);
  };
  return {true, share(wrong, wrong_), share(right, elements_.size() - wrong_),
          share(mended, wrong_)};
}

void PlaceEvidence::add(Place place, const ChangeEffect& effect) {
  if (!effect.known) return;
  Seen& seen = places_[place];
  ++seen.trials;
  seen.idle += effect.wrong == 0 ? 1 : 0;
  seen.wrong = std::max(seen.wrong, effect.wrong);
  // What only exchanges right and wrong elements mends nothing.
  if (effect.mended > effect.right) seen.mended = std::max(seen.mended, effect.mended);
  seen.apart = seen.apart || (effect.wrong > 0 && effect.right == 0);
}

double PlaceEvidence::worth_of(Place place) const {
  const auto found = places_.find(place);
  if (found == places_.end()) return 0;
  const Seen& seen = found->second;
  constexpr double of_all = 1, of_part = -1, of_mended = 2, apart = 1, of_idle = 0.7;
  constexpr int most_idle = 5;
  constexpr float nearly_all = 0.98F;
  if (seen.wrong == 0) return -of_idle * std::min(seen.trials, most_idle);
  return (seen.wrong >= nearly_all ? of_all : of_part) + (seen.mended > 0 ? of_mended : 0) +
         (seen.apart ? apart : 0);
}

}  // namespace greta::tuner
