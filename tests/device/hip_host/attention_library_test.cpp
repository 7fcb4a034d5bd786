// Protects: attention by a vendor's library, through hip-host's own library: that what it can't
// compute is a failure with a reason, that its algorithm is told and part of the content key, and
// that without the library calls are refused. Its results are verified by cli.Vendor.

#include "runtime/device/hip/attention_library.hpp"

#include <functional>

#include "tests/device/hip_host/host_device.hpp"
#include "tests/layers.hpp"

namespace greta::test::attention_library_test {
namespace {

OpenOptions with_vendor() {
  OpenOptions options;
  options.vendor = true;
  return options;
}

AttentionCall small_call() {
  AttentionCall call;
  call.batch = call.kv_heads = 1;
  call.heads = call.queries = 2;
  call.keys = 5;
  call.dim = call.v_dim = 8;
  call.query_step = call.heads * call.dim;
  call.workspace_bytes = 1024;
  return call;
}

KernelSource source_of(const AttentionCall& call) {
  KernelSource source;
  source.name = "test";
  source.language = Language::hip;
  source.argument_bytes = sizeof(AttentionArguments);
  source.call = call;
  return source;
}

std::string refusal(HostDevice& host, const std::function<void(AttentionCall&)>& change) {
  AttentionCall call = small_call();
  change(call);
  const auto kernel = host.device().compile(source_of(call));
  return kernel ? "compiled" : kernel.failure().message;
}

TEST(HipHostAttentionLibrary, WhatItCannotComputeIsRefusedWithAReason) {
  HostDevice host{gfx942, with_vendor()};
  EXPECT_NE(host.device().info().attention_library, "");
  EXPECT_EQ(refusal(host, [](AttentionCall&) {}), "compiled");
  EXPECT_NE(refusal(host, [](AttentionCall& call) { call.rank = 2; }).find("ranks 2 algorithms"),
            std::string::npos);
  EXPECT_NE(refusal(host, [](AttentionCall& call) { call.dim = 264; }).find("no heads of more"),
            std::string::npos);
  EXPECT_NE(refusal(host, [](AttentionCall& call) { call.workspace_bytes = 39; })
                .find("needs 40 bytes of workspace"),
            std::string::npos);
}

TEST(HipHostAttentionLibrary, TheAlgorithmIsToldAndPartOfTheKey) {
  HostDevice host{gfx942, with_vendor()};
  AttentionCall call = small_call();
  const auto first = host.device().compile(source_of(call)).value();
  EXPECT_EQ(first->listing().value(), "algorithm 0");
  call.rank = 1;
  const auto second = host.device().compile(source_of(call)).value();
  EXPECT_EQ(second->listing().value(), "algorithm 1");
  EXPECT_NE(first->content_key(), second->content_key());
}

TEST(HipHostAttentionLibrary, WithoutItCallsAreRefused) {
  HostDevice host{gfx942};
  EXPECT_EQ(host.device().info().attention_library, "");
  EXPECT_NE(refusal(host, [](AttentionCall&) {}).find("it needs a vendor's library"),
            std::string::npos);
}

}  // namespace
}  // namespace greta::test::attention_library_test
