#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "kernels/model/block_formats.hpp"
#include "kernels/model/random.hpp"
#include "runtime/device/dtype.hpp"
#include "tests/layers.hpp"

/// Random blocks of GGUF's formats for tests.
namespace greta::test {

/// A row or more of random blocks, and the elements that they stand for. Quants and factors are
/// drawn first, and packed by the position of each of their bits: the opposite of what decoders do.
struct RandomBlocks {
  std::string bytes;
  std::vector<double> values;

  RandomBlocks(BlockFormat format, std::size_t count, double size, std::uint64_t seed)
      : random_(seed) {
    for (std::size_t i = 0; i < count; ++i) {
      block_.assign(block_traits(format).bytes, '\0');
      pack(format, size);
      bytes += block_;
    }
  }

 private:
  void pack(BlockFormat format, double size) {
    using enum BlockFormat;
    switch (format) {
      case q8_0:
        return pack_q8_0(size / 127);
      case q4_0:
        return pack_q4_0(size / 8);
      case q4_k:
      case q5_k:
        return pack_q4_k(format, size / (63 * (format == q5_k ? 31 : 15)));
      case q6_k:
        return pack_q6_k(size / (127 * 32));
      case q5_0:
        return pack_q5(false, size / 16);
      case q5_1:
        return pack_q5(true, size / 16);
      case q4_1:
        return pack_q4_1(size / 8);
      case iq4_nl:
        return pack_iq4_nl(size / 127);
      case iq4_xs:
        return pack_iq4_xs(size / (32 * 127));
      case q3_k:
        return pack_q3_k(size / (32 * 4));
      case q2_k:
        return pack_q2_k(size / (15 * 3));
      case mxfp4:
        return pack_mxfp4(size / 6);
      case tq1_0:
        return pack_tq1_0(size);
      case tq2_0:
        return pack_tq2_0(size);
    }
  }
  int draw(int least, int most) {
    return least +
           static_cast<int>(uniform_below(random_, static_cast<std::uint64_t>(most - least + 1)));
  }
  /// Writes a random f16 of about this size at a byte, and returns it.
  double scale_at(std::size_t byte, double size) {
    auto* const at = reinterpret_cast<std::byte*>(block_.data() + byte);
    store_element(DType::f16, at, 0, size * (0.5 + draw(0, 1000) * 0.0005));
    return load_element(DType::f16, at, 0);
  }
  /// Writes the low `width` bits of a value from bit `bit` of byte `byte` on.
  void put(std::size_t byte, int bit, int width, int value) {
    const int mask = (1 << width) - 1;
    block_[byte] = static_cast<char>(block_[byte] | (value & mask) << bit);
  }

