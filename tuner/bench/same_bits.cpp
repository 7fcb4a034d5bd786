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

// Both kernels take two addresses, that of a word to set, the number of whole words, the number of
// further bytes, and the number of workgroups. Words are read beyond the last byte in GLSL only,
// where guard zones follow the operands.
constexpr std::string_view same_glsl = R"(#version 460
#extension GL_EXT_buffer_reference : require
layout(local_size_x = 256) in;
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Memory { uint words[]; };
layout(push_constant) uniform Arguments {
  Memory to; Memory from; Memory found; uint words; uint tail; uint groups;
};
void main() {
  const uint first = gl_WorkGroupID.x * 256 + gl_LocalInvocationIndex;
  const uint mask = (1u << (8 * tail)) - 1;
#if COMPARES
  uint differs = 0;
  for (uint at = first; at < words; at += groups * 256) differs |= to.words[at] ^ from.words[at];
  if (first == 0 && tail > 0) differs |= (to.words[words] ^ from.words[words]) & mask;
  if (differs != 0) found.words[0] = 1;
#else
  for (uint at = first; at < words; at += groups * 256) to.words[at] = from.words[at];
  if (first == 0 && tail > 0) {
    to.words[words] = (from.words[words] & mask) | (to.words[words] & ~mask);
  }
#endif
}
)";

constexpr std::string_view same_hip = R"(
GRETA_KERNEL(256) greta_same(u32* to, const u32* from, u32* found, u32 words, u32 tail, u32 groups) {
  const u64 first = u64(block_x()) * 256 + thread_index();
  unsigned char* const to_tail = (unsigned char*)(to + words);
  const unsigned char* const from_tail = (const unsigned char*)(from + words);
#if COMPARES
  u32 differs = 0;
  for (u64 at = first; at < words; at += u64(groups) * 256) differs |= to[at] ^ from[at];
  if (first == 0) {
    for (u32 i = 0; i < tail; ++i) differs |= u32(to_tail[i] ^ from_tail[i]);
  }
  if (differs != 0) found[0] = 1;
#else
  for (u64 at = first; at < words; at += u64(groups) * 256) to[at] = from[at];
  if (first == 0) {
    for (u32 i = 0; i < tail; ++i) to_tail[i] = from_tail[i];
  }
#endif
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
    if (auto made = make(device, tensor.bytes, tensor.expected); !made) return made.failure();
    if (tensor.restored) {
      if (auto made = make(device, tensor.bytes, tensor.input); !made) return made.failure();
      auto copied = same.launch(stream, *same.copy_, tensor.input->address(), tensor.address,
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
  const std::uint64_t words = bytes / 4;
  if (words > UINT32_MAX) {
    return Failure{Status::invalid_argument, "an output of more than 16 GiB can't be compared", {}};
  }
  const auto groups = static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>((words + block_threads - 1) / block_threads, 1, most_groups_));
  const std::array<std::uint64_t, 3> addresses{to, from, found};
  const std::array<std::uint32_t, 3> numbers{static_cast<std::uint32_t>(words),
                                             static_cast<std::uint32_t>(bytes % 4), groups};
  std::array<std::byte, argument_bytes> arguments{};
  std::memcpy(arguments.data(), addresses.data(), sizeof addresses);
  std::memcpy(arguments.data() + sizeof addresses, numbers.data(), sizeof numbers);
  return stream.launch(kernel, {groups, 1, 1}, arguments);
}

Result<void> SameBits::keep(Stream& stream) {
  for (const Tensor& tensor : tensors_) {
    auto copied =
        launch(stream, *copy_, tensor.expected->address(), tensor.address, tensor.bytes, 0);
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
    auto copied = launch(stream, *copy_, tensor.address, tensor.input->address(), tensor.bytes, 0);
    if (!copied) return copied;
  }
  return {};
}

Result<void> SameBits::record_compare(Stream& stream, std::uint32_t slot) const {
  const std::uint64_t found = found_->address() + std::uint64_t{slot} * 4;
  for (const Tensor& tensor : tensors_) {
    auto compared =
        launch(stream, *compare_, tensor.address, tensor.expected->address(), tensor.bytes, found);
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
