#include "tuner/bench/benchmark.hpp"

#include <algorithm>

#include "tuner/measure/sampler.hpp"

namespace greta::tuner {
namespace {

std::string_view kind_text(Benchmark::Kind kind) {
  if (kind == Benchmark::Kind::kernel) return "kernel";
  return kind == Benchmark::Kind::platform ? "platform" : "runtime";
}

// Returns the text with spaces replaced by `character`.
std::string with(std::string_view words, char character) {
  std::string text(words);
  std::replace(text.begin(), text.end(), ' ', character);
  return text;
}

}  // namespace

std::string Benchmark::name() const {
  const ProblemWords words = subject.words();
  std::string text = std::string(kind_text(kind)) + "/" + words.op;
  if (!words.dtype.empty()) text += "/" + words.dtype;
  if (words.out_dtype != words.dtype) text += "-" + words.out_dtype;
  if (!words.dims.empty()) text += "/" + with(words.dims, ',');
  if (!words.attributes.empty()) text += "/" + with(words.attributes, ',');
  if (subject.origin != ResultOrigin::measured) text += "/" + with(to_string(subject.origin), '-');
  if (subject.origin == ResultOrigin::chosen) text += "/" + with(subject.config->text(), ',');
  return text;
}

bool check_benchmark(const Benchmark& benchmark, int run, MeasuredResult& result) {
  const Trial trial = benchmark.check(run);
  result.add_verdict(trial.verdict);
  if (!trial.ok()) result.failure = Failure{*trial.failure, trial.message, trial.log};
  return trial.ok();
}

MeasuredResult finished_result(const Benchmark& benchmark, MeasuredResult result) {
  result.subject = benchmark.subject;
  result.work = benchmark.work;
  Measurement all;
  for (const auto& block : result.samples.blocks_us) {
    all.samples_us.insert(all.samples_us.end(), block.begin(), block.end());
  }
  if (all.samples_us.empty()) return result;
  summarise(all);
  result.us = summary_of(all);
  result.count = all.samples_us.size();
  if (benchmark.apart) result.processes = result.samples.blocks_us.size();
  if (all.median_us > 0) result.roofline = benchmark.roofline_us / all.median_us;
  return result;
}

}  // namespace greta::tuner