  void pack_q8_0(double size) {
    const double scale = scale_at(0, size);
    for (std::size_t i = 0; i < 32; ++i) {
      const int quant = draw(-128, 127);
      put(2 + i, 0, 8, quant);
      values.push_back(quant * scale);
    }
  }
  void pack_q4_0(double size) {
    const double scale = scale_at(0, size);
    for (std::size_t i = 0; i < 32; ++i) {
      const int quant = draw(0, 15);
      put(2 + i % 16, i < 16 ? 0 : 4, 4, quant);
      values.push_back((quant - 8) * scale);
    }
  }
  /// Writes 32 integers of 4 bits to 16 bytes, and returns them.
  std::array<int, 32> put_halves(std::size_t byte) {
    std::array<int, 32> quants{};
    for (std::size_t i = 0; i < 32; ++i) {
      quants[i] = draw(0, 15);
      put(byte + i % 16, i < 16 ? 0 : 4, 4, quants[i]);
    }
    return quants;
  }
  void pack_q4_1(double size) {
    const double scale = scale_at(0, size), offset = scale_at(2, -8 * size);
    for (const int quant : put_halves(4)) values.push_back(quant * scale + offset);
  }
  void pack_q5(bool has_offset, double size) {
    const double scale = scale_at(0, size), offset = has_offset ? scale_at(2, -16 * size) : 0;
    const std::size_t at = has_offset ? 4 : 2;
    const std::array<int, 32> low = put_halves(at + 4);
    for (std::size_t i = 0; i < 32; ++i) {
      const int high = draw(0, 1);
      put(at + i / 8, static_cast<int>(i % 8), 1, high);
      const int quant = 16 * high + low[i];
      values.push_back(has_offset ? quant * scale + offset : (quant - 16) * scale);
    }
  }
  void pack_iq4_nl(double size) {
    const double scale = scale_at(0, size);
    for (const int quant : put_halves(2)) values.push_back(scale * iq4_integer(quant));
  }
  void pack_iq4_xs(double size) {
    const double scale = scale_at(0, size);
    for (std::size_t g = 0; g < 8; ++g) {
      const int factor = draw(0, 63);
      put(4 + g / 2, g % 2 == 0 ? 0 : 4, 4, factor);
      put(2 + g / 4, static_cast<int>(g % 4) * 2, 2, factor >> 4);
      for (const int quant : put_halves(8 + 16 * g)) {
        values.push_back(scale * (factor - 32) * iq4_integer(quant));
      }
    }
  }
  /// The difference of neighbours grows with the distance from zero.
  static int iq4_integer(int quant) {
    int integer = -127;
    for (const int step : {23, 21, 18, 16, 14, 13, 12, 11, 12, 12, 13, 15, 16, 20, 24}) {
      if (quant-- == 0) break;
      integer += step;
    }
    return integer;
  }
  /// Writes 2 bits of element i of 256.
  void put_pair(std::size_t byte, std::size_t i, int quant) {
    put(byte + i / 128 * 32 + i % 32, static_cast<int>(i % 128 / 32) * 2, 2, quant);
  }
  void pack_q3_k(double size) {
    const double scale = scale_at(108, size);
    std::array<int, 16> factors{};
    for (std::size_t g = 0; g < 16; ++g) {
      const int factor = factors[g] = draw(0, 63);
      put(96 + g % 8, g < 8 ? 0 : 4, 4, factor);
      put(104 + g % 4, static_cast<int>(g / 4) * 2, 2, factor >> 4);
    }
    for (std::size_t i = 0; i < 256; ++i) {
      const int quant = draw(0, 7);
      put_pair(32, i, quant);
      put(i % 32, static_cast<int>(i / 32), 1, quant >> 2);
      values.push_back(scale * (factors[i / 16] - 32) * (quant - 4));
    }
  }
  void pack_q2_k(double size) {
    const double scale = scale_at(80, size), least = scale_at(82, size * 1.5);
    std::array<int, 16> factors{}, minima{};
    for (std::size_t g = 0; g < 16; ++g) {
      put(g, 0, 4, factors[g] = draw(0, 15));
      put(g, 4, 4, minima[g] = draw(0, 15));
    }
    for (std::size_t i = 0; i < 256; ++i) {
      const int quant = draw(0, 3);
      put_pair(16, i, quant);
      values.push_back(scale * factors[i / 16] * quant - least * minima[i / 16]);
    }
  }
  void pack_q4_k(BlockFormat format, double size) {
    const bool five = format == BlockFormat::q5_k;
    const double scale = scale_at(0, size), least = scale_at(2, size * (five ? 16 : 8));
    std::array<int, 8> factors{}, minima{};
    for (std::size_t g = 0; g < 8; ++g) {
      const int factor = factors[g] = draw(0, 63), minimum = minima[g] = draw(0, 63);
      put(g < 4 ? 4 + g : 8 + g, 0, g < 4 ? 6 : 4, factor);
      put(g < 4 ? 8 + g : 8 + g, g < 4 ? 0 : 4, g < 4 ? 6 : 4, minimum);
      if (g < 4) continue;
      put(g, 6, 2, factor >> 4);
      put(g + 4, 6, 2, minimum >> 4);
    }
    for (std::size_t i = 0; i < 256; ++i) {
      const std::size_t g = i / 32;
      const int quant = draw(0, five ? 31 : 15);
      put((five ? 48 : 16) + g / 2 * 32 + i % 32, g % 2 == 0 ? 0 : 4, 4, quant);
      if (five) put(16 + i % 32, static_cast<int>(g), 1, quant >> 4);
      values.push_back(scale * factors[g] * quant - least * minima[g]);
    }
  }
  void pack_mxfp4(double size) {
    const int exponent = static_cast<int>(std::lround(std::log2(size))) + draw(-1, 1);
    put(0, 0, 8, exponent + 127);
    for (const int quant : put_halves(1)) {
      const int power = quant >> 1 & 3, half = quant & 1;  // without a power, halves alone
      const double number = power == 0 ? 0.5 * half : std::ldexp(1 + 0.5 * half, power - 1);
      values.push_back(std::ldexp(quant < 8 ? number : -number, exponent));
    }
  }
  /// Five numbers to the base of 3 as the byte that is the least one of at least their share of
  /// 243.
  void pack_tq1_0(double size) {
    const double scale = scale_at(52, size);
    std::array<int, 256> digits{};
    for (int& digit : digits) {
      digit = draw(0, 2);
      values.push_back(scale * (digit - 1));
    }
    std::size_t byte = 0, first = 0;
    for (const auto& [width, count] : {std::pair<std::size_t, int>(32, 5), {16, 5}, {4, 4}}) {
      for (std::size_t at = 0; at < width; ++at, ++byte) {
        int number = 0;
        for (int digit = 0; digit < 5; ++digit) {
          const std::size_t i = first + static_cast<std::size_t>(digit) * width + at;
          number = 3 * number + (digit < count ? digits[i] : 0);
        }
        put(byte, 0, 8, (number * 256 + 242) / 243);
      }
      first += width * static_cast<std::size_t>(count);
    }
  }
  void pack_tq2_0(double size) {
    const double scale = scale_at(64, size);
    for (std::size_t i = 0; i < 256; ++i) {
      const int quant = draw(0, 2);
      put_pair(0, i, quant);
      values.push_back(scale * (quant - 1));
    }
  }
  void pack_q6_k(double size) {
    const double scale = scale_at(208, size);
    std::array<int, 16> factors{};
    for (std::size_t g = 0; g < 16; ++g) {
      factors[g] = draw(-128, 127);
      put(192 + g, 0, 8, factors[g]);
    }
    for (std::size_t i = 0; i < 256; ++i) {
      const std::size_t half = i / 128, at = i % 128;
      const int quant = draw(0, 63);
      put(half * 64 + at % 64, at < 64 ? 0 : 4, 4, quant);
      put(128 + half * 32 + at % 32, static_cast<int>(at / 32) * 2, 2, quant >> 4);
      values.push_back(scale * factors[i / 16] * (quant - 32));
    }
  }

  std::mt19937_64 random_;
  std::string block_;
};

}  // namespace greta::test
