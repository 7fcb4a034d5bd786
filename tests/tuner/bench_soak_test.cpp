// Protects: the judgement of soaks, and the comparison of results on the device. A change of the
// time, growth of memory and wrong results are each found, and noise is none of them.

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <random>

#include "kernels/launch/operands.hpp"
#include "runtime/device/backend.hpp"
#include "tests/layers.hpp"
#include "tuner/bench/same_bits.hpp"
#include "tuner/bench/soak.hpp"
#include "tuner/report/soak_report.hpp"

namespace greta::test::bench_soak_test {
namespace {

/// Turns of two kernels, whose times scatter by 2 %.
std::vector<SoakTurn> steady(std::size_t count) {
  std::mt19937 random(1);
  std::normal_distribution<double> scatter(0, 0.02);
  std::vector<SoakTurn> turns;
  for (std::size_t i = 0; i < count; ++i) {
    SoakTurn turn;
    turn.kernel = i % 2;
    turn.at_s = static_cast<double>(i + 1);
    turn.launches = 10;
    turn.median_us = (i % 2 == 0 ? 100 : 1000) * std::exp(scatter(random));
    turn.host_bytes = 1e9;
    turn.device_bytes = 2e9;
    turns.push_back(turn);
  }
  return turns;
}

SoakSummary judged(const std::vector<SoakTurn>& turns) {
  return judge_soak({SoakResult{.benchmark = "a"}, SoakResult{.benchmark = "b"}}, turns, {});
}

TEST(BenchSoak, NoiseIsStable) {
  const auto summary = judged(steady(120));
  EXPECT_EQ(summary.verdict, SoakVerdict::stable);
  EXPECT_EQ(summary.seconds, 120);
  for (const auto& kernel : summary.kernels) {
    EXPECT_EQ(kernel.verdict, SoakVerdict::stable);
    EXPECT_EQ(kernel.launches, 600U);
    EXPECT_TRUE(kernel.drift.contains(1));
  }
  EXPECT_NEAR(summary.kernels[0].median_us, 100, 2);
}

TEST(BenchSoak, AWarmUpIsNoDrift) {
  auto turns = steady(120);
  for (std::size_t i = 0; i < 10; ++i) turns[i].median_us *= 3;
  EXPECT_EQ(judged(turns).verdict, SoakVerdict::stable);
  for (std::size_t i = 0; i < 10; ++i) turns[i].host_growth = 1e9;
  EXPECT_EQ(judged(turns).verdict, SoakVerdict::stable);
}

TEST(BenchSoak, OneKernelThatSlowsDownOrSpeedsUpDrifts) {
  for (const double factor : {1.1, 0.9}) {
    auto turns = steady(120);
    for (std::size_t i = 1; i < turns.size(); i += 2)
      turns[i].median_us *= std::pow(factor, static_cast<double>(i) / 80);
    const auto summary = judged(turns);
    EXPECT_EQ(summary.verdict, SoakVerdict::drifts);
    EXPECT_EQ(summary.kernels[0].verdict, SoakVerdict::stable);
    EXPECT_EQ(summary.kernels[1].verdict, SoakVerdict::drifts);
    EXPECT_EQ(summary.kernels[1].drift.estimate > 1, factor > 1);
  }
  auto few = steady(8);
  for (std::size_t i = 4; i < 8; ++i) few[i].median_us *= 2;
  EXPECT_EQ(judged(few).verdict, SoakVerdict::stable);
  EXPECT_NE(soak_text(judged(few)).find("too few turns"), std::string::npos);
}

TEST(BenchSoak, WhatDoesNotFitIsSkippedAndNoFailure) {
  std::vector<SoakResult> results{{.benchmark = "a"}, {.benchmark = "b"}, {.benchmark = "c"}};
  results[2].failure = Failure{Status::out_of_memory, "no memory", {}};
  results[2].skipped = true;
  const auto summary = judge_soak(results, steady(120), {});
  EXPECT_EQ(summary.verdict, SoakVerdict::stable);
  EXPECT_EQ(summary.kernels[2].verdict, SoakVerdict::skipped);
  EXPECT_NE(soak_text(summary).find("skipped: out_of_memory: no memory"), std::string::npos);
  results[2].skipped = false;
  EXPECT_EQ(judge_soak(results, steady(120), {}).verdict, SoakVerdict::fails);
}

TEST(BenchSoak, OneWrongResultOfManyIsFound) {
  auto turns = steady(120);
  turns[63].wrong = 1;
  const auto summary = judged(turns);
  EXPECT_EQ(summary.verdict, SoakVerdict::wrong_results);
  EXPECT_EQ(summary.kernels[1].verdict, SoakVerdict::wrong_results);
  EXPECT_EQ(summary.kernels[1].first_wrong_s, 64);
  EXPECT_EQ(summary.kernels[0].verdict, SoakVerdict::stable);
}

TEST(BenchSoak, GrowthOfMemoryIsThatOfAKernelOrOfTheDevice) {
  auto turns = steady(120);
  for (std::size_t i = 0; i < turns.size(); ++i) {
    if (turns[i].kernel == 1) turns[i].host_growth = 1 << 20;
    turns[i].host_bytes += static_cast<double>(i / 2) * (1 << 20);
  }
  auto summary = judged(turns);
  EXPECT_EQ(summary.verdict, SoakVerdict::memory_grows);
  EXPECT_EQ(summary.kernels[0].verdict, SoakVerdict::stable);
  EXPECT_EQ(summary.kernels[1].verdict, SoakVerdict::memory_grows);
  EXPECT_NEAR(summary.host_growth, 54 * (1 << 20), 2 << 20);
  turns = steady(120);
  for (std::size_t i = 60; i < turns.size(); ++i) turns[i].device_bytes += 1e8;
  summary = judged(turns);
  EXPECT_EQ(summary.verdict, SoakVerdict::memory_grows);
  EXPECT_EQ(summary.kernels[1].verdict, SoakVerdict::stable);
}

TEST(BenchSoak, SensorsAreSummarised) {
  auto turns = steady(20);
  for (std::size_t i = 0; i < turns.size(); ++i) {
    turns[i].card.sm_mhz = 1980 - static_cast<double>(i);
    turns[i].card.state.celsius = 40 + static_cast<double>(i);
  }
  turns[7].card.state.throttled = "power cap";
  const auto summary = judged(turns);
  EXPECT_EQ(summary.sm_mhz.least, 1961);
  EXPECT_EQ(summary.celsius.most, 59);
  EXPECT_FALSE(summary.watts.last);
  const auto text = soak_text(summary);
  EXPECT_NE(text.find("temperature 59 °C (40 to 59)"), std::string::npos) << text;
  EXPECT_NE(text.find("clocks limited: power cap"), std::string::npos) << text;
  EXPECT_EQ(text.find("power 0"), std::string::npos) << text;
  turns[7].median_us = 1011.25;
  EXPECT_EQ(soak_csv_line(turns[7], "a,b"),
            "8.000,\"a,b\",10,0,1011.25,,1973,,47,,\"power cap\",953.67,1907.35\n");
}

/// Expects that kernels get addresses of whole words, as GPUs need for accesses of words.
class WordStream final : public Stream {
 public:
  explicit WordStream(std::unique_ptr<Stream> stream) : stream_(std::move(stream)) {}
  Result<void> launch(const Kernel& kernel, Grid grid, std::span<const std::byte> arguments,
                      LaunchOrder order) override {
    std::array<std::uint64_t, 3> addresses{};
    std::memcpy(addresses.data(), arguments.data(), sizeof addresses);
    for (const std::uint64_t address : addresses) EXPECT_EQ(address % 4, 0U);
    return stream_->launch(kernel, grid, arguments, order);
  }
  Result<void> copy(Buffer& to, std::size_t to_offset, const Buffer& from, std::size_t from_offset,
                    std::size_t bytes) override {
    return stream_->copy(to, to_offset, from, from_offset, bytes);
  }
  Result<void> fill(Buffer& to, std::size_t offset, std::size_t bytes,
                    std::uint32_t pattern) override {
    return stream_->fill(to, offset, bytes, pattern);
  }
  Result<void> record(Event& event) override { return stream_->record(event); }
  Result<void> replay(const Graph& graph) override { return stream_->replay(graph); }
  Result<void> wait(const Event& event) override { return stream_->wait(event); }
  Result<void> submit() override { return stream_->submit(); }
  Result<void> synchronize(Deadline deadline) override { return stream_->synchronize(deadline); }
  void discard() override { stream_->discard(); }

