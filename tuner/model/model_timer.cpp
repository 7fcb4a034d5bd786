#include "tuner/model/model_timer.hpp"

#include <algorithm>
#include <chrono>
#include <random>

#include "kernels/model/random.hpp"
#include "tuner/measure/statistics.hpp"

namespace greta::tuner::model {
namespace {

using Clock = std::chrono::steady_clock;

double us_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

}  // namespace

double ModelTimes::load_us(const ModelLoad& load) const {
  return median(prefill_us) + static_cast<double>(load.generated_tokens) * median(decode_us);
}

ModelTimer::ModelTimer(Runtime& runtime, const LlamaDeviceWeights& weights,
                       const LlamaOptions& options, const ModelLoad& load, std::uint64_t seed)
    : runtime_(runtime),
      load_(load),
      runner_(std::make_unique<LlamaRunner>(runtime, weights, options)),
      start_(runtime.device().create_event().value()),
      stop_(runtime.device().create_event().value()) {
  std::mt19937_64 random(seed);
  const auto vocab = static_cast<std::uint64_t>(weights.config.vocab);
  for (std::int64_t i = 0; i < load.batch * load.prompt_tokens; ++i) {
    prompt_.push_back(static_cast<std::int32_t>(uniform_below(random, vocab)));
  }
  runner_->prepare(load.prompt_tokens);
}

/// Replays a pass on its last inputs, which changes nothing. Returns its time on the device, or the
/// time the host takes to submit it.
double ModelTimer::replay(std::int64_t tokens, bool host) {
  Queue& queue = runner_->queue();
  const PipelineGraph& pass = runner_->pass(tokens);
  if (host) {
    const auto start = Clock::now();
    queue.replay(pass).value();
    const double us = us_since(start);
    queue.synchronize().value();
    return us;
  }
  queue.stream().record(*start_).value();
  queue.replay(pass).value();
  queue.stream().record(*stop_).value();
  queue.synchronize().value();
  return runtime_.device().elapsed_us(*start_, *stop_).value();
}

void ModelTimer::feed_prompt() {
  runner_->reset();
  runner_->feed(prompt_);
}

void ModelTimer::feed_next() {
  const std::vector<std::int32_t> next(runner_->likeliest().begin(), runner_->likeliest().end());
  runner_->feed(next);
}

void ModelTimer::round(std::int64_t steps) {
  runner_->reset();
  const std::int64_t last = runner_->passes(load_.prompt_tokens).back();
  ModelTimes own;  // this round's times
  auto start = Clock::now();
  feed_prompt();
  times_.prefill_us.push_back(us_since(start));
  times_.prefill_device_us.push_back(replay(last, false));
  for (std::int64_t i = 0; i < std::min(steps, load_.generated_tokens); ++i) {
    start = Clock::now();
    feed_next();
    times_.decode_us.push_back(us_since(start));
    if (i % 8 == 0) {
      times_.decode_device_us.push_back(replay(1, false));
      times_.replay_host_us.push_back(replay(1, true));
    }
    own.decode_us.push_back(times_.decode_us.back());
  }
  own.prefill_us = {times_.prefill_us.back()};
  last_load_us_ = own.load_us(load_);
  last_prompt_us_ = own.prefill_us.front();
  last_token_us_ = median(own.decode_us);
}

void ModelTimer::warm_up(std::int64_t steps) {
  round(steps);
  times_ = {};
}

/// Tokens, and every eighth twice more.
double ModelTimer::round_seconds(std::int64_t steps) const {
  const auto tokens = 1.25 * static_cast<double>(steps);
  return 1e-6 * (2 * last_prompt_us() + tokens * last_token_us());
}

std::vector<LoadPass> ModelTimer::passes() const {
  std::vector<LoadPass> all;
  LoadPass decode{
      {load_.batch, 1}, ModelPhase::decode, static_cast<double>(load_.generated_tokens)};
  for (const std::int64_t tokens :
       llama_passes(load_.prompt_tokens, runner_->capacity(), runner_->most_tokens())) {
    const LlamaPassShape shape{load_.batch, tokens};
    if (shape == decode.shape) {
      decode.times += 1;
      continue;
    }
    const auto same = [&](const LoadPass& one) { return one.shape == shape; };
    const auto known = std::find_if(all.begin(), all.end(), same);
    if (known != all.end()) {
      known->times += 1;
    } else {
      all.push_back({shape, ModelPhase::prompt, 1});
    }
  }
  all.push_back(decode);
  return all;
}

const PipelineGraph& ModelTimer::pass(const LlamaPassShape& shape) {
  return runner_->pass(shape.tokens);
}

const PipelineGraph& ModelTimer::ready(const LoadPass& wanted) {
  feed_prompt();
  if (wanted.phase == ModelPhase::decode) feed_next();
  return pass(wanted.shape);
}

}  // namespace greta::tuner::model
