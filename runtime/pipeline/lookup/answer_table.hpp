#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "runtime/pipeline/lookup/answer.hpp"

namespace greta {

/// Answers by problem. Any number of threads may find while one inserts; finding takes no lock and
/// allocates nothing. Answers stay where they are until the table goes.
///
/// Open addressing with linear probing, at most half full. A slot is published by its pointer, a
/// larger table by the pointer to it; earlier tables are kept for readers that still are in them,
/// which at most doubles the memory.
class AnswerTable {
 public:
  AnswerTable();
  AnswerTable(const AnswerTable&) = delete;
  AnswerTable& operator=(const AnswerTable&) = delete;

  /// The answer for a problem's words, or nullptr.
  const Answer* find(std::uint64_t hash, std::span<const std::uint64_t> words) const noexcept {
    const Slots& slots = *current_.load(std::memory_order_acquire);
    for (std::size_t i = hash & slots.mask;; i = (i + 1) & slots.mask) {
      const Entry* const entry = slots.slots[i].entry.load(std::memory_order_acquire);
      if (entry == nullptr) return nullptr;
      if (slots.slots[i].hash.load(std::memory_order_relaxed) == hash && entry->is(words)) {
        return &entry->answer;
      }
    }
  }

  /// Adds an answer for words that are not there. One thread at a time.
  const Answer& insert(std::uint64_t hash, std::span<const std::uint64_t> words, Answer answer);

 private:
  /// What a look-up reads stands in two lines of the cache, except for long problems.
  struct alignas(64) Entry {
    static constexpr std::size_t at_hand = 15;
    std::size_t count = 0;
    std::array<std::uint64_t, at_hand> words{};
    std::vector<std::uint64_t> more;  // those beyond
    std::uint64_t hash = 0;
    Answer answer;

    bool is(std::span<const std::uint64_t> other) const noexcept;
  };
  struct Slot {
    std::atomic<std::uint64_t> hash{0};
    std::atomic<const Entry*> entry{nullptr};
  };
  struct Slots {
    explicit Slots(std::size_t size) : mask(size - 1), slots(new Slot[size]) {}
    std::size_t mask;
    std::unique_ptr<Slot[]> slots;
  };

  static void put(const Slots& slots, const Entry& entry);
  void grow();

  std::deque<Entry> entries_;
  std::vector<std::unique_ptr<const Slots>> tables_;
  std::atomic<const Slots*> current_;
};

}  // namespace greta
