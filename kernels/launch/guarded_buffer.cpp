#include "kernels/launch/guarded_buffer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <vector>

#include "kernels/model/expression.hpp"

namespace greta::kernels {
namespace {

constexpr std::size_t guard_bytes = 64 * 1024;
constexpr std::size_t most_page = 16 * 1024;  // larger ones are not fenced
constexpr std::size_t widest_load = 16;

/// Returns whether an access of a kernel to closed pages is a fault that the device reports.
bool reports_faults(const DeviceInfo& device) {
  return device.is_cpu() && device.language == Language::hip && Fence::page() <= most_page;
}

constexpr std::size_t whole_words(std::size_t bytes) {
  return bytes / 4 * 4;
}

/// Returns the pattern of a buffer's guard zones. It depends on the address, and NaN patterns are
/// signalling in f32 and bf16. Processors preserve the bits of quiet NaNs, so a kernel that reads a
/// guard and writes the result to it, or to a guard with equal bits, would otherwise remain
/// undetected. Finite patterns are near -1 in f32 and bf16, and near -1.9 in f16.
std::uint32_t guard_pattern_of(std::uint64_t address, GuardValues values) {
  if (values == GuardValues::one) return 1;
  const auto mixed = static_cast<std::uint32_t>(address / 256 * 0x9E3779B97F4A7C15 >> 54);
  const std::uint32_t base = values == GuardValues::nan ? 0xFF81FF81 : 0xBF81BF81;
  return base | (mixed >> 5) << 17 | (mixed & 31) << 1;
}

/// Returns the index of the first damaged byte. bytes[0] is at `offset` in the allocation.
std::optional<std::size_t> first_damage(const std::vector<std::byte>& bytes, std::size_t offset,
                                        std::uint32_t pattern) {
  if (bytes.empty()) return std::nullopt;
  constexpr std::size_t longest = guard_bytes + 256 + most_page;
  constexpr std::size_t words = longest / 4 + 2;
  const std::vector<std::uint32_t> intact_words(words, pattern);
  const auto* intact = reinterpret_cast<const std::byte*>(intact_words.data()) + offset % 4;
  if (bytes.size() <= (words - 1) * 4 && std::memcmp(bytes.data(), intact, bytes.size()) == 0)
    return std::nullopt;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto right = static_cast<std::byte>(pattern >> 8 * ((offset + i) % 4) & 0xFF);
    if (bytes[i] != right) return i;
  }
  return std::nullopt;
}

}  // namespace

Result<GuardedBuffer> GuardedBuffer::create(Device& device, std::size_t bytes, GuardValues values,
                                            std::size_t offset, Bounds bounds) {
  // Fills write whole words. What the first and the last word have beyond the bytes belongs to the
  // guard.
  const bool watched = device.info().watches_bounds;
  const bool fenced = !watched && bounds == Bounds::fenced && reports_faults(device.info());
  GuardedBuffer guarded;
  guarded.bytes_ = bytes;
  guarded.start_ = (watched ? 0 : guard_bytes) + offset;
  const std::size_t after = guarded.start_ + bytes;
  const std::size_t first_words = offset % 4 == 0 ? 0 : whole_words(offset) + 4;
  const std::size_t total = watched
                                ? std::max(after, first_words)
                                : whole_words(after + 3) + guard_bytes + (fenced ? most_page : 0);
  auto buffer = device.allocate(total);
  if (!buffer) return buffer.failure();
  guarded.buffer_ = *std::move(buffer);
  if (watched) return guarded;
  guarded.guarded_ = true;
  guarded.end_ = total;
  if (fenced) guarded.move_to_page();
  guarded.guard_pattern_ = guard_pattern_of(guarded.buffer_->address(), values);
  auto stream = device.create_stream();
  if (!stream) return stream.failure();
  const std::size_t start = whole_words(guarded.start_ + 3);
  const std::size_t end = whole_words(guarded.start_ + bytes);
  for (const auto& [first, last] : {std::pair{std::size_t{0}, start}, {end, total}}) {
    auto filled = (*stream)->fill(*guarded.buffer_, first, last - first, guarded.guard_pattern_);
    if (!filled) return filled.failure();
  }
  if (auto done = (*stream)->synchronize(std::chrono::minutes(1)); !done) return done.failure();
  if (fenced) guarded.close();
  return guarded;
}

