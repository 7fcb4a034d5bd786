// Protects: a failing device reports the cause, does not affect others, and is usable after it is
// reopened.

#include <cstring>
#include <fstream>
#include <iterator>
#include <regex>
#include <thread>

#include "runtime/device/peer.hpp"
#include "tests/device/hip/fake_library.hpp"
#include "tests/layers.hpp"

namespace greta::test::fault_test {

namespace {

using namespace std::chrono_literals;

struct FaultArguments {
  std::uint64_t a = 1;
  float b = 2;
  std::int32_t c = 3;
};

class HipFault : public ::testing::TestWithParam<Fake> {
 protected:
  HipFault() : fake_(open_fake(GetParam())), backend_(backend_of(GetParam())) {}
  ~HipFault() override { EXPECT_TRUE(fake_.misuse.empty()) << fake_.misuse.front(); }

  std::unique_ptr<Device> open(int index = 0) { return backend_->open(index, {}).value(); }
  std::unique_ptr<Kernel> load(Device& device) {
    return device.load(work_source(), code_object_of(GetParam())).value();
  }
  Result<void> launch(Stream& stream, const Kernel& kernel) {
    const FaultArguments arguments;
    return stream.launch(kernel, {2, 1, 1}, std::as_bytes(std::span(&arguments, 1)));
  }
  /// Uploads, launches and downloads.
  void expect_works(Device& device) {
    const auto kernel = load(device);
    const auto buffer = device.allocate(64).value();
    const auto stream = device.create_stream().value();
    std::vector<std::byte> sent(64, std::byte{7}), back(64);
    device.upload(*buffer, 0, sent).value();
    const auto before = fake_.launches.size();
    launch(*stream, *kernel).value();
    stream->synchronize(1s).value();
    EXPECT_EQ(fake_.launches.size(), before + 1);
    device.download(*buffer, 0, back).value();
    EXPECT_EQ(back, sent);
  }

