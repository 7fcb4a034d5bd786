#include "kernels/model/weight_packing.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/model/parallel.hpp"

namespace greta::kernels {
namespace {

constexpr std::int64_t nibbles = 8;         // of a word, with 4 bits
constexpr std::int64_t words_of_tile = 16;  // that are repacked together

/// Little-endian words, which may be unaligned.
class Words {
 public:
  explicit Words(const std::byte* data) : data_(data) {}
  std::uint32_t operator[](std::int64_t index) const {
    std::uint32_t word = 0;
    std::memcpy(&word, data_ + 4 * index, sizeof(word));
    return word;
  }

 private:
  const std::byte* data_;
};

/// Returns the place in a word, from the lowest bits on, of the integer of a row.
std::int64_t place_of(const PackedMatrix& m, std::int64_t row) {
  const std::int64_t index = row % m.of_word();
  return m.along_n() ? index / 2 + index % 2 * 4 : index;
}

std::uint32_t integer(const PackedMatrix& m, std::uint32_t word, std::int64_t place) {
  return word >> (m.bits * place) & ((1U << m.bits) - 1);
}

/// Writes the integers of 16 words of rows: a line of AWQ has 8 rows a word.
void repack_awq(const PackedMatrix& m, const Words& words, std::int64_t first, std::byte* to) {
  const std::int64_t width = m.weight_cols(), last = std::min(first + words_of_tile, width);
  for (std::int64_t k = 0; k < m.k; k += 2) {
    for (std::int64_t word = first; word < last; ++word) {
      const std::uint32_t even = words[k * width + word], odd = words[(k + 1) * width + word];
      for (std::int64_t row = word * nibbles; row < (word + 1) * nibbles; ++row) {
        const std::int64_t place = place_of(m, row);
        to[(row * m.k + k) / 2] =
            static_cast<std::byte>(integer(m, even, place) | integer(m, odd, place) << 4);
      }
    }
  }
}

/// Writes the integers of 16 rows: a word of GPTQ has integers of a row in order, as rows of int4
/// and int8 have them.
void repack_gptq(const PackedMatrix& m, const Words& words, std::int64_t first, std::byte* to) {
  const std::int64_t last = std::min(first + words_of_tile, m.n);
  for (std::int64_t line = 0; line < m.weight_rows(); ++line) {
    for (std::int64_t row = first; row < last; ++row) {
      const std::uint32_t word = words[line * m.n + row];
      std::memcpy(to + row * m.row_bytes() + line * 4, &word, sizeof(word));
    }
  }
}

/// Puts the integers of each row into another order.
void reorder(const PackedMatrix& m, const std::int32_t* order, std::byte* integers) {
  const auto bytes = static_cast<std::size_t>(m.row_bytes());
  parallel_parts(m.n, [&](std::int64_t begin, std::int64_t end) {
    std::vector<std::byte> stored(bytes);
    const auto weight = [&](std::size_t i) {
      if (order[i] < 0 || order[i] >= m.k) return std::byte{0};
      const auto at = static_cast<std::size_t>(order[i]);
      return m.bits == 8 ? stored[at] : stored[at / 2] >> (at % 2 * 4) & std::byte{15};
    };
    for (std::int64_t row = begin; row < end; ++row) {
      std::byte* const to = integers + static_cast<std::size_t>(row) * bytes;
      std::memcpy(stored.data(), to, bytes);
      for (std::size_t i = 0; i < bytes; ++i) {
        to[i] = m.bits == 8 ? weight(i) : weight(2 * i) | weight(2 * i + 1) << 4;
      }
    }
  });
}

std::int64_t bits_of_weights(const std::string& weights) {
  return weights == "int8" ? 8 : weights == "f16" || weights == "bf16" ? 16 : 4;
}

}  // namespace

PackedMatrix packed_matrix_of(const Problem& problem) {
  return {weight_packing_from_string(problem.attribute("packing", "awq")).value(),
          bits_of_weights(problem.attribute("weights", "int4")), problem.dim("n"), problem.dim("k"),
          std::stoll(problem.attribute("group", "128"))};
}

void repack_integers(const PackedMatrix& m, const std::byte* qweight, const std::int32_t* order,
                     std::byte* to) {
  const Words words(qweight);
  const std::int64_t tiles = (m.weight_cols() + words_of_tile - 1) / words_of_tile;
  if (m.in_rows()) {
    std::memcpy(to, qweight, static_cast<std::size_t>(m.n * m.row_bytes()));
  } else {
    parallel_parts(tiles, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t tile = begin; tile < end; ++tile) {
        (m.along_n() ? repack_awq : repack_gptq)(m, words, tile * words_of_tile, to);
      }
    });
  }
  if (order != nullptr) reorder(m, order, to);
}

void make_signed(std::byte* integers, std::int64_t count) {
  std::for_each(integers, integers + count, [](std::byte& byte) { byte ^= std::byte{0x80}; });
}

int packed_zero_point(const PackedMatrix& m, const std::byte* qzeros, std::int64_t row,
                      std::int64_t group) {
  const std::uint32_t word = Words(qzeros)[group * m.zero_cols() + row / m.of_word()];
  const int stored = static_cast<int>(integer(m, word, place_of(m, row)));
  return stored + (m.packing == WeightPacking::gptq ? 1 : 0);
}

}  // namespace greta::kernels
