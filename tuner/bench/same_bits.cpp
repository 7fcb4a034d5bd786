#include "tuner/bench/same_bits.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <string>
#include <string_view>

#include "kernels/planning/render.hpp"

namespace greta::tuner {
namespace {

constexpr std::uint32_t block_threads = 256;
constexpr std::size_t argument_bytes = 40;
constexpr auto keep_deadline = std::chrono::minutes(1);

// Both kernels take the addresses of two ranges, that of a word to set, the number of words, masks
// of the first and the last of them, and the number of workgroups. The addresses are multiples
// of 4. Bytes of the first and the last word that are not part of a range keep their values; in
// GLSL they are read, and guard zones surround the operands.
constexpr std::string_view same_glsl = R"(#version 460
#extension GL_EXT_buffer_reference : require
layout(local_size_x = 256) in;
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Memory { uint words[]; };
layout(push_constant) uniform Arguments {
  Memory to; Memory from; Memory found; uint words; uint head; uint tail; uint groups;
};
void main() {
  const uint first = gl_WorkGroupID.x * 256 + gl_LocalInvocationIndex;
  uint differs = 0;
  for (uint at = first; at < words; at += groups * 256) {
    const uint mask = (at == 0 ? head : ~0u) & (at + 1 == words ? tail : ~0u);
#if COMPARES
    differs |= (to.words[at] ^ from.words[at]) & mask;
#else
    const uint kept = mask == ~0u ? 0 : to.words[at] & ~mask;
    to.words[at] = (from.words[at] & mask) | kept;
#endif
  }
  if (differs != 0) found.words[0] = 1;
}
)";

// Touches no other bytes, since a device that watches bounds has no guard zones around operands.
constexpr std::string_view same_hip = R"(
GRETA_KERNEL(256) greta_same(u32* to, const u32* from, u32* found, u32 words, u32 head, u32 tail,
                             u32 groups) {
  u32 differs = 0;
  for (u64 at = u64(block_x()) * 256 + thread_index(); at < words; at += u64(groups) * 256) {
    const u32 mask = (at == 0 ? head : ~0U) & (at + 1 == words ? tail : ~0U);
    unsigned char* const to_bytes = (unsigned char*)(to + at);
    const unsigned char* const from_bytes = (const unsigned char*)(from + at);
#if COMPARES
    if (mask == ~0U) differs |= to[at] ^ from[at];
    for (u32 i = 0; mask != ~0U && i < 4; ++i) {
      if (mask >> 8 * i & 1) differs |= u32(to_bytes[i] ^ from_bytes[i]);
    }
#else
    if (mask == ~0U) to[at] = from[at];
    for (u32 i = 0; mask != ~0U && i < 4; ++i) {
      if (mask >> 8 * i & 1) to_bytes[i] = from_bytes[i];
    }
#endif
  }
  if (differs != 0) found[0] = 1;
}
)";

std::uint64_t whole_words(std::uint64_t bytes) {
  return (bytes + 3) / 4 * 4;
}

Result<void> make(Device& device, std::uint64_t bytes, std::unique_ptr<Buffer>& buffer) {
  auto made = device.allocate(whole_words(bytes));
  if (!made) return made.failure();
  buffer = *std::move(made);
  return {};
}

}  // namespace

KernelSource same_bits_kernel(const DeviceInfo& device, bool compares) {
  const std::string define = compares ? "#define COMPARES 1\n" : "#define COMPARES 0\n";
  KernelSource source;
  source.name = compares ? "soak/compare" : "soak/copy";
  source.language = device.language;
  if (device.language == Language::glsl) {
    const auto line = same_glsl.find('\n') + 1;  // #version comes first
    source.text =
        std::string(same_glsl.substr(0, line)) + define + std::string(same_glsl.substr(line));
    source.entry = "main";
  } else {
    source.text = render("common/types.hip", {}) + define + std::string(same_hip);
    source.entry = "greta_same";
  }
  source.argument_bytes = argument_bytes;
  source.block = {block_threads, 1, 1};
  return source;
}

