#include "kernels/launch/operands.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace greta::kernels {
namespace {

/// Guards of tables are finite: an invalid row must give NaN, so a kernel that reads the guard
/// instead must not find NaN.
GuardValues guard_values(const TensorSpec& spec) {
  if (spec.dtype == DType::i32 && spec.role == Role::input) return GuardValues::one;
  return spec.table ? GuardValues::finite : GuardValues::nan;
}

/// Returns the place of an element: its column where there is one row.
std::string place_of(const TensorSpec& spec, std::size_t element) {
  if (spec.rows == 1) return fmt::format("{}", element);
  const auto [row, col] = spec.place(static_cast<std::int64_t>(element));
  return fmt::format("({}, {})", row, col);
}

/// Bytes between the rows of a tensor, after row `row`.
struct Gap {
  std::size_t first = 0, last = 0;
  std::int64_t row = 0;
};

/// Returns the gaps by their place in memory.
std::vector<Gap> gaps_of(const TensorSpec& spec) {
  std::vector<std::pair<std::int64_t, std::int64_t>> starts;  // of rows, and their numbers
  for (std::int64_t row = 0; row < spec.rows; ++row) starts.emplace_back(spec.row_start(row), row);
  if (spec.block_rows > 0) std::sort(starts.begin(), starts.end());
  const auto bytes = [&spec](std::int64_t elements) {
    return bytes_of(spec.dtype, static_cast<std::size_t>(elements));
  };
  std::vector<Gap> gaps;
  for (std::size_t i = 0; i + 1 < starts.size(); ++i) {
    const auto [start, row] = starts[i];
    const Gap gap{bytes(start + spec.cols), bytes(starts[i + 1].first), row};
    if (gap.first < gap.last) gaps.push_back(gap);
  }
  return gaps;
}

}  // namespace

Result<Operands> Operands::create(Device& device, const std::vector<TensorSpec>& specs,
                                  Bounds bounds) {
  Operands operands;
  operands.specs_ = specs;
  operands.kept_.resize(specs.size());
  for (const auto& spec : specs) {
    const auto offset = bytes_of(spec.dtype, static_cast<std::size_t>(spec.offset));
    auto buffer = GuardedBuffer::create(device, spec.bytes(), guard_values(spec), offset, bounds);
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
  if (spec.contiguous()) return std::optional<std::int64_t>{};
  const std::vector<Gap> gaps = gaps_of(spec);
  auto gap = gaps.begin();
  std::vector<std::byte> part;
  for (std::size_t first = 0; gap != gaps.end(); first += part.size()) {
    part.resize(std::min(spec.bytes() - first, part_bytes));
    if (auto done = download_part(device, tensor, first, part); !done) return done.failure();
    const std::size_t end = first + part.size();
    for (; gap != gaps.end() && gap->first < end; ++gap) {
      const std::size_t from = std::max(gap->first, first), to = std::min(gap->last, end);
      const bool intact = std::all_of(part.data() + (from - first), part.data() + (to - first),
                                      [](std::byte b) { return b == std::byte{0xFF}; });
      if (!intact) return std::optional(gap->row);
      if (gap->last > end) break;
    }
  }
  return std::optional<std::int64_t>{};
}

}  // namespace greta::kernels
