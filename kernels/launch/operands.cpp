#include "kernels/launch/operands.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace greta {
namespace {

constexpr std::uint32_t guard_pattern = 0xA5C3F00D;
constexpr std::uint32_t nan_pattern = 0xFFFFFFFF;  // NaN in f32, f16 and bf16

std::size_t rounded_to_words(std::size_t bytes) {
  return (bytes + 3) / 4 * 4;
}

std::optional<std::size_t> first_difference(const std::vector<std::uint32_t>& words) {
  const auto found = std::find_if(words.begin(), words.end(),
                                  [](std::uint32_t word) { return word != guard_pattern; });
  if (found == words.end()) return std::nullopt;
  return static_cast<std::size_t>(found - words.begin()) * sizeof(std::uint32_t);
}

}  // namespace

Result<Operands> Operands::create(Device& device, const std::vector<TensorSpec>& specs) {
  Operands operands;
  operands.specs_ = specs;
  auto stream = device.create_stream();
  if (!stream) return stream.failure();
  for (const auto& spec : specs) {
    const std::size_t payload = rounded_to_words(spec.bytes());
    auto buffer = device.allocate(payload + 2 * guard_bytes);
    if (!buffer) return buffer.failure();
    // The whole buffer, so that the last bytes of an odd-sized 16-bit tensor are guarded as well.
    if (auto filled = (*stream)->fill(**buffer, 0, payload + 2 * guard_bytes, guard_pattern);
        !filled) {
      return filled.failure();
    }
    operands.buffers_.push_back(*std::move(buffer));
  }
  if (auto done = (*stream)->synchronize(std::chrono::minutes(1)); !done) return done.failure();
  return operands;
}

std::uint64_t Operands::address(std::size_t tensor) const {
  return buffers_.at(tensor)->address() + guard_bytes;
}

Result<void> Operands::upload(Device& device, std::size_t tensor, const HostTensor& data) {
  if (data.data.size() != specs_.at(tensor).bytes()) {
    return Failure{Status::invalid_argument,
                   fmt::format("tensor {} has {} bytes, its operand {}", specs_[tensor].name,
                               data.data.size(), specs_[tensor].bytes()),
                   {}};
  }
  return device.upload(*buffers_[tensor], guard_bytes, data.data);
}

Result<void> Operands::poison_outputs(Stream& stream) {
  for (std::size_t i = 0; i < specs_.size(); ++i) {
    if (specs_[i].role != Role::output) continue;
    // The last word of an odd number of 16-bit elements is poisoned whole; its second half is
    // outside of the tensor, and broken_guard() knows that.
    auto filled =
        stream.fill(*buffers_[i], guard_bytes, rounded_to_words(specs_[i].bytes()), nan_pattern);
    if (!filled) return filled;
  }
  return {};
}

Result<std::vector<HostTensor>> Operands::download_outputs(Device& device) const {
  std::vector<HostTensor> outputs;
  for (std::size_t i = 0; i < specs_.size(); ++i) {
    if (specs_[i].role == Role::input) continue;
    HostTensor tensor{specs_[i], std::vector<std::byte>(specs_[i].bytes())};
    if (auto done = device.download(*buffers_[i], guard_bytes, tensor.data); !done) {
      return done.failure();
    }
    outputs.push_back(std::move(tensor));
  }
  return outputs;
}

Result<std::optional<std::string>> Operands::broken_guard(Device& device) const {
  std::vector<std::uint32_t> words(guard_bytes / sizeof(std::uint32_t));
  for (std::size_t i = 0; i < specs_.size(); ++i) {
    const std::size_t end = guard_bytes + rounded_to_words(specs_[i].bytes());
    for (const std::size_t offset : {std::size_t{0}, end}) {
      auto done = device.download(*buffers_[i], offset, std::as_writable_bytes(std::span(words)));
      if (!done) return done.failure();
      if (const auto at = first_difference(words)) {
        return std::optional(
            offset == 0
                ? fmt::format("wrote {} bytes before tensor {}", guard_bytes - *at, specs_[i].name)
                : fmt::format("wrote {} bytes past the end of tensor {}", *at + 1, specs_[i].name));
      }
    }
  }
  return std::optional<std::string>{};
}

}  // namespace greta
