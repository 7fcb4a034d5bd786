// Runs the kernels of this folder on the inputs in data/, compares the results with FP64 reference
// values, and times them. launches.hpp says what is run.
//
//   run [--device N] [--runs N] [--warm]
//
// Exit codes: 0 every result is within its bound, 1 one is not or a call failed, 2 wrong usage.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "gpu.hpp"
#include "launches.hpp"

namespace {

struct Options {
  int device = default_device;
  int runs = 20;
  bool warm = false;
};

/// A checked element as the files data/*.expected hold it.
struct Expected {
  std::uint64_t index;  ///< of the element in memory
  double value;
  double bound;  ///< largest allowed deviation
};
static_assert(sizeof(Expected) == 24);

std::vector<std::byte> read_file(const std::string& folder, const std::string& name) {
  const std::string path = folder + "/" + name;
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  std::vector<std::byte> bytes(file ? static_cast<std::size_t>(file.tellg()) : 0);
  file.seekg(0);
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (!file) throw std::runtime_error(path + ": can't be read");
  return bytes;
}

/// Inputs come from files. Outputs start as bytes 0xFF, which are NaN, and a workspace with the
/// zeros that the kernels rely on.
std::vector<std::byte> initial_contents(const Buffer& buffer) {
  if (buffer.file[0] != '\0') return read_file(FOLDER, buffer.file);
  std::vector<std::byte> bytes(buffer.bytes, std::byte{0xFF});
  std::fill_n(bytes.begin(), buffer.zeroed_bytes, std::byte{0});
  return bytes;
}

/// Converts the bits of a 16-bit float with this number of mantissa bits.
double half_value(std::uint32_t bits, int mantissa_bits) {
  const int exponent_bits = 15 - mantissa_bits;
  const int exponent = static_cast<int>(bits >> mantissa_bits & ((1U << exponent_bits) - 1));
  const double mantissa = static_cast<double>(bits & ((1U << mantissa_bits) - 1));
  const int bias = (1 << (exponent_bits - 1)) - 1;
  double value = 0;
  if (exponent == (1 << exponent_bits) - 1) {
    value = mantissa == 0 ? INFINITY : NAN;
  } else if (exponent == 0) {
    value = std::ldexp(mantissa, 1 - bias - mantissa_bits);
  } else {
    value = std::ldexp(mantissa + (1U << mantissa_bits), exponent - bias - mantissa_bits);
  }
  return (bits & 0x8000U) != 0 ? -value : value;
}

template <typename T>
T stored(const std::vector<std::byte>& contents, std::uint64_t index) {
  T value{};
  std::memcpy(&value, contents.data() + index * sizeof(T), sizeof(T));
  return value;
}

double element(Type type, const std::vector<std::byte>& contents, std::uint64_t index) {
  switch (type) {
    case Type::f32:
      return stored<float>(contents, index);
    case Type::f16:
      return half_value(stored<std::uint16_t>(contents, index), 10);
    case Type::bf16:
      return half_value(stored<std::uint16_t>(contents, index), 7);
    case Type::i32:
      return stored<std::int32_t>(contents, index);
  }
  return NAN;
}

/// NaN within any bound stands for any number.
bool as_expected(double got, const Expected& want) {
  if (std::isnan(want.value)) return std::isnan(got) || std::isinf(want.bound);
  if (std::isinf(want.value)) return got == want.value;
  return std::abs(got - want.value) <= want.bound;
}

/// Compares a buffer with its reference values and prints one line. Returns whether it passed.
bool check_values(const Buffer& buffer, const std::vector<std::byte>& contents) {
  const auto bytes = read_file(FOLDER, buffer.expected);
  std::vector<Expected> all(bytes.size() / sizeof(Expected));
  std::memcpy(all.data(), bytes.data(), all.size() * sizeof(Expected));
  std::size_t wrong = 0;
  double worst = 0;
  for (const Expected& want : all) {
    const double got = element(buffer.type, contents, want.index);
    if (!as_expected(got, want)) {
      if (wrong++ < 5) {
        std::printf("%s[%llu] is %.9g, expected %.9g +- %.3g\n", buffer.name,
                    static_cast<unsigned long long>(want.index), got, want.value, want.bound);
      }
    } else if (want.bound > 0 && std::isfinite(want.value)) {
      worst = std::max(worst, std::abs(got - want.value) / want.bound);
    }
  }
  std::printf("%-10s %zu of %zu checked elements are within their bounds", buffer.name,
              all.size() - wrong, all.size());
  if (wrong == 0) std::printf("; the largest error is %.0f %% of its bound", 100 * worst);
  std::printf("\n");
  return wrong == 0 && !all.empty();
}

/// The kernels leave the leading part of the workspace as zeros, for the next run.
bool check_zeros(const Buffer& buffer, const std::vector<std::byte>& contents) {
  const bool zeros = std::all_of(
      contents.begin(), contents.begin() + static_cast<std::ptrdiff_t>(buffer.zeroed_bytes),
      [](std::byte byte) { return byte == std::byte{0}; });
  if (!zeros) std::printf("%-10s the leading zeros were not restored\n", buffer.name);
  return zeros;
}

/// The buffers on the GPU and the launches that use them.
struct Work {
  std::vector<std::uint64_t> addresses;
  std::vector<ReadyLaunch> launches;
};

std::vector<std::byte> pack(const std::vector<Argument>& arguments,
                            const std::vector<std::uint64_t>& addresses) {
  std::vector<std::byte> block;
  for (const Argument& argument : arguments) {
    const std::uint64_t value =
        argument.buffer >= 0 ? addresses[static_cast<std::size_t>(argument.buffer)] + argument.bits
                             : argument.bits;
    const std::size_t size = argument.bytes;
    block.resize((block.size() + size - 1) / size * size);
    const auto* const first = reinterpret_cast<const std::byte*>(&value);
    block.insert(block.end(), first, first + size);
  }
  return block;
}

Work prepare(Gpu& gpu) {
  Work work;
  for (const Buffer& buffer : buffers) {
    work.addresses.push_back(gpu.allocate(buffer.bytes));
    gpu.upload(work.addresses.back(), initial_contents(buffer));
  }
  for (const Launch& launch : launches) {
    ReadyLaunch ready{0, launch.grid, pack(launch.arguments, work.addresses)};
    ready.kernel = gpu.load(read_file(BINARIES, launch.binary), launch.entry, launch.block,
                            launch.shared_bytes, launch.subgroup_size, ready.arguments.size());
    work.launches.push_back(std::move(ready));
  }
  return work;
}

bool check(Gpu& gpu, const Work& work) {
  bool passed = true;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const Buffer& buffer = buffers[i];
    if (buffer.expected[0] == '\0' && buffer.zeroed_bytes == 0) continue;
    std::vector<std::byte> contents(buffer.bytes);
    gpu.download(contents, work.addresses[i]);
    if (buffer.expected[0] != '\0') passed = check_values(buffer, contents) && passed;
    if (buffer.zeroed_bytes != 0) passed = check_zeros(buffer, contents) && passed;
  }
  return passed;
}