 private:
  std::unique_ptr<Stream> stream_;
};

/// Outputs whose sizes and first bytes are no multiples of a word, on each software device.
class BenchSameBits : public testing::TestWithParam<std::tuple<const char*, int>> {};

TEST_P(BenchSameBits, EveryByteOfAnOutputCounts) {
  const auto opened = open_device(std::get<0>(GetParam()), {}).value();
  Device& device = *opened;
  WordStream stream(device.create_stream().value());
  std::vector<TensorSpec> specs(3);
  specs[0].name = "in";
  specs[0].role = Role::input;
  specs[0].dtype = DType::f16;
  specs[0].rows = 1;
  specs[0].cols = 8;
  specs[1] = specs[0];
  specs[1].role = Role::output;
  specs[1].cols = 70'001;
  specs[2] = specs[0];
  specs[2].role = Role::input_output;
  specs[2].cols = 3;
  for (TensorSpec& spec : specs) spec.offset = std::get<1>(GetParam());
  auto operands = Operands::create(device, specs).value();
  const auto put = [&](std::size_t tensor, std::size_t at, unsigned char value) {
    const std::byte byte{value};
    operands.upload_part(device, tensor, at, std::span(&byte, 1)).value();
  };
  for (std::size_t tensor : {1, 2}) {
    const std::vector<std::byte> zero(specs[tensor].bytes());
    operands.upload_part(device, tensor, 0, zero).value();
  }
  auto same = SameBits::create(device, stream, operands, 4).value();
  same.keep(stream).value();
  const auto wrong = [&] {
    same.record_clear(stream).value();
    for (std::uint32_t slot = 0; slot < 3; ++slot) same.record_compare(stream, slot).value();
    stream.synchronize(std::chrono::seconds(60)).value();
    return same.wrong(device, 3).value();
  };
  EXPECT_EQ(wrong(), 0U);
  put(0, 0, 1);  // an input
  EXPECT_EQ(wrong(), 0U);
  for (const auto& [tensor, at] : {std::pair<std::size_t, std::size_t>{1, 0},
                                   {1, 70'001},
                                   {1, 140'000},
                                   {1, 140'001},
                                   {2, 0},
                                   {2, 4},
                                   {2, 5}}) {
    put(tensor, at, 1);
    EXPECT_EQ(wrong(), 3U) << tensor << " " << at;
    put(tensor, at, 0);
    EXPECT_EQ(wrong(), 0U);
  }
  // What is read and written gets its input back, without a byte more.
  for (std::size_t at = 0; at < 6; ++at) put(2, at, 7);
  same.record_restore(stream).value();
  EXPECT_EQ(wrong(), 0U);
  EXPECT_EQ(operands.broken_guard(device).value(), std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(Devices, BenchSameBits,
                         testing::Combine(testing::Values("lavapipe", "hip-host:0"),
                                          testing::Values(0, 1)),
                         [](const auto& one) {
                           return std::string(std::get<0>(one.param)[0] == 'l' ? "vulkan"
                                                                               : "hip_host") +
                                  (std::get<1>(one.param) == 0 ? "" : "_between_words");
                         });

}  // namespace
}  // namespace greta::test::bench_soak_test
