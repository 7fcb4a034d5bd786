#include "kernels/launch/operands.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace greta::kernels {
namespace {

/// Guards of tables are finite: an invalid row must give NaN, so a kernel that reads the guard
/// instead must not find NaN.
GuardValues guard_values(const TensorSpec& spec) {
  return spec.table ? GuardValues::finite : GuardValues::nan;
}

}  // namespace

Result<Operands> Operands::create(Device& device, const std::vector<TensorSpec>& specs) {
  Operands operands;
  operands.specs_ = specs;
  for (const auto& spec : specs) {
    auto buffer = GuardedBuffer::create(device, spec.bytes(), guard_values(spec));
    if (!buffer) return buffer.failure();
    operands.buffers_.push_back(*std::move(buffer));
  }
  return operands;
}

std::uint64_t Operands::address(std::size_t tensor) const {
  return buffers_.at(tensor).address();
}

std::uint64_t Operands::written_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& spec : specs_) bytes += spec.role == Role::input ? 0 : spec.bytes();
  return bytes;
}

Result<void> Operands::upload(Device& device, std::size_t tensor, const HostTensor& data) {
  if (data.data.size() != specs_.at(tensor).bytes()) {
    return Failure{Status::invalid_argument,
                   fmt::format("tensor {} has {} bytes, its operand {}", specs_[tensor].name,
                               data.data.size(), specs_[tensor].bytes()),
                   {}};
  }
  return buffers_[tensor].upload(device, data.data);
}

Result<void> Operands::upload_part(Device& device, std::size_t tensor, std::size_t first,
                                   std::span<const std::byte> from) {
  return buffers_.at(tensor).upload(device, from, first);
}

Result<void> Operands::download_part(Device& device, std::size_t tensor, std::size_t first,
                                     std::span<std::byte> to) const {
  return buffers_.at(tensor).download(device, to, first);
}

Result<void> Operands::poison_outputs(Stream& stream) {
  for (std::size_t i = 0; i < specs_.size(); ++i) {
    if (specs_[i].role != Role::output) continue;
    if (auto filled = buffers_[i].poison(stream); !filled) return filled;
  }
  return {};
}

Result<void> Operands::download_outputs(Device& device, std::vector<HostTensor>& outputs) const {
  std::size_t count = 0;
  for (std::size_t i = 0; i < specs_.size(); ++i) {
    if (specs_[i].role == Role::input) continue;
    if (++count > outputs.size()) outputs.emplace_back();
    HostTensor& output = outputs[count - 1];
    output.spec = specs_[i];
    output.data.resize(specs_[i].bytes());
    if (auto done = buffers_[i].download(device, output.data); !done) return done;
  }
  outputs.resize(count);
  return {};
}

Result<std::optional<std::string>> Operands::broken_guard(Device& device,
                                                          std::size_t part_bytes) const {
  std::vector<std::pair<const GuardedBuffer*, std::string>> named;
  for (std::size_t i = 0; i < specs_.size(); ++i) {
    named.emplace_back(&buffers_[i], "tensor " + specs_[i].name);
  }
  auto broken = GuardedBuffer::first_broken_guard(device, named);
  if (!broken || *broken) return broken;
  for (std::size_t i = 0; i < specs_.size(); ++i) {
    const auto gap = broken_gap(device, i, part_bytes);
    if (!gap) return gap.failure();
    if (*gap)
      return std::optional(fmt::format("wrote after row {} of tensor {}", **gap, specs_[i].name));
  }
  return std::optional<std::string>{};
}

Result<std::optional<std::int64_t>> Operands::broken_gap(Device& device, std::size_t tensor,
                                                         std::size_t part_bytes) const {
  const TensorSpec& spec = specs_[tensor];
  const std::size_t row = bytes_of(spec.dtype, static_cast<std::size_t>(spec.row_stride()));
  const std::size_t used = bytes_of(spec.dtype, static_cast<std::size_t>(spec.cols));
  const std::size_t end = static_cast<std::size_t>(spec.rows - 1) * row;
  if (row == used) return std::optional<std::int64_t>{};
  std::vector<std::byte> part;
  for (std::size_t first = 0; first < end; first += part.size()) {
    part.resize(std::min(end - first, part_bytes));
    if (auto done = download_part(device, tensor, first, part); !done) return done.failure();
    const std::size_t behind = first + part.size();
    for (std::size_t at = first / row * row; at < behind; at += row) {
      const std::size_t from = std::max(at + used, first), to = std::min(at + row, behind);
      const bool intact =
          from >= to || std::all_of(part.data() + (from - first), part.data() + (to - first),
                                    [](std::byte b) { return b == std::byte{0xFF}; });
      if (!intact) return std::optional(static_cast<std::int64_t>(at / row));
    }
  }
  return std::optional<std::int64_t>{};
}

}  // namespace greta::kernels
