#include "runtime/pipeline/lookup/answer_table.hpp"

#include <utility>

namespace greta::runtime {

AnswerTable::AnswerTable() {
  constexpr std::size_t first_size = 256;  // a power of two, as every later one
  tables_.push_back(std::make_unique<const Slots>(first_size));
  current_.store(tables_.back().get(), std::memory_order_release);
}

void AnswerTable::put(const Slots& table, const Entry& entry) {
  std::size_t i = entry.problem.slot & table.mask;
  while (table.slots[i].answer.load(std::memory_order_relaxed) != nullptr) i = (i + 1) & table.mask;
  table.slots[i].low.store(entry.problem.slot, std::memory_order_relaxed);
  table.slots[i].high.store(entry.problem.check, std::memory_order_relaxed);
  table.slots[i].answer.store(&entry.answer, std::memory_order_release);  // publishes all three
}

void AnswerTable::grow() {
  auto larger = std::make_unique<const Slots>(2 * (tables_.back()->mask + 1));
  for (const Entry& entry : entries_) put(*larger, entry);
  tables_.push_back(std::move(larger));
  current_.store(tables_.back().get(), std::memory_order_release);
}

const Answer& AnswerTable::insert(const Fingerprint& problem, Answer answer) {
  if (3 * (entries_.size() + 1) > 2 * (tables_.back()->mask + 1)) grow();
  const Entry& entry = entries_.emplace_back(Entry{problem, std::move(answer)});
  put(*tables_.back(), entry);
  return entry.answer;
}

}  // namespace greta::runtime
