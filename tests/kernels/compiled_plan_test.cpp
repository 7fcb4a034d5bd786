// Protects: launches pack their arguments correctly, as seen by a stream that records them.
#include "kernels/launch/compiled_plan.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/layers.hpp"

namespace greta::test::compiled_plan_test {
namespace {

class NamedKernel final : public Kernel {
 public:
  explicit NamedKernel(std::string key) : key_(std::move(key)) {}
  const std::string& content_key() const override { return key_; }
  bool from_cache() const override { return false; }

 private:
  std::string key_;
};

/// Records launches and rejects everything else.
class LaunchKeeper final : public Stream {
 public:
  struct Kept {
    std::string kernel;
    Grid grid;
    std::vector<std::byte> arguments;
    LaunchOrder order = LaunchOrder::in_turn;
  };

  Result<void> launch(const Kernel& kernel, Grid grid, std::span<const std::byte> arguments,
                      LaunchOrder order) override {
    if (launches.size() == most) return Failure{Status::launch, "no more", {}};
    launches.push_back({kernel.content_key(), grid, {arguments.begin(), arguments.end()}, order});
    return {};
  }
  Result<void> copy(Buffer&, std::size_t, const Buffer&, std::size_t, std::size_t) override {
    return refuse();
  }
  Result<void> fill(Buffer&, std::size_t, std::size_t, std::uint32_t) override { return refuse(); }
  Result<void> record(Event&) override { return refuse(); }
  Result<void> replay(const Graph&) override { return refuse(); }
  Result<void> wait(const Event&) override { return refuse(); }
  Result<void> submit() override { return refuse(); }
  Result<void> synchronize(Deadline) override { return refuse(); }
  void discard() override {}

  std::vector<Kept> launches;
  std::size_t most = SIZE_MAX;

 private:
  static Failure refuse() { return {Status::invalid_argument, "not a launch", {}}; }
};

Result<std::shared_ptr<const Kernel>> compile(const KernelSource& source) {
  if (source.name == "bad") return Failure{Status::compile, "bad source", {}};
  return std::shared_ptr<const Kernel>(std::make_shared<NamedKernel>(source.name));
}

KernelSource source(const char* name) {
  KernelSource source;
  source.name = name;
  return source;
}

template <typename T>
T value_at(const std::vector<std::byte>& bytes, std::size_t at) {
  T value{};
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

TEST(CompiledPlan, PacksValuesAtTheirNaturalAlignmentAndAddressesOfEachRun) {
  LaunchPlan plan;
  plan.sources = {source("first"), source("second")};
  plan.workspace_bytes = 512;
  plan.zeroed_bytes = 256;
  plan.launches.push_back(
      {0, {3, 2, 1}, {std::uint32_t{1}, std::uint64_t{2}, 3.0F, std::uint32_t{4}}});
  plan.launches.push_back(
      {1, {7, 1, 1}, {std::uint32_t{9}, OperandArgument{1}, WorkspaceArgument{256}}});
  const auto compiled = CompiledPlan::create(plan, compile).value();
  EXPECT_EQ(compiled.content_keys(), "first,second");
  EXPECT_EQ(compiled.workspace_bytes(), 512U);
  EXPECT_EQ(compiled.zeroed_bytes(), 256U);

  LaunchKeeper stream;
  const std::uint64_t operands[] = {0x1000, 0x2000};
  compiled.record(stream, operands, 0x8000).value();
  const std::uint64_t others[] = {0x1000, 0x3000};
  compiled.record(stream, others, 0x9000).value();
  ASSERT_EQ(stream.launches.size(), 4U);
  const auto& first = stream.launches[0];
  EXPECT_EQ(first.kernel, "first");
  EXPECT_EQ(first.grid, (Grid{3, 2, 1}));
  ASSERT_EQ(first.arguments.size(), 24U);
  EXPECT_EQ(value_at<std::uint32_t>(first.arguments, 0), 1U);
  EXPECT_EQ(value_at<std::uint64_t>(first.arguments, 8), 2U);
  EXPECT_EQ(value_at<float>(first.arguments, 16), 3.0F);
  EXPECT_EQ(value_at<std::uint32_t>(first.arguments, 20), 4U);
  for (const auto& [launch, operand, workspace] :
       {std::tuple{1, 0x2000U, 0x8100U}, std::tuple{3, 0x3000U, 0x9100U}}) {
    const auto& arguments = stream.launches[static_cast<std::size_t>(launch)].arguments;
    ASSERT_EQ(arguments.size(), 24U);
    EXPECT_EQ(value_at<std::uint32_t>(arguments, 0), 9U);
    EXPECT_EQ(value_at<std::uint64_t>(arguments, 8), operand);
    EXPECT_EQ(value_at<std::uint64_t>(arguments, 16), workspace);
  }
}

TEST(CompiledPlan, OverlapsOnlyWhereEarlyOperandsAreConstant) {
  using Orders = std::vector<LaunchOrder>;
  constexpr auto in_turn = LaunchOrder::in_turn, overlapping = LaunchOrder::overlapping;
  LaunchPlan plan;
  plan.sources = {source("any")};
  plan.launches = {{0, {1, 1, 1}, {}}, {0, {1, 1, 1}, {}, {}, {0, 2}}, {0, {1, 1, 1}, {}}};
  const auto compiled = CompiledPlan::create(plan, compile).value();
  const auto orders = [&](const std::vector<bool>& constant, LaunchOrder within = overlapping) {
    LaunchKeeper stream;
    compiled.record(stream, {}, 0, constant, within).value();
    Orders list;
    for (const auto& launch : stream.launches) list.push_back(launch.order);
    return list;
  };
  // Nothing is known of what comes before the plan.
  EXPECT_EQ(orders({}), (Orders{in_turn, overlapping, overlapping}));
  EXPECT_EQ(orders({}, in_turn), (Orders{in_turn, in_turn, in_turn}));
  EXPECT_EQ(orders({true, false, true}), (Orders{overlapping, overlapping, overlapping}));
  EXPECT_EQ(orders({true, true, false}), (Orders{overlapping, in_turn, overlapping}));
  EXPECT_EQ(orders({false, true, true}), (Orders{overlapping, in_turn, overlapping}));
}

TEST(CompiledPlan, PassesFailuresOn) {
  LaunchPlan plan;
  plan.sources = {source("good"), source("bad")};
  EXPECT_EQ(CompiledPlan::create(plan, compile).failure().message, "bad source");

  plan.sources.pop_back();
  plan.launches = {{0, {1, 1, 1}, {}}, {0, {1, 1, 1}, {}}};
  LaunchKeeper stream;
  stream.most = 1;
  const auto done = CompiledPlan::create(plan, compile).value().record(stream, {}, 0);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.failure().message, "no more");

  plan.launches = {{0, {1, 1, 1}, std::vector<Argument>(129, std::uint64_t{0})}};
  EXPECT_EQ(CompiledPlan::create(plan, compile).failure().message,
            "good: 1032 bytes of arguments, a launch takes at most 1024");
}

}  // namespace
}  // namespace greta::test::compiled_plan_test
