#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/described/described_extents.hpp"
#include "kernels/model/parallel.hpp"
#include "kernels/model/random.hpp"

namespace greta::kernels::described {
namespace {

Result<void> check_file(const Extents& extents, const DescribedOperand& operand, double elements) {
  const auto size = elements_of(extents.shared->files.at(operand.fill.file)).size();
  const double expected = bytes_of(operand.dtype, elements);
  if (static_cast<double>(size) == expected) return {};
  return invalid_argument(
      fmt::format("the file {} has {} bytes of elements, and the operand {} {:.0f}",
                  operand.fill.file, size, operand.name, expected));
}

}  // namespace

std::string_view elements_of(std::string_view file) {
  constexpr std::string_view magic = "\x93NUMPY";
  constexpr std::size_t short_header = 10;  // magic, version, and two bytes of the header's length
  if (!file.starts_with(magic) || file.size() < short_header + 2) return file;
  const auto byte = [&](std::size_t i) {
    return static_cast<std::size_t>(static_cast<unsigned char>(file[i]));
  };
  const bool wide = byte(6) > 1;
  const std::size_t length =
      byte(8) + (byte(9) << 8) + (wide ? (byte(10) << 16) + (byte(11) << 24) : 0);
  return file.substr(std::min(file.size(), short_header + (wide ? 2 : 0) + length));
}

std::vector<std::int64_t> shape_of(const Extents& extents, const DescribedOperand& operand) {
  std::vector<std::int64_t> shape;
  for (const Formula& formula : operand.shape) {
    shape.push_back(integer(extents, formula, nullptr, 1, std::int64_t{1} << 40).value_or(0));
  }
  return shape;
}

std::vector<TensorSpec> tensors(const Extents& extents) {
  std::vector<TensorSpec> specs;
  for (const DescribedOperand& operand : extents.shared->description.operands) {
    TensorSpec spec{operand.name, operand.role, operand.dtype, 1, 1};
    for (const std::int64_t extent : shape_of(extents, operand)) {
      spec.rows *= spec.cols;
      spec.cols = extent;
    }
    specs.push_back(std::move(spec));
  }
  return specs;
}

Result<void> check(const Extents& extents) {
  for (const DescribedOperand& operand : extents.shared->description.operands) {
    double elements = 1;
    for (const Formula& formula : operand.shape) {
      const auto value = evaluate(extents, formula, nullptr);
      const bool extent = value && value->is_integer() && value->integer() > 0;
      if (!extent) {
        return invalid_argument(
            fmt::format("the operand {} has the extent {}: {}", operand.name, formula.text(),
                        value ? fmt::format("{}, which must be an integer above 0", value->text())
                              : value.failure().message));
      }
      elements *= value->real();
    }
    if (elements > 0x1p40) {
      return invalid_argument(
          fmt::format("the operand {} has more than 2^40 elements", operand.name));
    }
    if (operand.fill.kind != OperandFill::Kind::file) continue;
    if (auto fits = check_file(extents, operand, elements); !fits) return fits;
  }
  return {};
}

void harden(const Shared& shared, std::vector<HostTensor>& inputs, std::uint64_t seed) {
  for (HostTensor& tensor : inputs) {
    const auto& operands = shared.description.operands;
    const auto operand = std::find_if(operands.begin(), operands.end(),
                                      [&](const auto& o) { return o.name == tensor.spec.name; });
    const OperandFill& fill = operand->fill;
    if (fill.kind != OperandFill::Kind::random) continue;
    // The upper end itself is a value of integers only.
    const double last = is_floating(tensor.spec.dtype) ? fill.from + (fill.to - fill.from) * 0.9375
                                                       : std::floor(fill.to);
    const double first = is_floating(tensor.spec.dtype) ? fill.from : std::ceil(fill.from);
    const double zero = fill.from <= 0 && fill.to > 0 ? 0 : first;
    for (std::size_t i = 0; i < tensor.spec.elements(); ++i) {
      const std::uint64_t draw = mix64(seed * 0x9e3779b97f4a7c15ULL + ~i) % 9;
      if (draw > 2) continue;
      store_element(tensor.spec.dtype, tensor.data.data(), i,
                    draw == 0   ? first
                    : draw == 1 ? last
                                : zero);
    }
  }
}

HostTensor input(const Shared& shared, const TensorSpec& spec, std::uint64_t seed) {
  const auto& operands = shared.description.operands;
  const auto operand = std::find_if(operands.begin(), operands.end(),
                                    [&](const auto& o) { return o.name == spec.name; });
  const OperandFill& fill = operand->fill;
  HostTensor tensor{spec, std::vector<std::byte>(bytes_of(spec.dtype, spec.elements()))};
  if (fill.kind == OperandFill::Kind::file) {
    const std::string_view elements = elements_of(shared.files.at(fill.file));
    std::memcpy(tensor.data.data(), elements.data(), tensor.data.size());
    return tensor;
  }
  const double wide = fill.to - fill.from;
  const auto value_at = [&](std::size_t i) {
    if (fill.kind == OperandFill::Kind::constant) return fill.from;
    if (fill.kind == OperandFill::Kind::ramp) {
      return static_cast<double>(fill.to > 0 ? i % static_cast<std::size_t>(fill.to) : i);
    }
    const double part =
        static_cast<double>(mix64(seed * 0x9e3779b97f4a7c15ULL + i) >> 11) * 0x1p-53;
    return is_floating(spec.dtype) ? fill.from + wide * part
                                   : std::floor(fill.from + (wide + 1) * part);
  };
  parallel_parts(spec.rows * spec.cols, [&](std::int64_t first, std::int64_t last) {
    for (auto i = static_cast<std::size_t>(first); i < static_cast<std::size_t>(last); ++i) {
      store_element(spec.dtype, tensor.data.data(), i, value_at(i));
    }
  });
  return tensor;
}

}  // namespace greta::kernels::described
