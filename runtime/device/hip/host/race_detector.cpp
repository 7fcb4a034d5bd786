#include "runtime/device/hip/host/race_detector.hpp"

#include <algorithm>
#include <new>

namespace greta::device::hip::host {

void RaceDetector::set_launch(const greta_host::Entry& entry, unsigned threads,
                              unsigned wave_size) {
  const auto bytes = static_cast<std::size_t>(entry.shared_end - entry.shared);
  if (bytes > cell_count_) {  // pages of zeros that are never accessed need no memory
    cells_.reset(static_cast<Cell*>(std::calloc(bytes, sizeof(Cell))));
    if (!cells_) throw std::bad_alloc();
    cell_count_ = bytes;
  }
  shared_ = entry.shared;
  threads_ = threads;
  wave_size_ = wave_size;
  known_.assign((threads + wave_size - 1) / wave_size, Times(threads));
  met_.assign(greta_host::partial_barriers, Times(threads));
  tree_.assign(1, {});
  places_.clear();
}

void RaceDetector::start_block() {
  constexpr std::uint32_t latest = std::uint32_t{1} << 31;
  if (time_ > latest) {
    std::fill_n(cells_.get(), cell_count_, Cell{});
    for (Times& times : known_) times.assign(threads_, 0);
    time_ = 1;
  }
  block_start_ = block_barrier_ = time_++;
  met_.assign(greta_host::partial_barriers, Times(threads_));
  released_.clear();
  fenced_.assign(threads_, false);
  calls_.assign(threads_, 0);
}

// Of two places, the first is of the phases that have ended, the second of the current one, too.
unsigned RaceDetector::add_barrier() {
  met_.resize(met_.size() + 2, Times(threads_));
  return static_cast<unsigned>(met_.size()) - 2;
}

void RaceDetector::met_block() {
  block_barrier_ = time_++;
}

void RaceDetector::met_wave(unsigned wave) {
  const unsigned first = wave * wave_size_, end = std::min(first + wave_size_, threads_);
  std::fill(known_[wave].begin() + first, known_[wave].begin() + end, time_++);
}

void RaceDetector::join(Times& times, const Times& others) {
  std::transform(times.begin(), times.end(), others.begin(), times.begin(),
                 [](std::uint32_t a, std::uint32_t b) { return std::max(a, b); });
}

void RaceDetector::arrive(unsigned barrier, unsigned thread) {
  join(met_[barrier], known_[thread / wave_size_]);
  met_[barrier][thread] = time_++;
}

void RaceDetector::call(unsigned thread, const void* code) {
  std::uint32_t& place = calls_[thread];
  if (code == nullptr) {
    place = tree_[place].first;
    return;
  }
  const auto [found, added] =
      places_.try_emplace({place, code}, static_cast<std::uint32_t>(tree_.size()));
  if (added) tree_.emplace_back(place, code);
  place = found->second;
}

RaceDetector::Touch RaceDetector::touch(unsigned thread, greta_host::Access access,
                                        const void* code) const {
  const auto offset = static_cast<const unsigned char*>(code) - shared_;
  return {time_, static_cast<std::int32_t>(offset), calls_[thread],
          static_cast<std::uint16_t>(thread), access};
}

std::optional<Race> RaceDetector::access(unsigned thread, const void* at, unsigned bytes,
                                         greta_host::Access access, const void* code) {
  const Touch mine = touch(thread, access, code);
  if (mine.atomic()) {
    if (const auto known = released_.find(at); known != released_.end()) {
      join(known_[thread / wave_size_], known->second);
    }
  }
  auto race = record(static_cast<const unsigned char*>(at), bytes, mine);
  if (mine.atomic() && mine.writes() && fenced_[thread]) {
    Times& times = released_.try_emplace(at, Times(threads_)).first->second;
    join(times, known_[thread / wave_size_]);
    times[thread] = time_++;
  }
  return race;
}

std::optional<Race> RaceDetector::stage(unsigned thread, const void* at, unsigned bytes,
                                        const void* code) {
  Touch mine = touch(thread, greta_host::Access::write, code);
  mine.staged = true;
  return record(static_cast<const unsigned char*>(at), bytes, mine);
}

void RaceDetector::finish(unsigned thread, const void* at, unsigned bytes) {
  Cell* cell = cells_.get() + (static_cast<const unsigned char*>(at) - shared_);
  for (Cell* const end = cell + bytes; cell != end; ++cell) {
    if (!cell->write.staged || cell->write.thread != thread) continue;
    cell->write.staged = false;
    cell->write.time = time_;
  }
}

std::optional<Race> RaceDetector::record(const unsigned char* at, unsigned bytes,
                                         const Touch& touch) {
  Cell* cell = cells_.get() + (at - shared_);
  for (unsigned i = 0; i < bytes; ++i, ++cell) {
    if (cell->read.same(touch)) continue;
    if (cell->write.same(touch) && cell->read.time == 0) continue;
    if (const Touch* const earlier = conflict(*cell, touch)) {
      return Race{at + i, described(*earlier), described(touch)};
    }
    if (touch.writes()) {
      *cell = {touch, {}, {}, {}};
    } else {
      add_read(*cell, touch);
    }
  }
  return std::nullopt;
}

bool RaceDetector::ordered(const Touch& earlier, unsigned thread) const {
  return earlier.time <= block_barrier_ || earlier.thread == thread ||
         earlier.time <= known_[thread / wave_size_][earlier.thread];
}

const RaceDetector::Touch* RaceDetector::conflict(const Cell& cell, const Touch& touch) const {
  const auto races = [&](const Touch& earlier) {
    if (earlier.time <= block_start_) return false;
    if (earlier.staged) return !touch.staged || earlier.thread != touch.thread;
    return !(earlier.atomic() && touch.atomic()) && !ordered(earlier, touch.thread);
  };
  if (races(cell.write)) return &cell.write;
  if (!touch.writes()) return nullptr;
  for (const Touch* earlier : {&cell.read, &cell.of_same_wave, &cell.of_another_wave}) {
    if (races(*earlier)) return earlier;
  }
  return nullptr;
}

void RaceDetector::add_read(Cell& cell, const Touch& touch) const {
  if (cell.read.time != 0 && cell.read.thread != touch.thread) {
    if (cell.read.thread / wave_size_ == touch.thread / wave_size_) {
      cell.of_same_wave = cell.read;
    } else {
      cell.of_another_wave = cell.read;
      cell.of_same_wave = {};
    }
  }
  cell.read = touch;
}

SharedAccess RaceDetector::described(const Touch& touch) const {
  SharedAccess access{touch.thread, touch.access, touch.staged, {shared_ + touch.code}};
  for (std::uint32_t place = touch.calls; place != 0; place = tree_[place].first) {
    access.stack.push_back(tree_[place].second);
  }
  return access;
}

}  // namespace greta::device::hip::host
