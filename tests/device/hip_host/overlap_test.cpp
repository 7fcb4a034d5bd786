// Protects: on hip-host, a graph's launch that may overlap begins before what is ahead of it and
// sees that after it waits, and no other launch does.

#include "tests/device/hip_host/host_device.hpp"
#include "tests/layers.hpp"

namespace greta::test::overlap_test {
namespace {

/// A kernel that notes what it finds at `x` before and after it waits, and then adds 1 to it.
constexpr const char* watcher = R"(
extern "C" __global__ void test(int* x, int* seen) {
  seen[0] = *x;
  greta_host::await_launches();
  seen[1] = *x;
  ++*x;
})";

class HipHostOverlap : public ::testing::TestWithParam<Imitated> {
 protected:
  std::unique_ptr<Kernel> compile(bool awaits) {
    KernelSource source = HostDevice::source(watcher, {1, 1, 1});
    source.argument_bytes = 16;
    source.awaits_launches = awaits;
    return host_.device().compile(source).value();
  }

  /// Fills x with 10, launches a number of watchers in these orders, and returns what each found.
  std::vector<std::vector<int>> replay(const Graph& graph) {
    const auto stream = host_.device().create_stream().value();
    stream->replay(graph).value();
    stream->synchronize(std::chrono::minutes(1)).value();
    std::vector<std::vector<int>> all;
    for (const auto& each : seen_) all.push_back(host_.download<int>(each));
    return all;
  }
  std::unique_ptr<Graph> record(const Kernel& kernel, const std::vector<LaunchOrder>& orders) {
    seen_.clear();
    for (std::size_t i = 0; i < orders.size(); ++i) seen_.push_back(host_.upload<int>({-1, -1}));
    return host_.device()
        .create_graph([&](Stream& stream) -> Result<void> {
          if (auto done = stream.fill(*x_, 0, 4, 10); !done) return done;
          for (std::size_t i = 0; i < orders.size(); ++i) {
            const ArgumentBlock block(x_, seen_[i]);
            auto done = stream.launch(kernel, {1, 1, 1}, block.bytes(), orders[i]);
            if (!done) return done;
          }
          return {};
        })
        .value();
  }

  HostDevice host_{GetParam()};
  std::unique_ptr<Buffer> x_ = host_.upload<int>({0});
  std::vector<std::unique_ptr<Buffer>> seen_;
};
INSTANTIATE_TEST_SUITE_P(All, HipHostOverlap, ::testing::Values(sm_80, gfx942), imitated_name);

using Found = std::vector<std::vector<int>>;

TEST_P(HipHostOverlap, EveryOtherLaunchBeginsEarly) {
  const auto kernel = compile(true);
  const auto graph = record(*kernel, std::vector<LaunchOrder>(4, LaunchOrder::overlapping));
  EXPECT_EQ(replay(*graph), (Found{{0, 10}, {11, 11}, {11, 12}, {13, 13}}));
  // The second one now begins before the first, and before x is filled, which is 14 from before.
  EXPECT_EQ(replay(*graph), (Found{{10, 10}, {14, 11}, {12, 12}, {12, 13}}));
}

TEST_P(HipHostOverlap, LaunchesInTurnDoNot) {
  const auto kernel = compile(true);
  const auto graph = record(*kernel, {LaunchOrder::in_turn, LaunchOrder::in_turn});
  for (int i = 0; i < 2; ++i) EXPECT_EQ(replay(*graph), (Found{{10, 10}, {11, 11}}));
}

// They would use what earlier launches have not yet written.
TEST_P(HipHostOverlap, KernelsThatDoNotWaitAreInTurn) {
  const auto kernel = compile(false);
  const auto graph = record(*kernel, {LaunchOrder::overlapping, LaunchOrder::overlapping});
  for (int i = 0; i < 2; ++i) EXPECT_EQ(replay(*graph), (Found{{10, 10}, {11, 11}}));
}

}  // namespace
}  // namespace greta::test::overlap_test
