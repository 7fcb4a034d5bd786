#include "runtime/pipeline/llama/batch_scheduler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "runtime/device/result.hpp"
#include "runtime/pipeline/compute/refuse.hpp"

namespace greta::runtime {
namespace {

constexpr std::int64_t lane_sizes[] = {1, 16, 64, 256};
/// A pass has lanes of the most tokens whose padding is at most this much more than the least.
constexpr double near_least_padding = 0.9;

void check_between(const char* what, std::int64_t value, std::int64_t least, std::int64_t most) {
  if (value >= least && value <= most) return;
  refuse(fmt::format("{} {}: must be between {} and {}", what, value, least, most));
}

}  // namespace

LlamaBatchOptions LlamaBatchOptions::for_model(const LlamaConfig& config) const {
  LlamaBatchOptions options = *this;
  if (options.capacity == 0) options.capacity = config.max_positions;
  check_between("sequences", options.sequences, 1, 65536);
  check_between("tokens of a pass", options.most_rows, 1, 1 << 20);
  check_between("a capacity of tokens", options.capacity, 1, config.max_positions);
  constexpr std::int64_t pages_of[] = {16, 32, 64, 128, 256};
  if (std::find(std::begin(pages_of), std::end(pages_of), options.page) == std::end(pages_of)) {
    refuse(fmt::format("pages of {} tokens: must be 16, 32, 64, 128 or 256", options.page));
  }
  if (options.pages == 0) options.pages = options.sequences * options.pages_of_sequence();
  check_between("pages", options.pages, 1,
                std::numeric_limits<std::int32_t>::max() / options.page - 1);
  return options;
}

std::vector<std::int64_t> llama_lane_tokens(const LlamaBatchOptions& options) {
  std::vector<std::int64_t> sizes;
  const std::int64_t most = std::min(options.most_rows, options.pages_of_sequence() * options.page);
  for (const std::int64_t size : lane_sizes) {
    if (size <= most) sizes.push_back(size);
  }
  return sizes;
}

std::vector<std::int64_t> llama_lane_counts(const LlamaBatchOptions& options, std::int64_t tokens) {
  const std::int64_t most = tokens == 1 ? options.sequences : options.most_rows / tokens;
  std::vector<std::int64_t> counts;
  for (std::int64_t count = 1; count < most; count *= 2) counts.push_back(count);
  counts.push_back(most);
  return counts;
}

std::vector<LlamaPassShape> llama_batch_shapes(const LlamaBatchOptions& options) {
  std::vector<LlamaPassShape> shapes;
  for (const std::int64_t tokens : llama_lane_tokens(options)) {
    for (const std::int64_t lanes : llama_lane_counts(options, tokens)) {
      shapes.push_back({lanes, tokens, options.pages_of_sequence()});
    }
  }
  return shapes;
}

std::int32_t LlamaSequence::token(std::int64_t i) const {
  const std::int64_t after = i - prompt_size();
  return after < 0 ? request.prompt[static_cast<std::size_t>(i)]
                   : generated[static_cast<std::size_t>(after)];
}

BatchScheduler::BatchScheduler(const LlamaBatchOptions& options)
    : options_(options), pool_(options.pages, options.page) {}

std::size_t BatchScheduler::add(LlamaRequest request) {
  const auto size = static_cast<std::int64_t>(request.prompt.size());
  if (size == 0) refuse("there are no tokens to feed");
  if (request.tokens < 1) refuse(fmt::format("{} tokens to generate", request.tokens));
  if (size > options_.capacity) {
    refuse(fmt::format("{} tokens are more than the KV capacity of {}", size, options_.capacity));
  }
  LlamaSequence sequence{std::move(request)};
  // The last token that is generated needs no slot.
  const std::int64_t most = std::min(options_.capacity - size + 1, sequence.request.tokens);
  if (pool_.pages_of(size + most - 1) > pool_.size()) {
    refuse(fmt::format("{} tokens of a sequence need {} pages, all sequences have {}",
                       size + most - 1, pool_.pages_of(size + most - 1), pool_.size()));
  }
  waiting_.push_back(sequences_.size());
  sequences_.push_back(std::move(sequence));
  return sequences_.size() - 1;
}

/// Gives pages to those that wait, one after the other.
void BatchScheduler::admit() {
  while (!waiting_.empty() && static_cast<std::int64_t>(running_.size()) < options_.sequences) {
    LlamaSequence& first = sequences_[waiting_.front()];
    const std::int64_t size = first.prompt_size();
    const std::int64_t most = std::min(options_.capacity - size + 1, first.request.tokens);
    auto lease = pool_.take(first.request.prompt, size + most - 1);
    if (!lease) break;
    first.fed = first.shared = lease->shared;
    first.lease = *std::move(lease);
    first.admitted = true;
    running_.push_back(waiting_.front());
    waiting_.pop_front();
  }
  most_pages_ = std::max(most_pages_, pool_.size() - pool_.free());
}

/// Returns lanes of this number of tokens for the prompts that are not fed, one after the other, so
/// that no sequence's pages are read before those that it shares are written. Ends where padding
/// would be beyond the cache.
std::vector<BatchLane> BatchScheduler::prompt_lanes(std::int64_t tokens) const {
  const auto most = static_cast<std::size_t>(llama_lane_counts(options_, tokens).back());
  const std::int64_t slots = options_.pages_of_sequence() * options_.page;
  std::vector<BatchLane> lanes;
  for (const std::size_t number : running_) {
    const LlamaSequence& sequence = sequences_[number];
    for (std::int64_t first = sequence.fed; first < sequence.prompt_size(); first += tokens) {
      if (lanes.size() == most || first + tokens > slots) return lanes;
      const std::int64_t count = std::min(tokens, sequence.prompt_size() - first);
      lanes.push_back({number, first, count, first + count == sequence.prompt_size()});
    }
  }
  return lanes;
}

BatchPass BatchScheduler::prompt_pass() const {
  BatchPass best;
  double best_use = 0;
  // From the least padding to the most tokens in a lane, whose attention reads keys fewer times.
  for (const std::int64_t tokens : llama_lane_tokens(options_)) {
    std::vector<BatchLane> lanes = prompt_lanes(tokens);
    if (lanes.empty()) continue;
    const auto counts = llama_lane_counts(options_, tokens);
    const std::int64_t count =
        *std::lower_bound(counts.begin(), counts.end(), static_cast<std::int64_t>(lanes.size()));
    std::int64_t fed = 0;
    for (const BatchLane& lane : lanes) fed += lane.count;
    const double use = static_cast<double>(fed) / static_cast<double>(count * tokens);
    // Lanes of one token have no padding, but feed few.
    if (best.shape.tokens > 1 && use < near_least_padding * best_use) continue;
    best_use = best.shape.tokens > 1 ? std::max(best_use, use) : use;
    best = {{count, tokens, options_.pages_of_sequence()}, std::move(lanes), true};
  }
  return best;
}

std::optional<BatchPass> BatchScheduler::next() {
  admit();
  if (running_.empty()) return std::nullopt;
  const auto fed = [&](std::size_t number) {
    return sequences_[number].fed >= sequences_[number].prompt_size();
  };
  if (!std::all_of(running_.begin(), running_.end(), fed)) return prompt_pass();
  BatchPass pass;
  for (const std::size_t number : running_) pass.lanes.push_back({number, sequences_[number].fed});
  const auto counts = llama_lane_counts(options_, 1);
  pass.shape = {
      *std::lower_bound(counts.begin(), counts.end(), static_cast<std::int64_t>(pass.lanes.size())),
      1, options_.pages_of_sequence()};
  return pass;
}

void BatchScheduler::end(LlamaSequence& sequence, SequenceEnd why) {
  sequence.end = why;
  pool_.give_back(sequence.lease);
  sequence.lease = {};
}

std::vector<std::size_t> BatchScheduler::finish(const BatchPass& pass,
                                                std::span<const std::int32_t> tokens) {
  // Nothing is changed where the pass can't be finished.
  for (std::size_t i = 0; i < pass.lanes.size(); ++i) {
    const BatchLane& lane = pass.lanes[i];
    if (!lane.gives_token || tokens[i] >= 0) continue;
    throw Error(fmt::format("sequence {}: no logit of its token {} is above -infinity",
                            lane.sequence, lane.first + lane.count - 1));
  }
  std::vector<std::size_t> changed;
  for (std::size_t i = 0; i < pass.lanes.size(); ++i) {
    const BatchLane& lane = pass.lanes[i];
    LlamaSequence& sequence = sequences_[lane.sequence];
    sequence.fed = lane.first + lane.count;
    if (!lane.gives_token) continue;
    changed.push_back(lane.sequence);
    const auto& ends = sequence.request.ends;
    if (std::find(ends.begin(), ends.end(), tokens[i]) != ends.end()) {
      end(sequence, SequenceEnd::end);
      continue;
    }
    sequence.generated.push_back(tokens[i]);
    if (static_cast<std::int64_t>(sequence.generated.size()) == sequence.request.tokens) {
      end(sequence, SequenceEnd::tokens);
    } else if (sequence.fed == options_.capacity) {
      end(sequence, SequenceEnd::capacity);
    }
  }
  std::erase_if(running_,
                [&](std::size_t number) { return sequences_[number].end != SequenceEnd::none; });
  return changed;
}

}  // namespace greta::runtime
