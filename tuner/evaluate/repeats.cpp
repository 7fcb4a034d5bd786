#include "tuner/evaluate/repeats.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <iterator>
#include <memory>
#include <optional>

#include "kernels/model/parallel.hpp"
#include "tuner/measure/stopwatch.hpp"

namespace greta::tuner {
namespace {

/// Work on another stream, which occupies a device's memory while a candidate runs.
class OtherWork {
 public:
  static Result<OtherWork> create(Device& device) {
    OtherWork work;
    const bool is_cpu = device.info().is_cpu();
    work.fills_ = is_cpu ? 4 : 32;
    auto stream = device.create_stream();
    if (!stream) return stream.failure();
    auto buffer = device.allocate(std::size_t{is_cpu ? 4U : 64U} << 20);
    if (!buffer) return buffer.failure();
    work.buffer_ = *std::move(buffer);
    work.stream_ = *std::move(stream);
    return work;
  }

  Result<void> begin() {
    for (int i = 0; i < fills_; ++i) {
      if (auto done = stream_->fill(*buffer_, 0, buffer_->size(), 0); !done) return done;
    }
    return stream_->submit();
  }
  Result<void> end() { return stream_->synchronize(std::chrono::minutes(1)); }

 private:
  std::unique_ptr<Buffer> buffer_;  // outlives the stream that fills it
  std::unique_ptr<Stream> stream_;
  int fills_ = 0;
};

/// Compares on all cores: outputs can have a gigabyte.
bool same_bytes(const std::vector<std::byte>& a, const std::vector<std::byte>& b) {
  constexpr std::int64_t part = 1 << 20;
  const std::int64_t size = std::ssize(a);
  std::atomic<bool> same = a.size() == b.size();
  if (!same) return false;
  kernels::parallel_parts((size + part - 1) / part, [&](std::int64_t first, std::int64_t last) {
    const std::int64_t from = first * part, to = std::min(last * part, size);
    if (std::memcmp(a.data() + from, b.data() + from, static_cast<std::size_t>(to - from)) != 0) {
      same = false;
    }
  });
  return same;
}

/// The elements of outputs whose bits differed.
struct Differences {
  std::vector<std::vector<char>> marks;  ///< of each output, by element in memory

  void add(const std::vector<HostTensor>& first, const std::vector<HostTensor>& other) {
    marks.resize(first.size());
    for (std::size_t t = 0; t < first.size(); ++t) {
      if (same_bytes(first[t].data, other[t].data)) continue;
      const auto size = bytes_of(first[t].spec.dtype, std::size_t{1});
      marks[t].resize(first[t].data.size() / size);
      for (std::size_t i = 0; i < marks[t].size(); ++i) {
        const auto at = i * size;
        if (std::memcmp(first[t].data.data() + at, other[t].data.data() + at, size) != 0)
          marks[t][i] = 1;
      }
    }
  }
  std::size_t count() const {
    std::size_t all = 0;
    for (const auto& of_one : marks)
      all += static_cast<std::size_t>(std::count(of_one.begin(), of_one.end(), char{1}));
    return all;
  }
  /// Returns the first of them: "(3, 17) of C".
  std::string first(const std::vector<HostTensor>& outputs) const {
    for (std::size_t t = 0; t < marks.size(); ++t) {
      const auto at = std::find(marks[t].begin(), marks[t].end(), char{1});
      if (at == marks[t].end()) continue;
      const auto [row, col] = outputs[t].spec.place(at - marks[t].begin());
      return fmt::format("({}, {}) of {}", row, col, outputs[t].spec.name);
    }
    return {};
  }
};

std::string elements(std::size_t count) {
  return fmt::format("{} element{}", count, count == 1 ? "" : "s");
}

}  // namespace

Result<Determinism> check_repeats(Device& device, Stream& stream, Workload& load,
                                  const PreparedPlan& candidate, const RepeatLimits& limits,
                                  bool unordered) {
  constexpr int fewest = 3;
  auto other = OtherWork::create(device);  // without memory for it, the device stays idle
  const Stopwatch watch;
  std::vector<HostTensor> first, next;
  Differences differences;
  int done = 0, busy = 0;
  const bool ends_early = device.info().is_cpu();
  for (; done < limits.runs; ++done) {
    if (ends_early && done >= fewest && watch.seconds() > limits.seconds) break;
    const bool is_busy = other && done % 2 == 1;
    if (is_busy) {
      if (auto begun = other->begin(); !begun) return begun.failure();
    }
    auto& outputs = done == 0 ? first : next;
    auto ran = load.outputs_of(device, stream, candidate, limits.run_s, {}, outputs);
    if (is_busy) {
      if (auto ended = other->end(); !ended && ran) return ended.failure();
      ++busy;
    }
    if (!ran) return ran.failure();
    if (done > 0) differences.add(first, next);
  }
  const std::size_t count = differences.count();
  if (count > 0 && !unordered) {
    return Failure{
        Status::correctness,
        fmt::format("race: {} differ between {} runs, {} of them on a busy device on the same "
                    "inputs, the first is {}",
                    elements(count), done, busy, differences.first(first)),
        {}};
  }
  return Determinism{.runs = done, .busy = busy, .differing = count, .planned = limits.runs};
}

}  // namespace greta::tuner
