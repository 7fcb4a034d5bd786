#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "runtime/pipeline/lookup/answer.hpp"
#include "runtime/pipeline/lookup/fingerprint.hpp"

namespace greta::runtime {

/// Answers by problem. Any number of threads may find while one inserts; finding takes no lock,
/// allocates nothing and reads about one line of the cache. Answers stay where they are until the
/// table goes.
///
/// Open addressing with linear probing, at most two thirds full. A slot is published by its
/// pointer, a larger table by the pointer to it; earlier tables are kept for readers that still are
/// in them, which at most doubles their memory.
class AnswerTable {
 public:
  AnswerTable();
  AnswerTable(const AnswerTable&) = delete;
  AnswerTable& operator=(const AnswerTable&) = delete;

  /// The answer for a problem, or nullptr.
  const Answer* find(const Fingerprint& problem) const noexcept {
    const Slots& table = *current_.load(std::memory_order_acquire);
    for (std::size_t i = problem.slot & table.mask;; i = (i + 1) & table.mask) {
      const Slot& slot = table.slots[i];
      const Answer* const answer = slot.answer.load(std::memory_order_acquire);
      if (answer == nullptr) return nullptr;
      if (slot.low.load(std::memory_order_relaxed) == problem.slot &&
          slot.high.load(std::memory_order_relaxed) == problem.check) {
        return answer;
      }
    }
  }

  /// Adds the answer for a problem that has none. One thread at a time.
  const Answer& insert(const Fingerprint& problem, Answer answer);

 private:
  struct alignas(32) Slot {
    std::atomic<std::uint64_t> low{0}, high{0};
    std::atomic<const Answer*> answer{nullptr};
  };
  struct Slots {
    explicit Slots(std::size_t size) : mask(size - 1), slots(new Slot[size]) {}
    std::size_t mask;
    std::unique_ptr<Slot[]> slots;
  };
  struct Entry {
    Fingerprint problem;
    Answer answer;
  };

  static void put(const Slots& table, const Entry& entry);
  void grow();

  std::deque<Entry> entries_;
  std::vector<std::unique_ptr<const Slots>> tables_;
  std::atomic<const Slots*> current_;
};

}  // namespace greta::runtime
