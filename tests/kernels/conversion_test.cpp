// Protects: kernels convert f32 to f16 and bf16 and back like the host, for all values of both
// types, and for f32 numbers at and beside the ties between them.

#include <gtest/gtest.h>

#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>
#include <random>

#include "kernels/planning/render.hpp"
#include "runtime/device/dtype.hpp"
#include "tests/kernels/plan_runner.hpp"
#include "tests/layers.hpp"

namespace greta::test::conversion_test {
namespace {

using Words = std::vector<std::uint32_t>;

constexpr std::uint32_t threads = 64;

/// Returns a kernel with one thread per input word: out[i] = convert(in[i]). `body` is its
/// statement.
KernelSource source_of(const DeviceInfo& device, const std::string& hip, const std::string& glsl) {
  KernelSource source;
  source.name = "conversion";
  source.language = device.language;
  source.argument_bytes = 20;
  source.block = {threads, 1, 1};
  if (device.language == Language::hip) {
    source.entry = "convert";
    source.text = render("common/types.hip", {}) +
                  "GRETA_KERNEL(64) convert(const u32* in, u32* out, u32 n) {\n"
                  "  const u32 i = block_index<64>() * 64 + thread_index();\n"
                  "  if (i < n) " +
                  hip + "\n}\n";
    return source;
  }
  const Defines types{{"IN_F16", "1"}, {"OUT_F16", "0"}, {"IN_BF16", "0"}, {"OUT_BF16", "1"}};
  source.text = "#version 460\n";
  for (const auto& [name, value] : types) source.text += "#define " + name + " " + value + "\n";
  source.text += render("common/memory.glsl", {}) +
                 "layout(push_constant, std430) uniform A { uint64_t in_, out_; uint n; } args;\n"
                 "layout(local_size_x = 64) in;\n"
                 "void main() {\n"
                 "  const uint i = gl_GlobalInvocationID.x;\n"
                 "  if (i < args.n) " +
                 glsl + "\n}\n";
  return source;
}

class Conversion : public ::testing::TestWithParam<std::string> {
 protected:
  Words run(const KernelSource& source, const Words& in) {
    const auto bytes = std::as_bytes(std::span(in));
    const auto from = device_.allocate(bytes.size()).value();
    const auto to = device_.allocate(bytes.size()).value();
    device_.upload(*from, 0, bytes).value();
    const struct {
      std::uint64_t from, to;
      std::uint32_t n;
    } arguments{from->address(), to->address(), static_cast<std::uint32_t>(in.size())};
    const auto kernel = device_.compile(source);
    if (!kernel) {
      ADD_FAILURE() << kernel.failure().message << '\n' << kernel.failure().log;
      return {};
    }
    const auto stream = device_.create_stream().value();
    const Grid grid{(arguments.n + threads - 1) / threads, 1, 1};
    stream->launch(**kernel, grid, std::as_bytes(std::span(&arguments, 1)).first(20)).value();
    stream->synchronize(std::chrono::seconds(60)).value();
    Words out(in.size());
    device_.download(*to, 0, std::as_writable_bytes(std::span(out))).value();
    return out;
  }

  bool hip() const { return device_.info().language == Language::hip; }

  Device& device_ = test::device(GetParam());
};

std::uint16_t narrowed(DType type, float x) {
  std::uint16_t stored = 0;
  store_element(type, reinterpret_cast<std::byte*>(&stored), 0, x);
  return stored;
}

double widened(DType type, std::uint16_t bits) {
  return load_element(type, reinterpret_cast<const std::byte*>(&bits), 0);
}

void expect_same(DType type, double got, double want, std::uint32_t input) {
  if (std::isnan(want)) {
    EXPECT_TRUE(std::isnan(got)) << to_string(type) << " of " << std::hex << input;
  } else {
    EXPECT_EQ(std::bit_cast<std::uint64_t>(got), std::bit_cast<std::uint64_t>(want))
        << to_string(type) << " of " << std::hex << input << ": " << got << ", not " << want;
  }
}

/// Returns every value of the type, the midpoint between it and the next, the neighbours of the
/// midpoint, and numbers of every magnitude.
Words interesting(DType type) {
  Words words;
  for (std::uint32_t bits = 0; bits < 65536; bits += 7) {
    const auto at = static_cast<float>(widened(type, static_cast<std::uint16_t>(bits)));
    const auto next = static_cast<float>(widened(type, static_cast<std::uint16_t>(bits + 1)));
    const auto middle = std::bit_cast<std::uint32_t>(at + (next - at) / 2);
    words.insert(words.end(), {std::bit_cast<std::uint32_t>(at), middle, middle + 1, middle - 1});
  }
  std::mt19937 random(5);
  for (int i = 0; i < 10000; ++i) words.push_back(static_cast<std::uint32_t>(random()));
  return words;
}

TEST_P(Conversion, WideningIsExact) {
  Words all(65536);
  for (std::uint32_t i = 0; i < all.size(); ++i) all[i] = i;
  const auto check = [&](DType type, const char* hip, const char* glsl) {
    const Words out = run(source_of(device_.info(), hip, glsl), all);
    for (std::size_t i = 0; i < out.size(); ++i) {
      expect_same(type, std::bit_cast<float>(out[i]), widened(type, static_cast<std::uint16_t>(i)),
                  all[i]);
    }
  };
  check(DType::bf16, "out[i] = bits_of(to_float(bf16{u16(in[i])}));",
        "U32(args.out_ + i * 4).v = "
        "floatBitsToUint(float_from_bf16(uvec4(U32(args.in_ + i * 4).v)).x);");
  if (hip()) check(DType::f16, "out[i] = bits_of(to_float(f16{u16(in[i])}));", "");
}

// GLSL leaves the rounding to f16 to the driver.
TEST_P(Conversion, NarrowingRoundsToNearestEven) {
  const auto check = [&](DType type, const char* hip, const char* glsl) {
    const Words in = interesting(type);
    const Words out = run(source_of(device_.info(), hip, glsl), in);
    for (std::size_t i = 0; i < out.size(); ++i) {
      const auto x = std::bit_cast<float>(in[i]);
      expect_same(type, widened(type, static_cast<std::uint16_t>(out[i])),
                  widened(type, narrowed(type, x)), in[i]);
    }
  };
  check(DType::bf16, "out[i] = narrow<bf16>(float_from_bits(in[i])).bits;",
        "U32(args.out_ + i * 4).v = "
        "bf16_from_float(vec4(uintBitsToFloat(U32(args.in_ + i * 4).v))).x;");
  if (hip()) check(DType::f16, "out[i] = narrow<f16>(float_from_bits(in[i])).bits;", "");
}

INSTANTIATE_TEST_SUITE_P(Devices, Conversion, ::testing::ValuesIn(test::usable_devices()),
                         [](const auto& instance) { return test::device_name(instance.param); });

}  // namespace
}  // namespace greta::test::conversion_test
