// Protects: guard zones and gaps between rows reveal every write outside a tensor, and poison every
// read.

#include "kernels/launch/guarded_buffer.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <utility>

#include "kernels/launch/operands.hpp"
#include "kernels/launch/prepared_plan.hpp"
#include "runtime/device/backend.hpp"
#include "tests/kernels/plan_runner.hpp"
#include "tests/layers.hpp"

namespace greta::test::guarded_buffer_test {
namespace {

/// The beginning of a kernel with one thread that accesses 16-bit elements by address.
constexpr const char* one_thread = R"(#version 460
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_int16 : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
layout(local_size_x = 1) in;
layout(buffer_reference, std430, buffer_reference_align = 2) buffer Half { uint16_t v; };
)";

/// Returns a plan of one thread that writes the 16-bit element at `index`, counted from `target`.
LaunchPlan writer(std::int64_t index, Argument target, std::uint64_t workspace_bytes = 0) {
  KernelSource source;
  source.name = "test/writer";
  source.language = Language::glsl;
  source.text = std::string(one_thread) +
                R"(layout(push_constant) uniform Arguments { uint64_t at; uint64_t offset; } args;
void main() { Half(args.at + args.offset).v = uint16_t(0x3c00); })";
  source.argument_bytes = 16;
  LaunchPlan plan;
  plan.sources.push_back(source);
  plan.launches.push_back({0, {1, 1, 1}, {target, static_cast<std::uint64_t>(2 * index)}});
  plan.workspace_bytes = workspace_bytes;
  return plan;
}

/// Returns the report of the guard zones for a plan on one f16 tensor of `elements`.
std::string overrun(const LaunchPlan& plan, std::int64_t elements, Role role = Role::output,
                    std::int64_t offset = 0) {
  std::vector<TensorSpec> tensors{{"C", role, DType::f16, 1, elements}};
  tensors[0].offset = offset;
  return test::run_plan(test::device(), plan, tensors, test::random_inputs(tensors, 1))
      .value()
      .overrun;
}

class GuardedBufferAt : public ::testing::TestWithParam<std::int64_t> {};

