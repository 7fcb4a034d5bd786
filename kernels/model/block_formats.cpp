#include "kernels/model/block_formats.hpp"

#include <array>
#include <cstring>
#include <stdexcept>

#include "kernels/model/weight_formats.hpp"
#include "runtime/device/dtype.hpp"

namespace greta::kernels {
namespace {

double f16_at(const std::byte* data) {
  return static_cast<double>(load<DType::f16>(data, 0));
}
int unsigned_at(const std::byte* data, std::size_t index) {
  return std::to_integer<int>(data[index]);
}
double signed_at(const std::byte* data, std::size_t index) {
  return static_cast<double>(static_cast<signed char>(unsigned_at(data, index)));
}

void decode_q8_0(const std::byte* block, double* values) {
  const double scale = f16_at(block);
  for (std::size_t i = 0; i < 32; ++i) values[i] = scale * signed_at(block + 2, i);
}

void decode_q4_0(const std::byte* block, double* values) {
  const double scale = f16_at(block);
  for (std::size_t i = 0; i < 16; ++i) {
    const int byte = unsigned_at(block + 2, i);
    values[i] = scale * ((byte & 15) - 8);
    values[i + 16] = scale * ((byte >> 4) - 8);
  }
}

/// Returns an integer of 4 bits of 32 that 16 bytes have.
int half_at(const std::byte* data, std::size_t index) {
  return unsigned_at(data, index % 16) >> (index < 16 ? 0 : 4) & 15;
}
int bit_at(const std::byte* data, std::size_t index) {
  return unsigned_at(data, index / 8) >> index % 8 & 1;
}

/// The integers that q of iq4_nl and iq4_xs stands for.
constexpr std::array<int, 16> iq4_integers{-127, -104, -83, -65, -49, -35, -22, -10,
                                           1,    13,   25,  38,  53,  69,  89,  113};

void decode_q4_1(const std::byte* block, double* values) {
  const double scale = f16_at(block), offset = f16_at(block + 2);
  for (std::size_t i = 0; i < 32; ++i) values[i] = scale * half_at(block + 4, i) + offset;
}

/// Returns an integer of 5 bits.
int q5_at(const std::byte* high, std::size_t index) {
  return half_at(high + 4, index) | bit_at(high, index) << 4;
}

void decode_q5_0(const std::byte* block, double* values) {
  const double scale = f16_at(block);
  for (std::size_t i = 0; i < 32; ++i) values[i] = scale * (q5_at(block + 2, i) - 16);
}

void decode_iq4_nl(const std::byte* block, double* values) {
  const double scale = f16_at(block);
  for (std::size_t i = 0; i < 32; ++i) {
    values[i] = scale * iq4_integers[static_cast<std::size_t>(half_at(block + 2, i))];
  }
}

void decode_q5_1(const std::byte* block, double* values) {
  const double scale = f16_at(block), offset = f16_at(block + 2);
  for (std::size_t i = 0; i < 32; ++i) values[i] = scale * q5_at(block + 4, i) + offset;
}

/// The factor and the minimum of a group of q4_k and q5_k.
struct GroupScales {
  GroupScales(const std::byte* packed, std::size_t group) {
    if (group < 4) {
      factor = unsigned_at(packed, group) & 63;
      minimum = unsigned_at(packed, group + 4) & 63;
    } else {
      const int low = unsigned_at(packed, group + 4);
      factor = (low & 15) | (unsigned_at(packed, group - 4) >> 6) << 4;
      minimum = (low >> 4) | (unsigned_at(packed, group) >> 6) << 4;
    }
  }
  int factor = 0, minimum = 0;
};

/// Of q4_k and q5_k: `quants` has the low 4 bits of 256 integers, and `high` their fifth, or is
/// null.
void decode_groups(const std::byte* block, const std::byte* high, const std::byte* quants,
                   double* values) {
  const double scale = f16_at(block), least = f16_at(block + 2);
  for (std::size_t group = 0; group < 8; ++group) {
    const GroupScales own(block + 4, group);
    const double step = scale * own.factor, offset = least * own.minimum;
    const int shift = group % 2 == 0 ? 0 : 4;
    for (std::size_t i = 0; i < 32; ++i) {
      const int low = (unsigned_at(quants, group / 2 * 32 + i) >> shift) & 15;
      const int top = high == nullptr ? 0 : unsigned_at(high, i) >> group & 1;
      values[group * 32 + i] = step * (low | top << 4) - offset;
    }
  }
}

void decode_q4_k(const std::byte* block, double* values) {
  decode_groups(block, nullptr, block + 16, values);
}

void decode_q5_k(const std::byte* block, double* values) {
  decode_groups(block, block + 16, block + 48, values);
}

/// Returns an integer of 2 bits of 256 that 64 bytes have.
int pair_at(const std::byte* data, std::size_t index) {
  return unsigned_at(data, index / 128 * 32 + index % 32) >> (index % 128 / 32 * 2) & 3;
}

void decode_q2_k(const std::byte* block, double* values) {
  const double scale = f16_at(block + 80), least = f16_at(block + 82);
  for (std::size_t group = 0; group < 16; ++group) {
    const int packed = unsigned_at(block, group);
    const double step = scale * (packed & 15), offset = least * (packed >> 4);
    for (std::size_t i = group * 16; i < group * 16 + 16; ++i) {
      values[i] = step * pair_at(block + 16, i) - offset;
    }
  }
}

/// The integers of a block of q3_k.
struct Q3k {
  explicit Q3k(const std::byte* block) : block(block) {}
  const std::byte* block;

