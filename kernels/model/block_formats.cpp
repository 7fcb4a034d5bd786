#include "kernels/model/block_formats.hpp"

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

void decode_q4_k(const std::byte* block, double* values) {
  const double scale = f16_at(block), least = f16_at(block + 2);
  const std::byte* const packed = block + 4;
  const std::byte* const quants = block + 16;
  for (std::size_t group = 0; group < 8; ++group) {
    int factor = 0, minimum = 0;
    if (group < 4) {
      factor = unsigned_at(packed, group) & 63;
      minimum = unsigned_at(packed, group + 4) & 63;
    } else {
      const int low = unsigned_at(packed, group + 4);
      factor = (low & 15) | (unsigned_at(packed, group - 4) >> 6) << 4;
      minimum = (low >> 4) | (unsigned_at(packed, group) >> 6) << 4;
    }
    const double step = scale * factor, offset = least * minimum;
    const int shift = group % 2 == 0 ? 0 : 4;
    for (std::size_t i = 0; i < 32; ++i) {
      const int quant = (unsigned_at(quants, group / 2 * 32 + i) >> shift) & 15;
      values[group * 32 + i] = step * quant - offset;
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

}  // namespace

std::optional<BlockFormat> block_format_from_string(std::string_view name) {
  for (const BlockFormatTraits& format : block_format_table) {
    if (format.name == name) return format.format;
  }
  return std::nullopt;
}

void decode_blocks(BlockFormat format, const std::byte* data, std::size_t blocks, double* values) {
  const BlockFormatTraits& size = block_traits(format);
  for (std::size_t i = 0; i < blocks; ++i, data += size.bytes, values += size.elements) {
    switch (format) {
      case BlockFormat::q8_0:
        decode_q8_0(data, values);
        break;
      case BlockFormat::q4_0:
        decode_q4_0(data, values);
        break;
      case BlockFormat::q4_k:
        decode_q4_k(data, values);
        break;
      case BlockFormat::q6_k:
        decode_q6_k(data, values);
        break;
    }
  }
}

}  // namespace greta::kernels