TEST_P(GuardedBufferAt, SeesOneHalfPrecisionElementBesideTheTensor) {
  for (const Role role : {Role::output, Role::input_output}) {
    for (const std::int64_t elements : {1, 2, 7, 8, 1001}) {
      const auto write = [&](std::int64_t index) {
        return overrun(writer(index, OperandArgument{0}), elements, role, GetParam());
      };
      EXPECT_EQ(write(0), "") << elements;
      EXPECT_EQ(write(elements - 1), "") << elements;
      EXPECT_EQ(write(elements), "wrote past the end of tensor C, first at byte 1 after it")
          << elements;
      EXPECT_EQ(write(-1), "wrote before tensor C, first at byte 2 before it") << elements;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Offsets, GuardedBufferAt, ::testing::Values(0, 1, 4, 127));

// Writes a row or a tile away, not just one element: guard zones are 64 KiB wide.
TEST(GuardedBuffer, SeesWhatIsWrittenFarFromTheTensor) {
  constexpr std::int64_t elements = 8, far = 32 * 1024;  // extent of the guard zone in elements
  const auto write = [&](std::int64_t index) {
    return overrun(writer(index, OperandArgument{0}), elements);
  };
  EXPECT_EQ(write(elements + far - 1),
            "wrote past the end of tensor C, first at byte 65535 after it");
  EXPECT_EQ(write(-far), "wrote before tensor C, first at byte 65536 before it");
}

/// Returns a plan of one thread that copies the 4 bytes at `offset` bytes after the first tensor's
/// start to the second tensor.
LaunchPlan reader(std::int64_t offset) {
  LaunchPlan plan = writer(0, OperandArgument{0});
  plan.sources[0].text =
      std::string(one_thread) +
      R"(layout(push_constant) uniform Arguments { uint64_t from, offset, to; } args;
void main() {
  for (uint i = 0; i < 4; i += 2)
    Half(args.to + i).v = Half(args.from + args.offset + i).v;
})";
  plan.sources[0].argument_bytes = 24;
  plan.launches[0].arguments = {OperandArgument{0}, static_cast<std::uint64_t>(offset),
                                OperandArgument{1}};
  return plan;
}

// A read one element beyond an input gives NaN for every floating type, and 1 for i32: a number of
// rows or an id that has an effect.
TEST(GuardedBuffer, IsNanOrOneForThoseWhoReadBesideTheTensor) {
  for (const DType type : {DType::f16, DType::bf16, DType::f32, DType::i32}) {
    for (const std::int64_t elements : {1, 2, 3, 8}) {
      const auto size = bytes_of(type, std::int64_t{1});
      const std::vector<TensorSpec> tensors{{"in", Role::input, type, 1, elements},
                                            {"out", Role::output, type, 1, 4 / size}};
      for (const std::int64_t element : {-4 / size, elements, elements + 1}) {
        const auto run = test::run_plan(test::device(), reader(element * size), tensors,
                                        test::random_inputs({tensors[0]}, 1));
        const HostTensor& read = run.value().outputs[0];
        for (std::size_t i = 0; i < read.spec.elements(); ++i) {
          const bool is_seen = type == DType::i32 ? read.at(i) == 1 : std::isnan(read.at(i));
          EXPECT_TRUE(is_seen) << to_string(type) << ' ' << elements << ' ' << element;
        }
      }
    }
  }
}

// Rows that a table does not have give NaN results. Reading them must not give NaN, or the error
// would be hidden.
TEST(GuardedBuffer, IsFiniteForThoseWhoReadBesideATable) {
  for (const DType type : {DType::f16, DType::bf16, DType::f32}) {
    const auto size = bytes_of(type, std::int64_t{1});
    const std::vector<TensorSpec> tensors{{"lines", Role::input, type, 1, 3, 0, true},
                                          {"out", Role::output, type, 1, 4 / size}};
    for (const std::int64_t element : {-4 / size, std::int64_t{3}}) {
      const auto run = test::run_plan(test::device(), reader(element * size), tensors,
                                      test::random_inputs({tensors[0]}, 1));
      const HostTensor& read = run.value().outputs[0];
      for (std::size_t i = 0; i < read.spec.elements(); ++i) {
        EXPECT_LT(std::abs(read.at(i) + 1.5), 0.5) << to_string(type) << ' ' << element;
      }
    }
  }
}

TEST(GuardedBuffer, SeesWhatIsWrittenBesideTheWorkspace) {
  for (const std::int64_t elements : {2, 7, 512}) {
    const auto write = [&](std::int64_t index) {
      const auto bytes = static_cast<std::uint64_t>(2 * elements);
      return overrun(writer(index, WorkspaceArgument{0}, bytes), 8);
    };
    EXPECT_EQ(write(0), "") << elements;
    EXPECT_EQ(write(elements - 1), "") << elements;
    EXPECT_EQ(write(elements), "wrote past the end of the workspace, first at byte 1 after it")
        << elements;
    EXPECT_EQ(write(-1), "wrote before the workspace, first at byte 2 before it") << elements;
  }
}

TEST(GuardedBuffer, SeesWhatIsWrittenBetweenRows) {
  for (const Role role : {Role::input, Role::output, Role::input_output}) {
    const std::vector<TensorSpec> tensors{{"C", role, DType::f16, 3, 5, 7}};
    const auto write = [&](std::int64_t index) {
      return test::run_plan(test::device(), writer(index, OperandArgument{0}), tensors,
                            test::random_inputs(tensors, 1))
          .value()
          .overrun;
    };
    for (const std::int64_t inside : {0, 4, 7, 11, 14, 18}) {
      const auto expected =
          fmt::format("wrote element ({}, {}) of the input C", inside / 7, inside % 7);
      EXPECT_EQ(write(inside), role == Role::input ? expected : "") << inside;
    }
    for (const std::int64_t between : {5, 6}) {
      EXPECT_EQ(write(between), "wrote after row 0 of tensor C");
      EXPECT_EQ(write(between + 7), "wrote after row 1 of tensor C");
    }
    EXPECT_EQ(write(19), "wrote past the end of tensor C, first at byte 1 after it");
  }
}

// Parts begin and end anywhere: within a row, within a gap, and after several rows.
TEST(Operands, SeeWhatIsWrittenBetweenRowsInEveryPart) {
  Device& device = test::device();
  const TensorSpec spec{"C", Role::input_output, DType::f16, 9, 5, 7};
  Operands operands = Operands::create(device, {spec}).value();
  const std::vector<std::byte> nan(spec.bytes(), std::byte{0xFF}), broken{std::byte{0x3C}};
  const auto broken_at = [&](std::size_t byte, std::size_t part_bytes) {
    operands.upload_part(device, 0, 0, nan).value();
    operands.upload_part(device, 0, byte, broken).value();
    return operands.broken_guard(device, part_bytes).value().value_or("");
  };
  for (const std::size_t part_bytes : {3U, 14U, 33U, 111U, 4096U}) {
    for (std::size_t byte = 0; byte < spec.bytes(); ++byte) {
      const std::string row = std::to_string(byte / 14);
      EXPECT_EQ(broken_at(byte, part_bytes),
                byte % 14 < 10 ? "" : "wrote after row " + row + " of tensor C")
          << byte << " in parts of " << part_bytes;
    }
  }
}

TEST(GuardedBuffer, PartsGoWhereTheyBelong) {
  Device& device = test::device();
  GuardedBuffer buffer = GuardedBuffer::create(device, 12).value();
  std::vector<std::byte> low(8, std::byte{1}), high(8, std::byte{2}), data(12), part(4);
  buffer.upload(device, low).value();
  buffer.upload(device, high, 4).value();
  buffer.download(device, data).value();
  for (std::size_t i = 0; i < 12; ++i) EXPECT_EQ(data[i], std::byte(i < 4 ? 1 : 2)) << i;
  buffer.download(device, part, 2).value();
  EXPECT_EQ(part, (std::vector{std::byte{1}, std::byte{1}, std::byte{2}, std::byte{2}}));
}

TEST(GuardedBuffer, PoisonIsNaNToTheLastByte) {
  Device& device = test::device();
  for (const std::size_t bytes : {1U, 2U, 4U, 6U, 11U}) {
    GuardedBuffer buffer = GuardedBuffer::create(device, bytes).value();
    std::vector<std::byte> data(bytes, std::byte{7});
    buffer.upload(device, data).value();
    const auto stream = device.create_stream().value();
    buffer.poison(*stream, 4).value();
    stream->synchronize(std::chrono::seconds(10)).value();
    buffer.download(device, data).value();
    for (std::size_t i = 0; i < bytes; ++i) EXPECT_EQ(data[i], std::byte(i < 4 ? 7 : 0xFF));
    EXPECT_EQ(buffer.broken_guard(device, "it").value(), std::nullopt) << bytes;
  }
}

TEST(GuardedBuffer, FencedOnesEndAtTheBorderOfAPage) {
  const auto device = open_device("hip-host:0", {}).value();
  for (const std::size_t bytes : {1U, 16U, 100U, 4096U, 5000U}) {
    for (const std::size_t offset : {0U, 2U, 8U}) {
      GuardedBuffer buffer =
          GuardedBuffer::create(*device, bytes, GuardValues::nan, offset, Bounds::fenced).value();
      const std::uint64_t end = buffer.address() + bytes;
      EXPECT_EQ(buffer.address() % 16, offset);
      EXPECT_LT((Fence::page() - end % Fence::page()) % Fence::page(), 16);
      std::vector<std::byte> data(bytes, std::byte{7}), back(bytes);
      buffer.upload(*device, data).value();
      buffer.download(*device, back).value();
      EXPECT_EQ(back, data);
      EXPECT_EQ(buffer.broken_guard(*device, "it").value(), std::nullopt);
    }
  }
}

TEST(GuardedBuffer, AFenceClosesWholePagesWhileItLives) {
  const std::size_t page = Fence::page();
  const std::unique_ptr<std::byte, decltype(&std::free)> owned(
      static_cast<std::byte*>(std::aligned_alloc(page, 3 * page)), &std::free);
  std::byte* const memory = owned.get();
  {
    Fence fence({memory + 1, 3 * page - 1});
    ASSERT_TRUE(fence.closed());
    const Fence moved = std::move(fence);
    EXPECT_TRUE(moved.closed());
    memory[page - 1] = std::byte{2};  // of the first page, which is not closed as a whole
    EXPECT_DEATH({ *const_cast<volatile std::byte*>(memory + page) = std::byte{1}; }, "");
  }
  memory[page] = std::byte{1};
  EXPECT_EQ(memory[page], std::byte{1});
  EXPECT_FALSE(Fence({memory + 1, page}).closed());
}

}  // namespace
}  // namespace greta::test::guarded_buffer_test