void time_runs(Gpu& gpu, const Work& work, const Options& options) {
  std::vector<double> times;
  const std::size_t flushed = options.warm ? 0 : flush_bytes;
  for (int i = 0; i < options.runs; ++i) times.push_back(gpu.run(work.launches, flushed));
  std::sort(times.begin(), times.end());
  if (times.empty()) return;
  std::printf("%-10s %.4g us, the median of %zu runs with %s caches; %.4g to %.4g us\n", "time",
              times[times.size() / 2], times.size(), flushed == 0 ? "warm" : "cold", times.front(),
              times.back());
}

/// Returns the number after an option, or ends the program.
int number(const char* option, const char* text) {
  char* end = nullptr;
  const long value = text == nullptr ? -1 : std::strtol(text, &end, 10);
  if (text == nullptr || end == text || *end != '\0' || value < 0 || value > 1000000) {
    std::fprintf(stderr, "%s: needs a number from 0 to 1000000\n", option);
    std::exit(2);
  }
  return static_cast<int>(value);
}

Options read_options(int count, char** words) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    if (word == "--device") {
      options.device = number(words[i], words[i + 1]);
      ++i;
    } else if (word == "--runs") {
      options.runs = number(words[i], words[i + 1]);
      ++i;
    } else if (word == "--warm") {
      options.warm = true;
    } else {
      std::fprintf(stderr, "usage: %s [--device N] [--runs N] [--warm]\n", words[0]);
      std::exit(word == "--help" ? 0 : 2);
    }
  }
  return options;
}

}  // namespace

int main(int count, char** words) {
  const Options options = read_options(count, words);
  try {
    const auto gpu = open_gpu(options.device);
    std::printf("%s\n%s\non %s\n", problem, configuration, gpu->name().c_str());
    const Work work = prepare(*gpu);
    gpu->run(work.launches, 0);
    const bool passed = check(*gpu, work);
    if (passed) time_runs(*gpu, work, options);
    return passed ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