void GuardedBuffer::move_to_page() {
  const std::size_t after = buffer_->address() + start_ + bytes_;  // in this process, too
  const std::size_t whole = round_up(after, widest_load);
  const std::size_t border = round_up(whole, Fence::page());
  start_ += border - whole;
  end_ = border - buffer_->address();
}

void GuardedBuffer::close() {
  std::byte* const memory = buffer_->host();
  if (memory == nullptr) return;
  fence_ = Fence({memory + end_, buffer_->size() - end_});
}

std::uint64_t GuardedBuffer::address() const {
  return buffer_->address() + start_;
}

Result<void> GuardedBuffer::upload(Device& device, std::span<const std::byte> from,
                                   std::size_t first) {
  return device.upload(*buffer_, start_ + first, from);
}

Result<void> GuardedBuffer::download(Device& device, std::span<std::byte> to,
                                     std::size_t first) const {
  return device.download(*buffer_, start_ + first, to);
}

Result<void> GuardedBuffer::poison(Stream& stream, std::size_t first, std::uint32_t pattern) const {
  if (first >= bytes_) return {};
  const auto low_bytes = [](std::size_t count) {
    return static_cast<std::uint32_t>((std::uint64_t{1} << 8 * count) - 1);
  };
  std::size_t from = start_ + first;
  const std::size_t end = start_ + bytes_, words_end = whole_words(end), odd = from % 4;
  if (odd != 0) {  // the part of the first word before `from` belongs to the guard
    pattern = std::rotl(pattern, static_cast<int>(8 * odd));
    const std::uint32_t ours =
        low_bytes(std::min<std::size_t>(4, odd + end - from)) & ~low_bytes(odd);
    const std::uint32_t theirs = guarded_ ? guard_pattern_ : pattern;
    from -= odd;
    auto filled = stream.fill(*buffer_, from, 4, (theirs & ~ours) | (pattern & ours));
    if (!filled) return filled;
    from += 4;
    if (from >= end) return {};
  }
  auto filled = stream.fill(*buffer_, from, words_end - from, pattern);
  if (!filled || words_end == end) return filled;
  if (!guarded_) {  // fills write whole words, so the remaining bytes are copied
    const bool has_words = words_end > from;
    if (!has_words && odd == 0) return {};
    const std::size_t words = has_words ? from : from - 4;
    return stream.copy(*buffer_, words_end, *buffer_, words, end - words_end);
  }
  // A part of the last word belongs to the guard.
  const std::uint32_t ours = low_bytes(end - words_end);
  return stream.fill(*buffer_, words_end, 4, (pattern & ours) | (guard_pattern_ & ~ours));
}

Result<std::optional<std::string>> GuardedBuffer::broken_guard(Device& device,
                                                               const std::string& name) const {
  const std::pair<const GuardedBuffer*, std::string> one(this, name);
  return first_broken_guard(device, {&one, 1});
}

Result<std::optional<std::string>> GuardedBuffer::first_broken_guard(
    Device& device, std::span<const std::pair<const GuardedBuffer*, std::string>> named) {
  struct Zones {
    std::vector<std::byte> before, after;
  };
  std::vector<Zones> zones(named.size());
  std::vector<Download> parts;
  for (std::size_t i = 0; i < named.size(); ++i) {
    const GuardedBuffer& guarded = *named[i].first;
    if (!guarded.guarded_) continue;
    const std::size_t end = guarded.start_ + guarded.bytes_;
    zones[i].before.resize(guarded.start_);
    zones[i].after.resize(guarded.end_ - end);
    parts.push_back({guarded.buffer_.get(), 0, zones[i].before});
    parts.push_back({guarded.buffer_.get(), end, zones[i].after});
  }
  if (auto done = device.download_all(parts); !done) return done.failure();
  for (std::size_t i = 0; i < named.size(); ++i) {
    const auto& [guarded, name] = named[i];
    const std::uint32_t pattern = guarded->guard_pattern_;
    if (const auto at = first_damage(zones[i].before, 0, pattern)) {
      return std::optional(fmt::format("wrote before {0}, first at byte {1} before it", name,
                                       guarded->start_ - *at));
    }
    if (const auto at = first_damage(zones[i].after, guarded->start_ + guarded->bytes_, pattern)) {
      return std::optional(
          fmt::format("wrote past the end of {}, first at byte {} after it", name, *at + 1));
    }
  }
  return std::optional<std::string>{};
}

}  // namespace greta::kernels
