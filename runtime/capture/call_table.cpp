#include "runtime/capture/call_table.hpp"

#include <cstring>

namespace greta::capture {
namespace {

constexpr std::uint32_t cells = 2 * most_calls;  // a power of two, of which half stay empty
constexpr std::uint32_t being_written = ~std::uint32_t{0};

// Zero at first, so that memory of entries that are never used is never touched.
Entry entries[most_calls];
std::atomic<std::uint32_t> cell[cells];  // 0: empty, else the number of an entry, from 1 on
std::atomic<std::uint32_t> used;
std::atomic<std::uint64_t> uncounted;

std::uint64_t hash_of(const Call& call) {
  std::uint64_t words[sizeof(Call) / 8];
  std::memcpy(words, &call, sizeof words);
  std::uint64_t hash = 0x9e3779b97f4a7c15U;
  for (const std::uint64_t word : words) {
    hash = (hash ^ word) * 0xff51afd7ed558ccdU;
    hash ^= hash >> 32;
  }
  return hash;
}

void note_values(Entry& entry, const FactorValue (&factors)[2]) {
  for (int i = 0; i < 2; ++i) {
    if (entry.call.factors[i] != Factor::other) continue;
    if (std::memcmp(&entry.factors[i], &factors[i], sizeof factors[i]) != 0) {
      entry.varies[i].store(1, std::memory_order_relaxed);
    }
  }
}

/// Fills the next entry. Returns its number, from 1 on; 0 if there is none.
std::uint32_t new_entry(const Call& call, const FactorValue (&factors)[2]) {
  if (used.load(std::memory_order_relaxed) >= most_calls) return 0;
  const std::uint32_t index = used.fetch_add(1, std::memory_order_relaxed);
  if (index >= most_calls) return 0;
  Entry& entry = entries[index];
  entry.call = call;
  for (int i = 0; i < 2; ++i) entry.factors[i] = factors[i];
  entry.ready.store(true, std::memory_order_release);
  return index + 1;
}

/// Returns the value of a cell when no other thread is writing it. A thread that died while it
/// wrote, as in a child of a raw clone, does not stop others.
std::uint32_t settled(std::uint32_t at) {
  std::uint32_t value = cell[at].load(std::memory_order_acquire);
  for (int turn = 0; value == being_written && turn < 100000; ++turn) {
    value = cell[at].load(std::memory_order_acquire);
  }
  return value;
}

}  // namespace

Entry* find_entry(const Call& call, const FactorValue (&factors)[2]) {
  auto at = static_cast<std::uint32_t>(hash_of(call)) % cells;
  for (std::uint32_t step = 0; step < cells; ++step, at = (at + 1) % cells) {
    std::uint32_t value = settled(at);
    if (value == 0) {
      if (!cell[at].compare_exchange_strong(value, being_written, std::memory_order_acq_rel)) {
        value = settled(at);
      } else {
        const std::uint32_t number = new_entry(call, factors);
        cell[at].store(number, std::memory_order_release);
        return number != 0 ? &entries[number - 1] : nullptr;
      }
    }
    if (value == 0 || value == being_written) continue;
    Entry& entry = entries[value - 1];
    if (std::memcmp(&entry.call, &call, sizeof call) != 0) continue;
    note_values(entry, factors);
    return &entry;
  }
  return nullptr;
}

bool count_call(Entry* entry) {
  if (entry != nullptr) return entry->count.fetch_add(1, std::memory_order_relaxed) == 0;
  uncounted.fetch_add(1, std::memory_order_relaxed);
  return false;
}

void add_time(Entry& entry, float us) {
  float least = entry.least_us.load(std::memory_order_relaxed);
  while ((least == 0 || us < least) &&
         !entry.least_us.compare_exchange_weak(least, us, std::memory_order_relaxed)) {
  }
  entry.timed.fetch_add(1, std::memory_order_release);  // after the time
}

std::uint32_t entry_count() {
  const std::uint32_t count = used.load(std::memory_order_relaxed);
  return count < most_calls ? count : most_calls;
}

const Entry& entry(std::uint32_t index) {
  return entries[index];
}

std::uint64_t uncounted_calls() {
  return uncounted.load(std::memory_order_relaxed);
}

void clear_calls() {
  const std::uint32_t count = entry_count();
  if (count == 0) return;
  std::memset(static_cast<void*>(entries), 0, count * sizeof(Entry));
  std::memset(static_cast<void*>(cell), 0, sizeof cell);
  used.store(0);
  uncounted.store(0);
}

}  // namespace greta::capture
