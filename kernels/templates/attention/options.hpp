#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/model/operation.hpp"

/// What some models change: the size of values, a window of keys, a limit of the scores, sinks in
/// the sums, log-sum-exps as a second output, caches in pages, and packed sequences.
namespace greta::kernels::attention {

/// Returns the attribute `scale`; auto stands for `usual`, e.g. "1 / sqrt(dim)".
Attribute scale_attribute(std::string_view usual);

/// Returns the attributes `v_dim`, `window`, `softcap`, `sinks`, `lse`, `page_size` and
/// `sequences`.
std::vector<Attribute> option_attributes();

/// Returns the number of keys that a causal query sees at most, or 0 if there is no window.
std::int64_t window_of(const Problem& problem);
/// Returns the limit of the scores, or 0 if there is none.
double softcap_of(const Problem& problem);

/// Returns whether sequences of any lengths are packed.
bool packs_sequences(const Problem& problem);

/// Packed sequences have no pages. A window needs a causal mask.
Result<void> check_options(const Problem& problem);

}  // namespace greta::kernels::attention
