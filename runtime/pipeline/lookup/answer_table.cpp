#include "runtime/pipeline/lookup/answer_table.hpp"

#include <algorithm>

namespace greta {

AnswerTable::AnswerTable() {
  constexpr std::size_t first_size = 256;  // a power of two, as every later one
  tables_.push_back(std::make_unique<const Slots>(first_size));
  current_.store(tables_.back().get(), std::memory_order_release);
}

bool AnswerTable::Entry::is(std::span<const std::uint64_t> other) const noexcept {
  if (other.size() != count) return false;
  const std::size_t here = std::min(count, at_hand);
  return std::equal(other.begin(), other.begin() + static_cast<std::ptrdiff_t>(here),
                    words.begin()) &&
         std::equal(more.begin(), more.end(), other.begin() + static_cast<std::ptrdiff_t>(here));
}

void AnswerTable::put(const Slots& slots, const Entry& entry) {
  std::size_t i = entry.hash & slots.mask;
  while (slots.slots[i].entry.load(std::memory_order_relaxed) != nullptr) i = (i + 1) & slots.mask;
  slots.slots[i].hash.store(entry.hash, std::memory_order_relaxed);
  slots.slots[i].entry.store(&entry, std::memory_order_release);  // publishes the hash as well
}

void AnswerTable::grow() {
  auto larger = std::make_unique<const Slots>(2 * (tables_.back()->mask + 1));
  for (const Entry& entry : entries_) put(*larger, entry);
  tables_.push_back(std::move(larger));
  current_.store(tables_.back().get(), std::memory_order_release);
}

const Answer& AnswerTable::insert(std::uint64_t hash, std::span<const std::uint64_t> words,
                                  Answer answer) {
  if (2 * (entries_.size() + 1) > tables_.back()->mask + 1) grow();
  Entry& entry = entries_.emplace_back();
  entry.count = words.size();
  const std::size_t here = std::min(words.size(), Entry::at_hand);
  std::copy_n(words.begin(), here, entry.words.begin());
  entry.more.assign(words.begin() + static_cast<std::ptrdiff_t>(here), words.end());
  entry.hash = hash;
  entry.answer = std::move(answer);
  put(*tables_.back(), entry);
  return entry.answer;
}

}  // namespace greta