  FakeHip& fake_;
  std::unique_ptr<Backend> backend_;
};

std::string name_of(const ::testing::TestParamInfo<Fake>& fake) {
  return fake.param == Fake::hip6 ? "hip6" : fake.param == Fake::hip5 ? "hip5" : "cuda";
}

INSTANTIATE_TEST_SUITE_P(All, HipFault, ::testing::Values(Fake::hip6, Fake::hip5, Fake::cuda),
                         name_of);

TEST_P(HipFault, NothingIsLeftBehind) {
  {
    const auto device = open();
    expect_works(*device);
    const auto event = device->create_event().value();
    const auto kernel = load(*device);
    const auto graph =
        device->create_graph([&](Stream& stream) { return launch(stream, *kernel); }).value();
    const auto stream = device->create_stream().value();
    stream->replay(*graph).value();
    stream->record(*event).value();
    stream->synchronize(1s).value();
  }
  for (const auto& [ended_by, count] : fake_.live) EXPECT_EQ(count, 0) << ended_by;
  EXPECT_GT(fake_.calls["hipFree"], 0);
  EXPECT_GT(fake_.calls["hipGraphExecDestroy"], 0);
  EXPECT_TRUE(fake_.resets.empty());
}

TEST_P(HipFault, EveryFunctionThatIsLoadedIsCalled) {
  if (GetParam() != Fake::hip6) return;  // the list below is of AMD's backend
  {
    const auto device = open();
    expect_works(*device);
    const auto kernel = load(*device);
    KernelSource with_table = work_source();
    with_table.constants = {"table"};
    const auto refused = device->load(with_table, code_object_of(GetParam()));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.failure().message,
              "test/work: there is no variable \"table\" in constant memory");
    const auto buffer = device->allocate(64).value();
    const auto first = device->create_event().value(), second = device->create_event().value();
    const auto graph =
        device->create_graph([&](Stream& stream) { return launch(stream, *kernel); }).value();
    const auto stream = device->create_stream().value(), other = device->create_stream().value();
    stream->record(*first).value();
    stream->fill(*buffer, 0, 64, 1).value();
    stream->replay(*graph).value();
    stream->record(*second).value();
    stream->submit().value();
    other->wait(*second).value();
    launch(*other, *kernel).value();
    other->synchronize(1s).value();
    stream->synchronize(1s).value();
    EXPECT_GT(device->elapsed_us(*first, *second).value(), 10);
    const auto peer = open(1);
    PeerCopies& copies = *peer_copies(*device).value();
    EXPECT_TRUE(copies.reach(*peer).value());
    const auto copied = device->allocate(64).value();
    copies.copy_between(*stream, *copied, 0, *buffer, 0, 64).value();
    stream->synchronize(1s).value();
    std::vector<std::byte> sent(64), back(64);
    device->download(*buffer, 0, sent).value();
    device->download(*copied, 0, back).value();
    EXPECT_EQ(back, sent);
  }
  const auto lost = open();
  fake_.sticking[0] = 700;
  EXPECT_FALSE(lost->allocate(64));
  expect_works(*open());
  std::ifstream file(GRETA_TEST_DATA "/../../runtime/device/hip/amd.cpp");
  const std::string source{std::istreambuf_iterator(file), {}};
  const std::regex loaded("\"(hip[A-Z]\\w+)\"");
  int functions = 0;
  for (std::sregex_iterator at(source.begin(), source.end(), loaded), end; at != end; ++at) {
    EXPECT_GT(fake_.calls[(*at)[1]], 0) << (*at)[1];
    ++functions;
  }
  EXPECT_GT(functions, 35);
}

TEST_P(HipFault, LaunchesHandOverTheArgumentBlock) {
  const auto device = open();
  KernelSource source = work_source();
  source.block = {8, 4, 2};
  source.dynamic_shared_bytes = 60'000;
  const auto kernel = device->load(source, code_object_of(GetParam())).value();
  const auto stream = device->create_stream().value();
  const FaultArguments arguments{0x1122334455667788, 0.5F, -3};
  stream->launch(*kernel, {5, 6, 7}, std::as_bytes(std::span(&arguments, 1))).value();
  EXPECT_TRUE(fake_.launches.empty()) << "only recorded";
  stream->synchronize(1s).value();
  ASSERT_EQ(fake_.launches.size(), 1U);
  const FakeLaunch& seen = fake_.launches[0];
  EXPECT_EQ(seen.kernel, "work");
  EXPECT_EQ(seen.grid, (std::array<unsigned, 3>{5, 6, 7}));
  EXPECT_EQ(seen.block, (std::array<unsigned, 3>{8, 4, 2}));
  EXPECT_EQ(seen.dynamic_shared_bytes, 60'000U);
  ASSERT_EQ(seen.arguments.size(), sizeof arguments);
  EXPECT_EQ(std::memcmp(seen.arguments.data(), &arguments, sizeof arguments), 0);
  EXPECT_EQ(fake_.allowed_dynamic_shared, GetParam() == Fake::cuda ? 60'000 : -1)
      << "what only NVIDIA wants to be told";
  EXPECT_GE(kernel->statistics().shared_memory_bytes, 60'000U);
}

TEST_P(HipFault, RefusesWhatTheDeviceCannotHold) {
  const auto device = open();
  const auto refusal = [&](auto change) {
    KernelSource source = work_source();
    change(source);
    const auto kernel = device->load(source, code_object_of(GetParam()));
    EXPECT_FALSE(kernel);
    EXPECT_EQ(kernel.failure().status, Status::compile);
    return kernel.failure().message;
  };
  EXPECT_NE(refusal([](auto& source) {
              source.dynamic_shared_bytes = 1 << 20;
            }).find("1048576 bytes of shared memory"),
            std::string::npos);
  EXPECT_NE(refusal([](auto& source) {
              source.block = {2048, 1, 1};
            }).find("2048x1x1"),
            std::string::npos);
  EXPECT_NE(refusal([](auto& source) { source.argument_bytes = 5000; }).find("5000 bytes"),
            std::string::npos);
  EXPECT_NE(refusal([](auto& source) {
              source.argument_bytes = 12;
            }).find("declares 16 bytes of arguments, its source says 12"),
            std::string::npos);
  EXPECT_NE(refusal([](auto& source) { source.entry = "play"; }).find("play"), std::string::npos);
  fake_.max_threads_per_block = 63;
  EXPECT_NE(refusal([](auto&) {}).find("its code allows 63 threads"), std::string::npos);
}

TEST_P(HipFault, WhatIsNoCodeObjectIsACompileFailure) {
  const auto device = open();
  EXPECT_EQ(device->load(work_source(), {}).failure().status, Status::compile);
  if (GetParam() == Fake::cuda) return;  // only the driver can read its code objects
  auto damaged = code_object_of(GetParam());
  damaged.resize(damaged.size() / 4);
  EXPECT_EQ(device->load(work_source(), damaged).failure().status, Status::compile);
  EXPECT_EQ(fake_.calls["hipModuleLoadData"], 0) << "it would read past the end";
}

TEST_P(HipFault, ACodeObjectThatTheDriverDoesNotTakeIsACompileFailure) {
  const auto device = open();
  fake_.fails["hipModuleLoadData"] = 209;
  const auto kernel = device->load(work_source(), code_object_of(GetParam()));
  ASSERT_FALSE(kernel);
  EXPECT_EQ(kernel.failure().status, Status::compile);
  EXPECT_NE(kernel.failure().message.find(device->info().architecture), std::string::npos);
  fake_.fails.clear();
  expect_works(*device);
}

TEST_P(HipFault, AnIllegalAddressLosesAllOfTheCardAndNothingElse) {
  auto device = open(), sister = open(), other = open(1);
  const auto kernel = load(*device);
  const auto stream = device->create_stream().value();
  const auto buffer = device->allocate(64).value();
  const auto event = device->create_event().value();
  fake_.on_launch = [&](const FakeLaunch&) { fake_.sticking[0] = 700; };
  launch(*stream, *kernel).value();
  const auto failed = stream->synchronize(1s);
  fake_.on_launch = {};
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.failure().status, Status::device_lost);
  const std::string cause =
      GetParam() == Fake::cuda ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "hipErrorIllegalAddress";
  EXPECT_NE(failed.failure().message.find(cause), std::string::npos) << failed.failure().message;
  for (Device* const lost : {device.get(), sister.get()}) {
    EXPECT_EQ(lost->allocate(16).failure().status, Status::device_lost);
    EXPECT_EQ(lost->create_stream().failure().status, Status::device_lost);
  }
  EXPECT_EQ(stream->submit().failure().status, Status::device_lost);
  expect_works(*other);

  // When it is reopened, the card is reset once, and no earlier object is used again.
  const auto again = open();
  EXPECT_EQ(fake_.resets, (std::map<int, int>{{0, 1}}));
  expect_works(*again);
  const auto third = open();
  EXPECT_EQ(fake_.resets[0], 1);
  EXPECT_EQ(sister->create_event().failure().status, Status::device_lost);
  sister.reset();
  device.reset();
  expect_works(*again);
  expect_works(*third);
  expect_works(*other);
}

TEST_P(HipFault, ResettingMayReturnTheFailureThatItEnds) {
  const auto device = open();
  fake_.sticking[0] = 719;
  EXPECT_EQ(device->allocate(16).failure().status, Status::device_lost);
  fake_.reset_error = 719;
  expect_works(*open());
}

TEST_P(HipFault, ACardThatStaysLostIsAFailureToOpen) {
  const auto device = open();
  fake_.fails["hipStreamCreateWithFlags"] = 700;
  EXPECT_EQ(device->create_stream().failure().status, Status::device_lost);
  EXPECT_EQ(backend_->open(0, {}).failure().status, Status::device_lost);
  EXPECT_EQ(backend_->open(0, {}).failure().status, Status::device_lost);
  fake_.fails.clear();
  expect_works(*open());
  EXPECT_EQ(fake_.resets[0], 3);
}

TEST_P(HipFault, ATimeoutLosesItsDeviceOnly) {
  const auto device = open(), sister = open();
  {
    const auto kernel = load(*device);
    const auto stream = device->create_stream().value();
    const auto buffer = device->allocate(64).value();
    launch(*stream, *kernel).value();
    fake_.busy = true;
    const auto late = stream->synchronize(30ms);
    EXPECT_EQ(late.failure().status, Status::timeout);
    EXPECT_NE(late.failure().message.find("30 ms"), std::string::npos) << late.failure().message;
    EXPECT_EQ(device->allocate(64).failure().status, Status::device_lost);
  }
  fake_.busy = false;
  EXPECT_GT(fake_.live["hipFree"], 0) << "the work that never ended may still use it";
  expect_works(*sister);
  expect_works(*open());
  EXPECT_TRUE(fake_.resets.empty()) << "that would wait for the work, and harm its sister";
}

// A copy to memory of a lost device would use what may not exist any more.
TEST_P(HipFault, NothingIsCopiedToALostPeer) {
  if (GetParam() != Fake::hip6) return;  // other fakes have no copies between devices
  const auto device = open(), peer = open(1);
  PeerCopies& copies = *peer_copies(*device).value();
  const auto own = device->allocate(64).value(), other = peer->allocate(64).value();
  const auto stream = device->create_stream().value();
  copies.copy_between(*stream, *other, 0, *own, 0, 64).value();
  stream->discard();
  fake_.sticking[1] = 700;
  EXPECT_EQ(peer->create_stream().failure().status, Status::device_lost);
  for (const auto& refused : {copies.copy_between(*stream, *other, 0, *own, 0, 64),
                              copies.copy_between(*stream, *own, 0, *other, 0, 64)}) {
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.failure().status, Status::unavailable);
    EXPECT_NE(refused.failure().message.find(peer->info().id() + " was lost"), std::string::npos);
  }
  EXPECT_EQ(copies.reach(*peer).failure().status, Status::unavailable);
  expect_works(*device);
}

TEST_P(HipFault, OutOfMemoryIsNotTheEnd) {
  const auto device = open();
  fake_.fails["hipMalloc"] = 2;
  EXPECT_EQ(device->allocate(1000).failure().status, Status::out_of_memory);
  fake_.fails.clear();
  expect_works(*device);
}

TEST_P(HipFault, ALaunchThatIsRefusedEndsItsSubmissionOnly) {
  const auto device = open();
  const auto kernel = load(*device);
  const auto stream = device->create_stream().value();
  const auto before = device->create_event().value(), after = device->create_event().value();
  const auto buffer = device->allocate(64).value();
  stream->fill(*buffer, 0, 64, 0x01010101).value();
  stream->record(*before).value();
  launch(*stream, *kernel).value();
  stream->fill(*buffer, 0, 64, 0x02020202).value();
  stream->record(*after).value();
  fake_.fails["hipModuleLaunchKernel"] = 701;
  const auto refused = stream->synchronize(1s);
  fake_.fails.clear();
  EXPECT_EQ(refused.failure().status, Status::launch);
  EXPECT_EQ(refused.failure().message.find("hipModuleLaunchKernel"), 0U);
  EXPECT_TRUE(device->elapsed_us(*before, *before)) << "what came before has run";
  EXPECT_EQ(device->elapsed_us(*after, *after).failure().status, Status::invalid_argument);
  std::vector<std::byte> back(64);
  device->download(*buffer, 0, back).value();
  EXPECT_EQ(back, std::vector<std::byte>(64, std::byte{1}));
  stream->record(*after).value();
  stream->synchronize(1s).value();
  expect_works(*device);
}

TEST_P(HipFault, AGraphThatIsRefusedLeavesNothing) {
  const auto device = open();
  const auto kernel = load(*device);
  const auto record = [&](Stream& stream) { return launch(stream, *kernel); };
  for (const std::string function :
       {"hipModuleLaunchKernel", "hipGraphInstantiateWithFlags", "hipStreamBeginCapture"}) {
    fake_.fails[function] = 801;
    const auto graph = device->create_graph(record);
    ASSERT_FALSE(graph);
    EXPECT_EQ(graph.failure().status, Status::unavailable);
    EXPECT_EQ(graph.failure().message.find(function), 0U) << graph.failure().message;
    fake_.fails.clear();
    EXPECT_EQ(fake_.live["hipGraphDestroy"], 0);
    EXPECT_EQ(fake_.live["hipGraphExecDestroy"], 0);
  }
  const auto graph = device->create_graph(record).value();
  EXPECT_TRUE(fake_.launches.empty()) << "capturing runs nothing";
  const auto stream = device->create_stream().value();
  stream->replay(*graph).value();
  stream->replay(*graph).value();
  stream->synchronize(1s).value();
  EXPECT_EQ(fake_.launches.size(), 2U);
}

TEST_P(HipFault, GridsArePartOfTheLimits) {
  const auto device = open();
  KernelSource source = work_source();
  source.block = {1024, 1, 1};
  const auto kernel = device->load(source, code_object_of(GetParam())).value();
  const auto stream = device->create_stream().value();
  const FaultArguments arguments;
  const auto block = std::as_bytes(std::span(&arguments, 1));
  EXPECT_TRUE(stream->launch(*kernel, {4'194'303, 1, 1}, block));
  const auto wide = stream->launch(*kernel, {4'194'304, 1, 1}, block);
  if (GetParam() == Fake::cuda) {
    EXPECT_TRUE(wide) << "2^32 threads in a row";
  } else {
    EXPECT_EQ(wide.failure().status, Status::launch) << "HIP counts threads in 32 bits";
  }
  EXPECT_EQ(stream->launch(*kernel, {1, 70'000, 1}, block).failure().status, Status::launch);
}

TEST_P(HipFault, AnyThreadMayCompile) {
  const auto device = open();
  std::unique_ptr<Kernel> kernel;
  std::thread([&] { kernel = load(*device); }).join();
  const auto stream = device->create_stream().value();
  launch(*stream, *kernel).value();
  stream->synchronize(1s).value();
  std::thread([&] { kernel.reset(); }).join();
  EXPECT_EQ(fake_.launches.size(), 1U);
}

}  // namespace

}  // namespace greta::test::fault_test
