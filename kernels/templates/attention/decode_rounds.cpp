#include "kernels/templates/attention/decode_rounds.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "kernels/planning/device_limits.hpp"
#include "kernels/templates/attention/slices.hpp"
#include "runtime/device/hardware/architectures.hpp"

namespace greta::kernels::attention {
namespace {

// Times of an H200, in bytes that a compute unit receives meanwhile if all of them load. A round of
// one row of queries multiplies in less time than it loads.
constexpr double bytes_of_latency = 25300;
constexpr double bytes_of_join = 74000, bytes_of_slice = 720;
/// What a compute unit receives at most, if others are idle: so many times its share.
constexpr double most_share = 1.5;
constexpr std::int64_t most_registers = 128;

double cost_of(const Shape& shape, const DeviceInfo& device, const Readers& readers,
               const Config& c) {
  const std::int64_t units = busy_workgroups(device), threads = c["THREADS"], split = c["SPLIT"];
  const std::int64_t at_once = threads / c["LANES"] * c["UNROLL"];
  const auto rounds = static_cast<double>(ceil_div(ceil_div(shape.seen_keys(), split), at_once));
  const double bytes = static_cast<double>(at_once * shape.both_dims()) * bytes_of(shape.in, 1);
  const std::int64_t fit =
      register_file(device) / (registers_with_nvrtc(shape, readers.rows, c) * threads);
  const std::int64_t resident =
      std::max<std::int64_t>(1, std::min(fit, std::int64_t{device.unit_threads} / threads));
  // Of `count` workgroups that run at once.
  const auto time = [&](std::int64_t count) {
    const double share = static_cast<double>(count) / static_cast<double>(units);
    const double busy = bytes * std::max(share, std::ceil(share) / most_share);
    // Between their sum and the larger one.
    constexpr double norm = 4;
    const double both = std::pow(std::pow(bytes_of_latency, norm) + std::pow(busy, norm), 1 / norm);
    return rounds * both + bytes_of_latency;
  };
  const std::int64_t all = readers.count * split, running = units * resident;
  double cost = static_cast<double>(all / running) * time(running);
  if (all % running > 0) cost += time(all % running);
  return split > 1 ? cost + bytes_of_join + bytes_of_slice * static_cast<double>(split) : cost;
}

}  // namespace

std::int64_t registers_with_nvrtc(const Shape& shape, std::int64_t rows, const Config& c) {
  const std::int64_t both = ceil_div(shape.both_dims(), std::int64_t{c["LANES"]});
  const std::int64_t loads = shape.load_registers(both);
  return round_up(rows * (both + 2) + c["UNROLL"] * loads + 24, 8);
}

std::optional<Config> fastest_rounds(const Shape& shape, const DeviceInfo& device, Readers readers,
                                     const Alternative& space) {
  if (!compiled_by_nvrtc(device) || !has_clusters(device.architecture) || readers.rows > 1) {
    return std::nullopt;
  }
  constexpr double alike = 1.02;  // less than the model's error
  std::optional<Config> fastest;
  double least = std::numeric_limits<double>::infinity();
  for (const int split : key_slices()) {
    for (const int vec : {8, 4}) {
      for (const int lanes : {16, 8, 4, 2, 32}) {
        for (const int unroll : {4, 2, 1}) {
          for (const int threads : {256, 128, 64}) {
            Config c{"decode",
                     {{"THREADS", threads},
                      {"LANES", lanes},
                      {"VEC", vec},
                      {"UNROLL", unroll},
                      {"AHEAD", 1},
                      {"SPLIT", split}}};
            if (registers_with_nvrtc(shape, readers.rows, c) > most_registers) continue;
            const double cost = cost_of(shape, device, readers, c);
            const bool more_slices = fastest && split > (*fastest)["SPLIT"];
            if (cost * (more_slices ? alike : 1) >= least || rejects(space, c)) continue;
            least = cost;
            fastest = std::move(c);
          }
        }
      }
    }
  }
  return fastest;
}

}  // namespace greta::kernels::attention
