#include "tuner/model/mix_timer.hpp"

#include <algorithm>
#include <set>

#include "tuner/measure/stopwatch.hpp"

namespace greta::tuner::model {

namespace {

std::set<LlamaPassShape> shapes_of(const std::map<LlamaPassShape, std::int64_t>& counts) {
  std::set<LlamaPassShape> shapes;
  for (const auto& [shape, count] : counts) shapes.insert(shape);
  return shapes;
}

}  // namespace

MixTimer::MixTimer(Runtime& runtime, const LlamaDeviceWeights& weights,
                   const LlamaBatchOptions& options, const BatchMix& mix, std::uint64_t seed)
    : requests_(requests_of(mix, weights.config.vocab, seed)),
      batch_(std::make_unique<LlamaBatch>(runtime, weights, options)),
      counts_(count_passes(batch_->options(), requests_)) {
  batch_->prepare(shapes_of(counts_));
}

void MixTimer::run() {
  batch_->reset();
  for (const LlamaRequest& request : requests_) batch_->add(request);
  std::vector<double> last(requests_.size(), -1);  // when a sequence got its last token
  double prompt = 0, decode = 0, now = 0;
  const Stopwatch watch;
  while (const auto step = batch_->step()) {
    const double before = now;
    now = 1e6 * watch.seconds();
    (step->pass.prompt ? prompt : decode) += now - before;
    for (const std::size_t number : step->changed) {
      (last[number] < 0 ? times_.first_token_us : times_.token_us)
          .push_back(now - std::max(last[number], 0.0));
      last[number] = now;
    }
  }
  times_.total_us.push_back(now);
  times_.prompt_us.push_back(prompt);
  times_.decode_us.push_back(decode);
  most_pages_ = batch_->scheduler().most_pages();
  shared_tokens_ = 0;
  for (const LlamaSequence& one : batch_->scheduler().sequences()) shared_tokens_ += one.shared;
}

MixPassTimer::MixPassTimer(Runtime& runtime, const LlamaDeviceWeights& weights,
                           const LlamaBatchOptions& options, const BatchMix& mix,
                           std::uint64_t seed)
    : batch_(runtime, weights, options) {
  const auto requests = requests_of(mix, weights.config.vocab, seed);
  const auto counts = count_passes(batch_.options(), requests);
  batch_.prepare(shapes_of(counts));
  record(requests);
}

/// Serves the mix once, and keeps the inputs of each pass's middle run.
void MixPassTimer::record(const std::vector<LlamaRequest>& requests) {
  const auto serve = [&](const auto& visit) {
    batch_.reset();
    for (const LlamaRequest& request : requests) batch_.add(request);
    while (const auto step = batch_.step()) visit(step->pass);
  };
  BatchScheduler plan(batch_.options());
  for (const LlamaRequest& request : requests) plan.add(request);
  const auto timed_of = [&](const BatchPass& pass) -> Timed& {
    const ModelPhase phase = pass.prompt ? ModelPhase::prompt : ModelPhase::decode;
    const auto same = [&](const Timed& one) {
      return one.pass.shape == pass.shape && one.pass.phase == phase;
    };
    const auto known = std::find_if(passes_.begin(), passes_.end(), same);
    return known != passes_.end() ? *known : passes_.emplace_back(Timed{{pass.shape, phase, 0}});
  };
  while (const auto pass = plan.next()) {
    timed_of(*pass).pass.times += 1;
    static_cast<void>(plan.finish(*pass, std::vector<std::int32_t>(pass->lanes.size())));
  }
  std::vector<std::int64_t> seen(passes_.size());
  serve([&](const BatchPass& pass) {
    Timed& timed = timed_of(pass);
    const auto index = static_cast<std::size_t>(&timed - passes_.data());
    if (++seen[index] != static_cast<std::int64_t>(timed.pass.times + 1) / 2) return;
    timed.inputs = batch_.inputs(pass.shape);
  });
}

const PipelineGraph& MixPassTimer::ready(const LoadPass& wanted) {
  for (const Timed& timed : passes_) {
    if (timed.pass.shape != wanted.shape || timed.pass.phase != wanted.phase) continue;
    batch_.set_inputs(timed.inputs);
    break;
  }
  return batch_.pass(wanted.shape);
}

void MixPassTimer::round(std::int64_t) {
  double prompt = 0, decode = 0, decoding = 0;
  for (Timed& timed : passes_) {
    const PipelineGraph& graph = batch_.pass(timed.pass.shape);
    const Stopwatch watch;
    batch_.set_inputs(timed.inputs);
    queue().replay(graph).value();
    queue().synchronize().value();
    timed.us = 1e6 * watch.seconds();
    if (timed.pass.phase == ModelPhase::prompt) {
      prompt += timed.pass.times * timed.us;
    } else {
      decode += timed.pass.times * timed.us;
      decoding += timed.pass.times;
    }
  }
  last_prompt_us_ = prompt;
  last_token_us_ = decode / std::max(decoding, 1.0);
  last_load_us_ = prompt + decode;
}

double MixPassTimer::round_seconds(std::int64_t) const {
  double us = 0;
  for (const Timed& timed : passes_) us += timed.us;
  return 1e-6 * us;
}

std::vector<LoadPass> MixPassTimer::passes() const {
  std::vector<LoadPass> all;
  for (const Timed& timed : passes_) all.push_back(timed.pass);
  return all;
}

}  // namespace greta::tuner::model