Result<SameBits> SameBits::create(Device& device, Stream& stream, const Operands& operands,
                                  std::uint32_t slots) {
  SameBits same;
  same.slots_ = slots;
  same.most_groups_ = std::min(device.info().max_grid[0], device.info().is_cpu() ? 8U : 4096U);
  for (const bool compares : {false, true}) {
    auto kernel = device.compile(same_bits_kernel(device.info(), compares));
    if (!kernel) return kernel.failure();
    (compares ? same.compare_ : same.copy_) = *std::move(kernel);
  }
  if (auto made = make(device, std::uint64_t{slots} * 4, same.found_); !made) return made.failure();
  for (std::size_t i = 0; i < operands.specs().size(); ++i) {
    const TensorSpec& spec = operands.specs()[i];
    if (spec.role == Role::input || spec.bytes() == 0) continue;
    Tensor tensor{.address = operands.address(i),
                  .bytes = spec.bytes(),
                  .restored = spec.role == Role::input_output};
    const std::uint64_t room = tensor.address % 4 + tensor.bytes;
    if (auto made = make(device, room, tensor.expected); !made) return made.failure();
    if (tensor.restored) {
      if (auto made = make(device, room, tensor.input); !made) return made.failure();
      auto copied = same.launch(stream, *same.copy_, tensor.start_in(*tensor.input), tensor.address,
                                tensor.bytes, 0);
      if (!copied) return copied.failure();
    }
    same.tensors_.push_back(std::move(tensor));
  }
  if (auto done = stream.synchronize(keep_deadline); !done) return done.failure();
  return same;
}

Result<void> SameBits::launch(Stream& stream, const Kernel& kernel, std::uint64_t to,
                              std::uint64_t from, std::uint64_t bytes, std::uint64_t found) const {
  const std::uint64_t before = to % 4;  // bytes of the first word, the same of both
  const std::uint64_t words = whole_words(before + bytes) / 4, after = 4 * words - before - bytes;
  if (words > UINT32_MAX) {
    return Failure{Status::invalid_argument, "an output of more than 16 GiB can't be compared", {}};
  }
  const auto groups = static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>((words + block_threads - 1) / block_threads, 1, most_groups_));
  const std::array<std::uint64_t, 3> addresses{to - before, from - before, found};
  const std::array<std::uint32_t, 4> numbers{
      static_cast<std::uint32_t>(words), UINT32_MAX << 8 * before, UINT32_MAX >> 8 * after, groups};
  std::array<std::byte, argument_bytes> arguments{};
  static_assert(sizeof addresses + sizeof numbers == argument_bytes);
  std::memcpy(arguments.data(), addresses.data(), sizeof addresses);
  std::memcpy(arguments.data() + sizeof addresses, numbers.data(), sizeof numbers);
  return stream.launch(kernel, {groups, 1, 1}, arguments);
}

Result<void> SameBits::keep(Stream& stream) {
  for (const Tensor& tensor : tensors_) {
    auto copied =
        launch(stream, *copy_, tensor.start_in(*tensor.expected), tensor.address, tensor.bytes, 0);
    if (!copied) return copied;
  }
  return stream.synchronize(keep_deadline);
}

Result<void> SameBits::record_clear(Stream& stream) {
  return stream.fill(*found_, 0, found_->size(), 0);
}

Result<void> SameBits::record_restore(Stream& stream) const {
  for (const Tensor& tensor : tensors_) {
    if (!tensor.restored) continue;
    auto copied =
        launch(stream, *copy_, tensor.address, tensor.start_in(*tensor.input), tensor.bytes, 0);
    if (!copied) return copied;
  }
  return {};
}

Result<void> SameBits::record_compare(Stream& stream, std::uint32_t slot) const {
  const std::uint64_t found = found_->address() + std::uint64_t{slot} * 4;
  for (const Tensor& tensor : tensors_) {
    auto compared = launch(stream, *compare_, tensor.address, tensor.start_in(*tensor.expected),
                           tensor.bytes, found);
    if (!compared) return compared;
  }
  return {};
}

Result<std::uint64_t> SameBits::wrong(Device& device, std::uint32_t slots) const {
  std::vector<std::uint32_t> found(slots);
  if (auto down = device.download(*found_, 0, std::as_writable_bytes(std::span(found))); !down)
    return down.failure();
  return static_cast<std::uint64_t>(
      std::count_if(found.begin(), found.end(), [](std::uint32_t word) { return word != 0; }));
}

}  // namespace greta::tuner
