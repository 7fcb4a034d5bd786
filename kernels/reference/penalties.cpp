#include "kernels/reference/penalties.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/reference/roundoff.hpp"

namespace greta::kernels {

using reference::u;

PenalisedLogits::PenalisedLogits(const std::vector<HostTensor>& inputs)
    : x_(keep_tensor(inputs, "x")),
      penalties_(keep_tensor(inputs, "penalties")),
      counts_(static_cast<std::size_t>(x_->spec.rows)) {
  const HostTensor& history = tensor_named(inputs, "history");
  const auto length = static_cast<std::size_t>(history.spec.cols);
  for (std::size_t i = 0; i < counts_.size() * length; ++i) {
    const auto token = static_cast<std::int64_t>(history.at(i));
    if (token >= 0 && token < x_->spec.cols) ++counts_[i / length][token];
  }
}

Expected PenalisedLogits::element(std::int64_t row, std::int64_t col) const {
  const double x = x_->at(static_cast<std::size_t>(row * x_->spec.cols + col));
  const auto& counts = counts_[static_cast<std::size_t>(row)];
  const auto found = counts.find(col);
  if (found == counts.end() || !std::isfinite(x)) return {x, 0};
  const auto penalty = [&](std::int64_t i, double off) {
    const double value = penalties_->at(static_cast<std::size_t>(row * 3 + i));
    return std::isfinite(value) ? value : off;
  };
  const double repetition = penalty(0, 1);
  double value = x, error = 0;
  if (repetition >= 0x1p-126 && std::abs(x) >= 0x1p-126) {
    value = x > 0 ? x / repetition : x * repetition;
    error = 2 * u * std::abs(value);
  }
  const double often = penalty(1, 0) * static_cast<double>(found->second);
  value -= often;
  error += u * (std::abs(often) + std::abs(value));
  value -= penalty(2, 0);
  error = 1.001 * (error + u * std::abs(value)) + 3 * 0x1p-126;
  return rounded(x_->spec.dtype, value, error);
}

ExpectedOutput PenalisedLogits::expected() const {
  TensorSpec spec = x_->spec;
  spec.role = Role::input_output;
  return {spec, [this](std::int64_t row, std::int64_t col) { return element(row, col); }};
}

HostTensor PenalisedLogits::nearest() const {
  HostTensor result = *x_;
  for (std::int64_t row = 0; row < result.spec.rows; ++row) {
    for (const auto& [col, count] : counts_[static_cast<std::size_t>(row)]) {
      store_element(result.spec.dtype, result.data.data(),
                    static_cast<std::size_t>(row * result.spec.cols + col),
                    element(row, col).value);
    }
  }
  return result;
}

bool PenalisedLogits::ambiguous(std::int64_t row) const {
  const DType type = x_->spec.dtype;
  if (bits_of(type) != 16) return false;
  const auto stored = [type](double value) {
    std::array<std::byte, 2> bytes{};
    store_element(type, bytes.data(), 0, value);
    return load_element(type, bytes.data(), 0);
  };
  for (const auto& [col, count] : counts_[static_cast<std::size_t>(row)]) {
    const Expected e = element(row, col);
    if (!std::isfinite(e.value) || e.value == 0) continue;
    if (!std::isfinite(e.bound)) return true;
    const double rounding =
        unit_roundoff(type) * std::exp2(std::ilogb(std::abs(e.value) + e.bound));
    const double error = std::max(0.0, e.bound - rounding);
    if (stored(e.value - error) != stored(e.value + error)) return true;
  }
  return false;
}

}  // namespace greta::kernels
