#include "kernels/skeletons/rows_work.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/planning/device_limits.hpp"
#include "kernels/skeletons/rows_space.hpp"

namespace greta::kernels::rows {
namespace {

constexpr double flops_of_element = 12;  // with an exponential function

double value(const Config& config, const char* name) {
  return config.has(name) ? config[name] : 1;
}

/// Returns the bytes of all operands that have rows, of one row.
double row_bytes(const Shape& s, bool read) {
  double bytes = 0;
  for (const TensorSpec& tensor : s.tensors) {
    const bool has_rows = tensor.elements() >= static_cast<std::size_t>(s.rows * s.cols);
    const bool used = read ? tensor.role != Role::output : tensor.role != Role::input;
    if (has_rows && used) bytes += static_cast<double>(bytes_of(tensor.dtype, s.cols));
  }
  return bytes;
}

/// Returns the bytes of the operands that all rows have in common.
double weight_bytes(const Shape& s) {
  double bytes = 0;
  for (const TensorSpec& tensor : s.tensors) {
    if (tensor.rows == 1 && tensor.name != "X") {
      bytes += bytes_of(tensor.dtype, static_cast<double>(tensor.elements()));
    }
  }
  return bytes;
}

/// Returns the registers of a thread that keeps its columns' weights beside this number of
/// elements.
double weight_words(const Shape& s, double held) {
  return held * weight_bytes(s) / 4 / static_cast<double>(s.cols);
}

/// Returns the bytes of weights that a workgroup with this share of the columns reads beyond its
/// first-level cache, for this number of rows.
double weight_reads(const Shape& s, double share, double rows) {
  constexpr double cached = 65536;
  const double bytes = weight_bytes(s) * share;
  return bytes > cached ? rows * bytes : 0;
}

/// Returns the work of workgroups that each read and write this number of rows once.
LaunchWork walk(const Shape& s, const Config& config, double workgroups, double rows) {
  LaunchWork work;
  work.threads = config["THREADS"];
  work.workgroups = workgroups;
  work.read_bytes = rows * row_bytes(s, true);
  work.written_bytes = rows * row_bytes(s, false);
  work.unique_bytes = workgroups * (work.read_bytes + work.written_bytes);
  const double loaded_elements = work.read_bytes / bytes_of(s.in, 1);
  work.loads = loaded_elements / value(config, "VEC");
  work.vector_flops = flops_of_element * rows * static_cast<double>(s.cols);
  return work;
}

/// Reductions of more than a wave go through shared memory.
double barriers_of(const DeviceInfo& device, double lanes) {
  return lanes > std::max(32U, device.subgroup_size) ? 3 : 1;
}

}  // namespace

KernelWork held_work(const Shape& s, const DeviceInfo& device, const Config& config) {
  const double rows = config["ROWS"], stay = config["STAY"];
  const double all = std::ceil(static_cast<double>(s.rows) / rows);
  const double groups =
      stay > 0 ? std::min(all, static_cast<double>(busy_workgroups(device)) * stay) : all;
  const double rounds = std::ceil(all / groups);
  const double held = static_cast<double>(vectors_of_thread(s.cols, config)) * config["VEC"];
  LaunchWork work = walk(s, config, groups, rows * rounds);
  work.registers = held * (stay > 0 ? 1.5 : 1) + (stay > 0 ? weight_words(s, held) : 0) + 24;
  if (stay == 0) work.read_bytes += weight_reads(s, 1, rows);
  work.ahead_bytes = work.read_bytes / rounds;
  work.steps = rounds;
  work.overlapped = stay > 0;
  work.barriers = rounds * barriers_of(device, work.threads / rows);
  return {work};
}

KernelWork staged_work(const Shape& s, const DeviceInfo& device, const Config& config) {
  const double cluster = config["CLUSTER"], ahead = config["AHEAD"];
  const auto groups = static_cast<double>(staged_groups(s, device, config));
  const double rounds = std::ceil(static_cast<double>(s.rows) / groups);
  const double held = static_cast<double>(vectors_of_thread(s.cols, config)) * config["VEC"];
  LaunchWork work = walk(s, config, groups * cluster, rounds / cluster);
  work.registers = held + (config["KEEP"] == in_registers ? weight_words(s, held) : 0) + 32;
  work.shared_bytes = static_cast<double>(staged_bytes(s, config));
  work.shared_traffic = 2 * work.read_bytes;
  work.ahead_bytes = work.read_bytes / rounds * ahead;
  if (config["KEEP"] == 0) work.read_bytes += weight_reads(s, 1 / cluster, rounds);
  work.steps = rounds;
  work.overlapped = true;
  constexpr double of_cluster = 4;  // an exchange, by its cost
  work.barriers = rounds * (barriers_of(device, work.threads) + (cluster > 1 ? of_cluster : 0));
  return {work};
}

KernelWork streamed_work(const Shape& s, const DeviceInfo& device, const Config& config) {
  const double rows = value(config, "ROWS"), lanes = config["THREADS"] / rows;
  const double of_round = lanes * value(config, "VEC") * value(config, "ITEMS");
  LaunchWork work = walk(s, config, std::ceil(static_cast<double>(s.rows) / rows), rows);
  work.registers = 24 + 2 * value(config, "VEC") * value(config, "ITEMS");
  work.ahead_bytes = rows * of_round * bytes_of(s.in, 1);
  work.steps = 2 * std::ceil(static_cast<double>(s.cols) / of_round);
  work.read_bytes = 2 * work.read_bytes + weight_reads(s, 1, rows);
  work.loads *= 2;
  work.vector_flops *= 2;
  work.barriers = 2 * barriers_of(device, lanes);
  return {work};
}

KernelWork split_work(const Shape& s, const DeviceInfo& device, const Config& config) {
  const double split = config["SPLIT"];
  const double of_round = config["THREADS"] * value(config, "VEC") * value(config, "ITEMS");
  LaunchWork finish = walk(s, config, static_cast<double>(s.rows) * split, 1 / split);
  finish.registers = 24 + 2 * value(config, "VEC") * value(config, "ITEMS");
  finish.ahead_bytes = of_round * bytes_of(s.in, 1);
  finish.steps = std::ceil(static_cast<double>(s.cols) / split / of_round);
  finish.barriers = barriers_of(device, config["THREADS"]);
  LaunchWork partial = finish;
  partial.unique_bytes -= partial.workgroups * partial.written_bytes;
  partial.written_bytes = 4 * s.operation.statistic_words;
  return {partial, finish};
}

}  // namespace greta::kernels::rows
