#include <algorithm>

#include "kernels/planning/device_limits.hpp"
#include "kernels/planning/stride_attributes.hpp"
#include "kernels/skeletons/rows_space.hpp"
#include "runtime/device/hardware/architectures.hpp"

namespace greta::kernels::rows {
namespace {

void add_subgroup(Config& config, const DeviceInfo& device) {
  if (device.language != Language::glsl) return;
  const auto size = static_cast<int>(device.subgroup_size);
  const bool whole = device.subgroup_size_control && config["THREADS"] % size == 0 &&
                     config["THREADS"] / size <= 32;
  config.values.emplace_back("SUBGROUP", whole ? size : 0);
}

/// Returns the registers of column weights. If a thread holds many elements, weights are loaded
/// only when they are needed (fixed_first).
std::int64_t weight_registers(int beside, std::int64_t held, const Config& c) {
  return select(c["STAY"] > 0 || held <= 16, held * beside, 8);
}

/// Returns whether rows need nothing but themselves: no mask, residual or weights.
bool alone(const Shape& s) {
  return s.tensors.size() <= 2;  // X and Y
}

/// Returns the most elements of a row that a thread holds by default. NVRTC's numbers are those of
/// results/2026-11-27-nvidia-h200-unseen-shapes.
std::int64_t most_held_by_default(const Shape& s, const DeviceInfo& device, std::int64_t threads) {
  const bool measured = compiled_by_nvrtc(device);
  const std::int64_t most = alone(s) && measured ? 56 : 48;
  return threads <= (measured ? 512 : 256) ? most : 32;
}

/// Returns whether compilers are expected to avoid spills. They need more registers than the space
/// requires.
bool roomy(const Shape& s, const DeviceInfo& device, const Config& c) {
  const std::int64_t held = vectors_of_thread(s.cols, c) * c["VEC"];
  const std::int64_t weights = s.operation.registers_beside == 0
                                   ? 0
                                   : weight_registers(s.operation.registers_beside, held, c);
  // AMD compilers keep values of additive masks and weights in addition to the held elements, and
  // load all weights of a vector at once.
  const std::int64_t beside =
      device.vendor == "AMD" ? held / 2 + 8 * std::max<std::int64_t>(0, weights_of(s) - 1) : 0;
  // Workgroups that stay load their next rows ahead.
  const std::int64_t ahead = c["STAY"] > 0 ? ceil_div(held * bits_of(s.in), 32) : 0;
  const std::int64_t needed = held + ahead + beside + weights + s.operation.statistic_words + 23;
  // Many scalar loads need additional registers.
  if (c["VEC"] == 1 && held > 16 && (inputs_of(s) > 1 || device.vendor == "AMD")) return false;
  return held <= most_held_by_default(s, device, c["THREADS"]) &&
         needed * c["THREADS"] <= register_file(device);
}

/// Returns the number of threads of a row if there are more rows than units: each loads a few
/// vectors. Up to 5 vectors a thread, a row stays in one wave, which needs no barrier, and up to 6
/// in a quarter of the largest workgroup, of which several share a unit. With NVRTC, for which this
/// is measured, it stays in a half of it likewise, and in both up to 56 elements if there is
/// nothing else to hold. 32 threads and less share a row only if all rows keep the device busy.
/// Where all rows run at once, more threads share a row with weights.
std::int64_t lanes_of_many(const Shape& s, const DeviceInfo& device, int vec, int loads,
                           std::int64_t busy) {
  constexpr std::int64_t wave = 32, quarter = 256, half = 512, busy_threads = 512;
  const bool measured = compiled_by_nvrtc(device);
  const std::int64_t vectors = s.cols / vec,
                     most = alone(s) && measured ? std::min(13, 56 / vec) : 6;
  std::int64_t lanes = std::min<std::int64_t>(next_power(ceil_div(vectors, loads)), 1024);
  if (vectors <= most * half && measured) lanes = std::min(lanes, half);
  if (vectors <= most * quarter) lanes = std::min(lanes, quarter);
  if (vectors <= 5 * wave) lanes = std::min(lanes, wave);
  const std::int64_t least = next_power(ceil_div(2 * busy * busy_threads, 3 * s.rows));  // rounded
  lanes = std::max(lanes, std::min({wave, next_power(vectors), least}));
  // Where all rows run at once, a launch takes little more than its loads that wait for each other.
  // A thread that holds more elements loads weights later (fixed_first of rows.hip).
  constexpr std::int64_t held_with_weights = 16;
  while (measured && weights_of(s) > 0 && lanes * held_with_weights < s.cols &&
         lanes * s.rows <= busy * busy_threads) {
    lanes *= 2;
  }
  return lanes;
}

/// Returns the default for very many short rows, of which half a wave holds each
/// (results/2026-11-30-nvidia-h200-odd-rows).
std::vector<Config> short_defaults(const Shape& s, const DeviceInfo& device, int vec) {
  const std::int64_t vectors = s.cols / vec;
  const bool very_many = s.rows >= 64 * busy_workgroups(device);
  if (!compiled_by_nvrtc(device) || !very_many || vectors <= 64 || vectors > 96) return {};
  return {{"held", {{"THREADS", 64}, {"ROWS", 4}, {"VEC", vec}, {"STAY", 0}}}};
}

/// Returns the default for many short rows of single elements, which begin at no multiples of more:
/// a thread loads up to 16 of them, of few columns up to seven, and workgroups stay
/// (results/2026-12-01-nvidia-h200-long-single-queries).
std::vector<Config> short_single_defaults(const Shape& s, const DeviceInfo& device) {
  constexpr std::int64_t threads = 256, most_lanes = 32, loads = 7;
  const std::int64_t lanes = std::min(next_power(ceil_div(s.cols, loads)), most_lanes);
  const std::int64_t together = threads / lanes;
  if (s.cols < 64 || s.rows < 4 * together * busy_workgroups(device)) return {};
  return {{"held",
           {{"THREADS", static_cast<int>(threads)},
            {"ROWS", static_cast<int>(together)},
            {"VEC", 1},
            {"STAY", 8}}}};
}

/// Returns the default for many rows of single elements. A thread loads more of them than vectors,
/// and workgroups stay (results/2026-11-30-nvidia-h200-odd-rows). Of long rows, one workgroup of a
/// multiprocessor stays (results/2026-12-01-nvidia-h200-latent-pingpong).
std::vector<Config> single_defaults(const Shape& s, const DeviceInfo& device) {
  constexpr std::int64_t shortest = 512, least_threads = 128, short_lanes = 256, long_lanes = 512;
  const std::int64_t busy = busy_workgroups(device);
  const bool wide = inputs_of(s) > 1 || bits_of(s.in) == 32;
  const std::int64_t held = wide ? 16 : 24, longest = long_lanes * (wide ? 16 : 30);
  const std::int64_t lanes = std::min(next_power(ceil_div(s.cols, held)), long_lanes);
  const bool is_long = lanes > short_lanes, many = s.rows >= (is_long ? 2 : 4) * busy;
  if (!compiled_by_nvrtc(device) || !many || s.cols > longest) return {};
  if (s.cols < shortest) return short_single_defaults(s, device);
  const std::int64_t threads = std::max(lanes, least_threads);
  Config config{"held",
                {{"THREADS", static_cast<int>(threads)},
                 {"ROWS", static_cast<int>(threads / lanes)},
                 {"VEC", 1},
                 {"STAY", is_long ? 1 : 8}}};
  if (!roomy(s, device, config)) return {};
  return {std::move(config)};
}

/// Returns whether compilers are expected to avoid spills where STAY workgroups of `staged` share a
/// multiprocessor's registers: each vector has addresses and copies of its own.
bool stays_roomy(const Shape& s, const DeviceInfo& device, const Config& c) {
  constexpr std::int64_t of_vector = 3, others = 8;
  const std::int64_t vectors = vectors_of_thread(s.cols, c), held = vectors * c["VEC"];
  const std::int64_t kept =
      c["KEEP"] == in_registers ? ceil_div(held * bits_of(s.in) * weights_of(s), 32) : 0;
  const std::int64_t needed = held + kept + of_vector * vectors * inputs_of(s) + others;
  return needed * c["THREADS"] * c["STAY"] <= register_file(device);
}

}  // namespace

/// A load of 16 bytes, or up to four of fewer, per thread if there are fewer rows than units, else
/// three or four (results/2026-11-27-nvidia-h200-row-defaults). Workgroups have at least 128
/// threads, or one wave if rows are few and short, with loads of less than 16 bytes.
std::vector<Config> held_defaults(const Shape& s, const DeviceInfo& device) {
  const std::int64_t rows = s.rows, cols = s.cols, busy = busy_workgroups(device);
  const int widest = widest_of(s.strides, s.in, s.cols);
  const std::int64_t vectors = cols / widest;
  const bool cpu = vectorising_cpu(device), few = cpu || rows <= busy;
  const std::int64_t least = cpu ? 64 : std::max<std::int64_t>(32, device.subgroup_size);
  std::vector<Config> configs =
      widest == 1 ? single_defaults(s, device) : short_defaults(s, device, widest);
  const auto add = [&](std::int64_t lanes) {
    const std::int64_t threads = std::max<std::int64_t>(lanes, cpu ? 32 : 128);
    const std::int64_t together = std::min(threads / lanes, next_power(rows));
    const std::int64_t all = std::max(lanes * together, least);
    int vec = widest;
    while (vec > 1 && all / together * vec >= 2 * next_power(cols)) vec /= 2;
    Config config{"held",
                  {{"THREADS", static_cast<int>(all)},
                   {"ROWS", static_cast<int>(together)},
                   {"VEC", vec},
                   {"STAY", 0}}};
    add_subgroup(config, device);
    if (cpu || roomy(s, device, config)) configs.push_back(std::move(config));
  };
  const int of_thread = 128 / (widest * bits_of(s.in));  // loads of 16 bytes
  const int least_loads = compiled_by_nvrtc(device) ? std::min(of_thread, 4) : 1;
  for (const int loads : {few ? least_loads : rows < 4 * busy ? 3 : 4, 4, 8, 64}) {
    add(few ? std::min<std::int64_t>(next_power(ceil_div(vectors, loads)), cpu ? 8 : 1024)
            : lanes_of_many(s, device, widest, loads, busy));
  }
  if (configs.empty()) add(std::min<std::int64_t>(next_power(vectors), 1024));
  return configs;
}

/// For long rows: while threads wait for each other, the next rows arrive. Rows of an operation
/// that needs their mean before the rest, as layernorm does, are long above 1,024 vectors
/// (results/2026-11-27-nvidia-h200-unseen-shapes), in f32 above 1,536; others where a
/// multiprocessor's registers hold few of them (results/2026-11-30-nvidia-h200-odd-rows).
std::vector<Config> staged_defaults(const Shape& s, const DeviceInfo& device) {
  constexpr int words_of_moments = 3;
  const int widest = widest_of(s.strides, s.in, s.cols);
  const std::int64_t vectors = s.cols / widest;
  const bool measured = has_clusters(device.architecture) && compiled_by_nvrtc(device);
  if (!measured || !s.operation.splits) return {};
  const auto config = [&s, widest](int threads, int stay, int ahead, int cluster) {
    return Config{"staged",
                  {{"THREADS", threads},
                   {"VEC", widest},
                   {"STAY", stay},
                   {"AHEAD", ahead},
                   {"CLUSTER", cluster},
                   {"KEEP", weights_of(s) > 0 ? in_registers : 0}}};
  };
  if (s.operation.statistic_words >= words_of_moments) {
    if (vectors <= (bits_of(s.in) == 32 ? 1536 : 1024)) return {};
    if (vectors <= 1536) return {config(128, 2, 1, 2)};
    if (vectors <= 3072) return {config(256, 2, 2, 2), config(256, 1, 1, 2)};
    return {config(256, 1, 1, 2)};
  }
  constexpr std::int64_t shortest = 20480, of_four = 64 * 1024;
  if (s.cols < shortest || 4 * s.rows < 3 * busy_workgroups(device)) return {};
  const int cluster = inputs_of(s) * s.cols * bits_of(s.in) / 8 <= of_four ? 4 : 8;
  std::vector<Config> configs{config(128, 4, 2, cluster), config(128, 4, 1, cluster),
                              config(128, 4, 2, 8), config(256, 2, 1, 8)};
  std::erase_if(configs, [&](const Config& c) { return !stays_roomy(s, device, c); });
  return configs;
}

std::vector<Config> streamed_defaults(const Shape& s, const DeviceInfo& device) {
  const int vec = widest_of(s.strides, s.in, s.cols);
  std::vector<Config> configs;
  for (const int threads : {vectorising_cpu(device) ? 32 : 512, 256, 1024}) {
    Config config{"streamed", {{"THREADS", threads}, {"ROWS", 1}, {"VEC", vec}, {"ITEMS", 4}}};
    add_subgroup(config, device);
    configs.push_back(std::move(config));
  }
  return configs;
}

/// For rows that are too few to occupy the device and long enough to split.
std::vector<Config> split_defaults(const Shape& s, const DeviceInfo& device) {
  const std::int64_t rows = s.rows, cols = s.cols;
  const std::int64_t busy = busy_workgroups(device);
  if (vectorising_cpu(device) || 2 * rows > busy || cols < 8192) return {};
  const int vec = widest_of(s.strides, s.in, s.cols);
  int split = 2;
  while (split < 128 && rows * split < busy && cols / split > 4096) split *= 2;
  Config config{"split", {{"THREADS", 256}, {"VEC", vec}, {"ITEMS", 4}, {"SPLIT", split}}};
  add_subgroup(config, device);
  return {config};
}

/// For rows shorter than a wave.
std::vector<Config> naive_defaults(const Shape& s, const DeviceInfo&) {
  if (s.cols >= 64) return {};
  return {{"naive", {{"THREADS", 64}}}};
}

}  // namespace greta::kernels::rows
