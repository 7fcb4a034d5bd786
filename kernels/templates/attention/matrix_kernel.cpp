#include "kernels/templates/attention/matrix_kernel.hpp"

#include "kernels/planning/device_limits.hpp"
#include "kernels/templates/attention/packing.hpp"

namespace greta::kernels::attention {
namespace {

/// Returns the size of so many elements, padded, in shared memory; see key_tiles.hip.
std::int64_t line_bytes(std::int64_t elements) {
  const std::int64_t chunks = elements / 8;
  return (chunks + ((chunks & (chunks - 1)) == 0 ? 0 : 1)) * 16;
}

/// Whether copies can read the keys of any step from a window: one that begins with the first of
/// them and has less than 2 GiB.
bool fits_window(const Shape& shape) {
  constexpr std::int64_t most_keys = 128;
  const std::int64_t line = 2 * shape.longest() * (shape.packed ? shape.kv_heads : 1);
  return shape.page == 0 && most_keys * line < std::int64_t{1} << 31;
}

}  // namespace

MatrixKernel::MatrixKernel(const Shape& shape, const DeviceInfo& device)
    : shape_(shape),
      cores_(matrix_cores(device.architecture)),
      thread_registers_(thread_registers(device)),
      workgroup_registers_(workgroup_registers(device)),
      wave_(static_cast<int>(device.subgroup_size)) {
  const auto has = [&](std::uint32_t span) {
    return std::any_of(device.matrix_operations.begin(), device.matrix_operations.end(),
                       [&](const MatrixOperation& operation) {
                         return operation.input == shape.in && operation.m == span;
                       });
  };
  offered_ = bits_of(shape.in) == 16 && has(16);
  if (cores_ == MatrixCores::mfma && has(32)) spans_.push_back(32);
  turns_ = spans_.size() > 1 && has_turning_reads(device.architecture);
  // What lies behind keys in a buffer must be zero, where copies don't write it.
  const bool mixes = shape.v_dim != shape.dim && shape.dim % granule() != 0;
  copies_ = lane_copies() ? !mixes : turns_ && fits_window(shape);
}

std::int64_t MatrixKernel::tiles_bytes(const Config& c) const {
  const std::int64_t value_line = lane_copies() ? line_bytes(padded_values()) : padded_values() * 2;
  const std::int64_t keys = c["BK"] * line_bytes(padded()), values = c["BK"] * value_line;
  if (c["ASYNC"] == 0) return keys + values;
  // Where lanes write one behind the other, all threads do.
  const std::int64_t once = lane_copies() ? 1 : threads(c) * 16;
  return c["BUFFERS"] * round_up(std::max(keys, values), once);
}

std::int64_t MatrixKernel::shared_bytes(const Config& c) const {
  const std::int64_t tiles = tiles_bytes(c), own = rows(c) * line_bytes(padded());
  const std::int64_t walk = c["QREG"] == 0   ? own + tiles
                            : c["QREG"] == 1 ? std::max(own, tiles)
                                             : tiles;
  const std::int64_t waves = c["KWAVES"] > 1 ? wave_sums_bytes(c) : 0;
  return std::max(walk, join_bytes(shape_, c["SPLIT"], c["FOLD"], rows(c), waves));
}

std::int64_t MatrixKernel::least_registers(const Config& c) const {
  const std::int64_t sums = c["WQ"] * (padded_values() + c["BK"] / c["KWAVES"]) / wave_;
  const std::int64_t queries = c["QREG"] != 0 ? c["WQ"] / 16 * (padded() / granule()) : 1;
  return sums + fragment() * (queries + 1) + (c["ASYNC"] != 0 ? 0 : 4 * loads(c));
}

std::int64_t MatrixKernel::loads(const Config& c) const {
  return ceil_div(c["BK"] * shape_.dim / 8, threads(c)) +
         ceil_div(c["BK"] * shape_.v_dim / 8, threads(c));
}

std::int64_t MatrixKernel::addresses(const Config& c) const {
  // Each load finds its page or its token, by a division if a line's length is no power of two.
  const bool even = (shape_.dim & (shape_.dim - 1)) == 0 && shape_.v_dim == shape_.dim;
  // Clang keeps what it finds for each load of a wave of 32 lanes.
  if (cores_ == MatrixCores::wmma11 || cores_ == MatrixCores::wmma12) {
    const bool apart = shape_.page > 0 || shape_.finds_tokens();
    return apart ? loads(c) * (even ? 6 : 16) : 0;
  }
  const bool apart = shape_.page > 0 || (shape_.packed && (lane_copies() || c["ASYNC"] == 0));
  return !apart ? 0 : even ? 6 : 40;
}

std::int64_t MatrixKernel::registers(const Config& c) const {
  const std::int64_t more = c["QREG"] != 0 ? 1 : blocks(c);
  const std::int64_t rows = blocks(c) * (cores_ == MatrixCores::mma ? 2 : 1);
  const bool ahead = c["ASYNC"] != 0;
  return least_registers(c) + fragment() * more + 2 * rows + (lane_copies() || ahead ? 32 : 48) +
         addresses(c);
}

std::int64_t MatrixKernel::instructions(const Config& c) const {
  const std::int64_t keys = c["BK"] / c["KWAVES"];
  const std::int64_t products = c["WQ"] / 16 * (keys / 16) * ((padded() + padded_values()) / 16);
  return products * (cores_ == MatrixCores::mma ? 2 : 1);
}

}  // namespace greta::kernels::attention
