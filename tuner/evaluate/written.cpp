#include "tuner/evaluate/written.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "tuner/evaluate/workload.hpp"

namespace greta::tuner {
namespace {

std::size_t offset_of(const TensorSpec& spec, std::int64_t row, std::int64_t col) {
  return bytes_of(spec.dtype, static_cast<std::size_t>(spec.row_start(row) + col));
}

/// Returns byte `i` of memory that is full of a pattern.
std::byte byte_of(std::uint32_t pattern, std::size_t i) {
  return static_cast<std::byte>(pattern >> 8 * (i % 4) & 0xFF);
}

/// Returns whether bytes `first` to `end` - 1 of an output are those of a pattern.
bool has_pattern(const HostTensor& output, std::size_t first, std::size_t end,
                 std::uint32_t pattern) {
  for (std::size_t i = first; i < end; ++i) {
    if (output.data[i] != byte_of(pattern, i)) return false;
  }
  return true;
}

/// Calls use(col) for the words of a row all of whose bits are set, as those of nan_pattern are.
template <typename Word, typename Use>
void for_each_of_ones(const std::byte* row, std::int64_t cols, const Use& use) {
  for (std::int64_t col = 0; col < cols; ++col) {
    Word word;
    std::memcpy(&word, row + static_cast<std::size_t>(col) * sizeof word, sizeof word);
    if (word == static_cast<Word>(~Word{0})) use(col);
  }
}

/// Calls use(row) for the rows of an output that correct kernels write, or for the others.
template <typename Use>
void for_each_row(const Reference& reference, const TensorSpec& spec, bool written,
                  const Use& use) {
  if (spec.role != Role::output) return;
  for (std::int64_t row = 0; row < spec.rows; ++row) {
    if (reference.writes(spec.name, row) == written) use(row);
  }
}

std::string shown(const TensorSpec& spec, std::int64_t row, std::int64_t col) {
  return spec.rows == 1 ? fmt::format("{} of {}", col, spec.name)
                        : fmt::format("({}, {}) of {}", row, col, spec.name);
}

}  // namespace

std::optional<std::string> written_elsewhere(const Reference& reference,
                                             const std::vector<HostTensor>& outputs) {
  std::optional<std::string> found;
  for (const HostTensor& output : outputs) {
    const TensorSpec& spec = output.spec;
    for_each_row(reference, spec, false, [&](std::int64_t row) {
      const std::size_t first = offset_of(spec, row, 0), end = offset_of(spec, row, spec.cols);
      if (found || has_pattern(output, first, end, nan_pattern)) return;
      found = fmt::format("wrote row {} of {}, {}", row, spec.name, writes_row_of_nobody);
    });
  }
  return found;
}

void clear_rows_of_nobody(const Reference& reference, std::vector<HostTensor>& outputs) {
  for (HostTensor& output : outputs) {
    const TensorSpec& spec = output.spec;
    for_each_row(reference, spec, false, [&](std::int64_t row) {
      const std::size_t first = offset_of(spec, row, 0), end = offset_of(spec, row, spec.cols);
      if (has_pattern(output, first, end, finite_pattern))
        std::memset(output.data.data() + first, 0xFF, end - first);
    });
  }
}

std::vector<std::byte> filled_where_written(const Reference& reference, const TensorSpec& spec) {
  std::vector<std::byte> content(spec.bytes(), std::byte{0xFF});
  for_each_row(reference, spec, true, [&](std::int64_t row) {
    for (std::size_t i = offset_of(spec, row, 0); i < offset_of(spec, row, spec.cols); ++i)
      content[i] = byte_of(finite_pattern, i);
  });
  return content;
}

Unchanged unchanged_elements(const Reference& reference, const std::vector<HostTensor>& outputs) {
  Unchanged found;
  for (const HostTensor& output : outputs) {
    const TensorSpec& spec = output.spec;
    const std::size_t bytes = bytes_of(spec.dtype, std::size_t{1});
    std::vector<bool>& marks = found.marks.emplace_back(spec.elements());
    for_each_row(reference, spec, true, [&](std::int64_t row) {
      const std::byte* const first = output.data.data() + offset_of(spec, row, 0);
      const auto add = [&](std::int64_t col) {
        marks[static_cast<std::size_t>(row * spec.cols + col)] = true;
        found.any = true;
      };
      if (bytes == 1) for_each_of_ones<std::uint8_t>(first, spec.cols, add);
      if (bytes == 2) for_each_of_ones<std::uint16_t>(first, spec.cols, add);
      if (bytes == 4) for_each_of_ones<std::uint32_t>(first, spec.cols, add);
      if (bytes == 8) for_each_of_ones<std::uint64_t>(first, spec.cols, add);
    });
  }
  return found;
}

std::optional<std::string> not_written(const Unchanged& elements,
                                       const std::vector<HostTensor>& outputs) {
  std::size_t count = 0;
  std::string first;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const HostTensor& tensor = outputs[i];
    const std::size_t bytes = bytes_of(tensor.spec.dtype, std::size_t{1});
    for (std::size_t e = 0; e < elements.marks.at(i).size(); ++e) {
      if (!elements.marks[i][e]) continue;
      const auto row = static_cast<std::int64_t>(e) / tensor.spec.cols;
      const auto col = static_cast<std::int64_t>(e) % tensor.spec.cols;
      const std::size_t at = offset_of(tensor.spec, row, col);
      if (!has_pattern(tensor, at, at + bytes, finite_pattern)) continue;
      if (count++ == 0) first = shown(tensor.spec, row, col);
    }
  }
  if (count == 0) return std::nullopt;
  const std::string others = count == 1   ? ""
                             : count == 2 ? ", nor was another one"
                                          : fmt::format(", nor were {} others", count - 1);
  return fmt::format("element {} was not written{}", first, others);
}

}  // namespace greta::tuner
