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

/// Returns the place of an element: its column where there is one row.
std::string place_of(const TensorSpec& spec, std::size_t element) {
  const auto stride = static_cast<std::size_t>(spec.row_stride());
  if (spec.rows == 1) return fmt::format("{}", element);
  return fmt::format("({}, {})", element / stride, element % stride);
}

}  // namespace

Result<Operands> Operands::create(Device& device, const std::vector<TensorSpec>& specs) {
  Operands operands;
  operands.specs_ = specs;
  operands.kept_.resize(specs.size());
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
  if (specs_[tensor].role == Role::input) keep(tensor, data.data);
  return buffers_[tensor].upload(device, data.data);
}

void Operands::keep(std::size_t tensor, const std::vector<std::byte>& data) {
  constexpr std::size_t block = std::size_t{64} << 10, blocks = 16;
  std::vector<Kept>& kept = kept_[tensor];
  kept.clear();
  if (data.size() <= block * blocks) {
    kept.push_back({0, data});
    return;
  }
  for (std::size_t i = 0; i < blocks; ++i) {
    const std::size_t first = (data.size() - block) / (blocks - 1) * i;
    const std::size_t from = i + 1 < blocks ? first : data.size() - block;
    const auto begin = data.begin() + static_cast<std::ptrdiff_t>(from);
    kept.push_back({from, {begin, begin + static_cast<std::ptrdiff_t>(block)}});
  }
}

Result<std::optional<std::string>> Operands::written_input(Device& device) const {
  for (std::size_t i = 0; i < specs_.size(); ++i) {
    for (const Kept& kept : kept_[i]) {
      std::vector<std::byte> now(kept.bytes.size());
      if (auto done = download_part(device, i, kept.first, now); !done) return done.failure();
      const auto [was, is] = std::mismatch(kept.bytes.begin(), kept.bytes.end(), now.begin());
      if (was == kept.bytes.end()) continue;
      const auto offset = kept.first + static_cast<std::size_t>(was - kept.bytes.begin());
      const std::size_t at = offset * 8 / static_cast<std::size_t>(bits_of(specs_[i].dtype));
      return std::optional(
          fmt::format("wrote element {} of the input {}", place_of(specs_[i], at), specs_[i].name));
    }
  }
  return std::optional<std::string>{};
}

Result<void> Operands::upload_part(Device& device, std::size_t tensor, std::size_t first,
                                   std::span<const std::byte> from) {
  kept_.at(tensor).clear();
  return buffers_.at(tensor).upload(device, from, first);
}

Result<void> Operands::download_part(Device& device, std::size_t tensor, std::size_t first,
                                     std::span<std::byte> to) const {
  return buffers_.at(tensor).download(device, to, first);
}

Result<void> Operands::poison_outputs(Stream& stream, std::uint32_t pattern) {
  for (std::size_t i = 0; i < specs_.size(); ++i) {
    if (specs_[i].role != Role::output) continue;
    if (auto filled = buffers_[i].poison(stream, 0, pattern); !filled) return filled;
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
  return written_input(device);
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
