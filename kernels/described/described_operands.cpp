#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/described/array_file.hpp"
#include "kernels/described/described_extents.hpp"
#include "kernels/model/parallel.hpp"
#include "kernels/model/random.hpp"

namespace greta::kernels::described {
namespace {

TensorSpec spec_of(const DescribedOperand& operand, const std::vector<std::int64_t>& shape) {
  TensorSpec spec{operand.name, operand.role, operand.dtype, 1, 1};
  for (const std::int64_t extent : shape) {
    spec.rows *= spec.cols;
    spec.cols = extent;
  }
  return spec;
}

}  // namespace

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
    specs.push_back(spec_of(operand, shape_of(extents, operand)));
  }
  return specs;
}

namespace {

/// Checks what does not depend on the configuration: an integer of at least `least`.
Result<void> check_integer(const Extents& extents, const Formula& formula, std::int64_t least) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  if (reads_parameters(extents, formula) || integer(extents, formula, nullptr, least, most))
    return {};
  return invalid_argument(at_place(extents, formula,
                                   fmt::format("must be an integer of {} or more, and {}", least,
                                               shown(extents, formula, nullptr))));
}

Result<void> check_launches(const Extents& extents, const std::vector<DescribedLaunch>& launches) {
  for (const DescribedLaunch& launch : launches) {
    for (std::size_t i = 0; i < 3; ++i) {
      if (auto good = check_integer(extents, launch.grid[i], 1); !good) return good;
      if (auto good = check_integer(extents, launch.workgroup[i], 1); !good) return good;
    }
    if (auto good = check_integer(extents, launch.shared_bytes, 0); !good) return good;
  }
  return {};
}

Result<void> check_work(const Extents& extents) {
  const Description& d = extents.shared->description;
  for (const Formula& formula : {d.flops, d.bytes}) {
    const auto value = evaluate(extents, formula, nullptr);
    if (value && value->is_number() && value->real() >= 0) continue;
    return invalid_argument(at_place(
        extents, formula,
        fmt::format("must be a number of 0 or more, and {}", shown(extents, formula, nullptr))));
  }
  return {};
}

Result<void> check_values(const Extents& extents) {
  const Description& d = extents.shared->description;
  if (auto good = check_launches(extents, d.launches); !good) return good;
  if (auto good = check_launches(extents, d.reference.launches); !good) return good;
  if (auto good = check_integer(extents, d.workspace_bytes, 0); !good) return good;
  for (const DescribedScalar& scalar : d.scalars) {
    if (reads_parameters(extents, scalar.value)) continue;
    if (auto good = scalar_argument(extents, scalar, nullptr); !good) return good.failure();
  }
  return check_work(extents);
}

}  // namespace

Result<void> check(const Extents& extents) {
  for (const DescribedOperand& operand : extents.shared->description.operands) {
    double elements = 1;
    for (const Formula& formula : operand.shape) {
      const auto value = evaluate(extents, formula, nullptr);
      const bool extent = value && value->is_integer() && value->integer() > 0;
      if (!extent) {
        return invalid_argument(
            at_place(extents, formula,
                     fmt::format("an extent of the operand {} must be an integer above 0, and {}",
                                 operand.name, shown(extents, formula, nullptr))));
      }
      elements *= value->real();
    }
    if (elements > 0x1p40) {
      return invalid_argument(
          at_place(extents, operand.shape.front(),
                   fmt::format("the operand {} has more than 2^40 elements", operand.name)));
    }
    if (operand.fill.kind != OperandFill::Kind::file) continue;
    const auto shape = shape_of(extents, operand);
    const auto fits = elements_of(operand.fill.file, extents.shared->files.at(operand.fill.file),
                                  spec_of(operand, shape), shape);
    if (!fits) return fits.failure();
  }
  return check_values(extents);
}

void harden(const Shared& shared, std::vector<HostTensor>& inputs, std::uint64_t seed) {
  for (HostTensor& tensor : inputs) {
    const auto& operands = shared.description.operands;
    const auto operand = std::find_if(operands.begin(), operands.end(),
                                      [&](const auto& o) { return o.name == tensor.spec.name; });
    const OperandFill& fill = operand->fill;
    if (fill.kind != OperandFill::Kind::random) continue;
    const double last = is_floating(tensor.spec.dtype) ? fill.to : std::floor(fill.to);
    const double first = is_floating(tensor.spec.dtype) ? fill.from : std::ceil(fill.from);
    const double zero = fill.from <= 0 && fill.to >= 0 ? 0 : first;
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
    // check() read the header before.
    const std::string_view file = shared.files.at(fill.file);
    const std::string_view elements = file.substr(file.size() - spec.bytes());
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