  const std::byte* scale() const { return block + 108; }
  int factor(std::size_t group) const {
    const std::byte* const packed = block + 96;
    const int low = unsigned_at(packed, group % 8) >> (group < 8 ? 0 : 4) & 15;
    const int high = unsigned_at(packed, 8 + group % 4) >> (group / 4 * 2) & 3;
    return (low | high << 4) - 32;
  }
  int quant(std::size_t i) const {
    const int high = unsigned_at(block, i % 32) >> (i / 32) & 1;
    return (pair_at(block + 32, i) | high << 2) - 4;
  }
};

void decode_q3_k(const std::byte* block, double* values) {
  const Q3k own(block);
  const double scale = f16_at(own.scale());
  for (std::size_t i = 0; i < 256; ++i) values[i] = scale * own.factor(i / 16) * own.quant(i);
}

void decode_iq4_xs(const std::byte* block, double* values) {
  const double scale = f16_at(block);
  for (std::size_t group = 0; group < 8; ++group) {
    const int high = unsigned_at(block + 2, group / 4) >> (group % 4 * 2) & 3;
    const int low = unsigned_at(block + 4, group / 2) >> (group % 2 * 4) & 15;
    const double step = scale * ((low | high << 4) - 32);
    for (std::size_t i = 0; i < 32; ++i) {
      const auto quant = static_cast<std::size_t>(half_at(block + 8 + 16 * group, i));
      values[group * 32 + i] = step * iq4_integers[quant];
    }
  }
}

void decode_q6_k(const std::byte* block, double* values) {
  const std::byte* const factors = block + 192;
  const double scale = f16_at(block + 208);
  for (std::size_t i = 0; i < 256; ++i) {
    const std::size_t half = i / 128, at = i % 128;
    const int low = unsigned_at(block, half * 64 + at % 64) >> (at < 64 ? 0 : 4);
    const int high = unsigned_at(block + 128, half * 32 + at % 32) >> (at / 32 * 2);
    const int quant = (low & 15) | (high & 3) << 4;
    values[i] = scale * signed_at(factors, i / 16) * (quant - 32);
  }
}

void decode_mxfp4(const std::byte* block, double* values) {
  const double scale = e8m0_value(unsigned_at(block, 0));
  for (std::size_t i = 0; i < 32; ++i) values[i] = scale * e2m1_value(half_at(block + 1, i));
}

/// Returns a digit of tq1_0.
int digit_at(const std::byte* data, std::size_t index) {
  constexpr std::array<unsigned, 5> powers{1, 3, 9, 27, 81};
  std::size_t byte = index % 32, digit = index / 32;
  if (index >= 240) {
    byte = 48 + index % 4, digit = (index - 240) / 4;
  } else if (index >= 160) {
    byte = 32 + index % 16, digit = (index - 160) / 16;
  }
  const auto bits = std::to_integer<unsigned>(data[byte]) * powers[digit] & 255;
  return static_cast<int>(bits * 3 >> 8);
}

/// The integers of blocks with one scale and nothing else.
struct Ternary {
  int (*quant)(const std::byte* data, std::size_t index);
  std::size_t scale;
};
constexpr Ternary tq1_0{digit_at, 52}, tq2_0{pair_at, 64};

void decode_ternary(const Ternary& format, const std::byte* block, double* values) {
  const double scale = f16_at(block + format.scale);
  for (std::size_t i = 0; i < 256; ++i) values[i] = scale * (format.quant(block, i) - 1);
}
void decode_tq1_0(const std::byte* block, double* values) {
  decode_ternary(tq1_0, block, values);
}
void decode_tq2_0(const std::byte* block, double* values) {
  decode_ternary(tq2_0, block, values);
}

/// Makes q4_k of it, whose factors and minima are all 1.
void rewrite_ternary(const Ternary& format, const std::byte* block, std::byte* to) {
  std::memset(to, 0, 144);
  for (std::size_t at : {0, 2}) std::memcpy(to + at, block + format.scale, 2);
  std::memset(to + 4, 1, 8);
  std::memset(to + 12, 0x11, 4);
  for (std::size_t i = 0; i < 256; ++i) {
    to[16 + i / 64 * 32 + i % 32] |=
        static_cast<std::byte>(format.quant(block, i) << (i % 64 < 32 ? 0 : 4));
  }
}
void rewrite_tq1_0(const std::byte* block, std::byte* to) {
  rewrite_ternary(tq1_0, block, to);
}
void rewrite_tq2_0(const std::byte* block, std::byte* to) {
  rewrite_ternary(tq2_0, block, to);
}

void rewrite_q5_0(const std::byte* block, std::byte* to) {
  std::memcpy(to, block, 2);
  for (std::size_t i = 0; i < 32; ++i) {
    to[2 + i] = static_cast<std::byte>(q5_at(block + 2, i) - 16);
  }
}

void rewrite_iq4_nl(const std::byte* block, std::byte* to) {
  std::memcpy(to, block, 2);
  for (std::size_t i = 0; i < 32; ++i) {
    const auto quant = static_cast<std::size_t>(half_at(block + 2, i));
    to[2 + i] = static_cast<std::byte>(iq4_integers[quant]);
  }
}

void rewrite_q3_k(const std::byte* block, std::byte* to) {
  const Q3k own(block);
  std::memset(to, 0, 192);
  std::memcpy(to + 208, own.scale(), 2);
  for (std::size_t group = 0; group < 16; ++group) {
    to[192 + group] = static_cast<std::byte>(own.factor(group));
  }
  for (std::size_t i = 0; i < 256; ++i) {
    const int quant = own.quant(i) + 32;
    const std::size_t half = i / 128, at = i % 128;
    to[half * 64 + at % 64] |= static_cast<std::byte>((quant & 15) << (at < 64 ? 0 : 4));
    to[128 + half * 32 + at % 32] |= static_cast<std::byte>((quant >> 4) << (at / 32 * 2));
  }
}

/// In the order of BlockFormat.
constexpr std::array decoders{decode_q8_0,  decode_q4_0,   decode_q4_k, decode_q6_k,
                              decode_q5_0,  decode_iq4_nl, decode_q3_k, decode_q4_1,
                              decode_q5_1,  decode_q5_k,   decode_q2_k, decode_iq4_xs,
                              decode_mxfp4, decode_tq1_0,  decode_tq2_0};
static_assert(decoders.size() == block_format_table.size());

}  // namespace

void decode_blocks(BlockFormat format, const std::byte* data, std::size_t blocks, double* values) {
  const BlockFormatTraits& size = block_traits(format);
  const auto decode = decoders.at(static_cast<std::size_t>(format));
  for (std::size_t i = 0; i < blocks; ++i, data += size.bytes, values += size.elements) {
    decode(data, values);
  }
}

void rewrite_blocks(BlockFormat from, const std::byte* data, std::size_t blocks, std::byte* to) {
  const auto same = same_weights(from);
  if (!same || *same == from) throw std::logic_error("blocks that have no other format");
  const auto rewrite = from == BlockFormat::q5_0     ? rewrite_q5_0
                       : from == BlockFormat::iq4_nl ? rewrite_iq4_nl
                       : from == BlockFormat::tq1_0  ? rewrite_tq1_0
                       : from == BlockFormat::tq2_0  ? rewrite_tq2_0
                                                     : rewrite_q3_k;
  for (std::size_t i = 0; i < blocks; ++i) {
    rewrite(data + i * block_traits(from).bytes, to + i * block_traits(*same).bytes);
  }
}

void split_mxfp4(const std::byte* data, std::size_t blocks, std::byte* codes, std::byte* scales) {
  for (std::size_t i = 0; i < blocks; ++i, data += 17, codes += 16) {
    scales[i] = data[0];
    for (std::size_t at = 0; at < 16; ++at) {
      codes[at] =
          static_cast<std::byte>(half_at(data + 1, 2 * at) | half_at(data + 1, 2 * at + 1) << 4);
    }
  }
}

}  // namespace greta::kernels
