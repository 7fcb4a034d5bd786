#pragma once

#include <string>
#include <vector>

#include "kernels/model/kernel_template.hpp"
#include "kernels/templates/gemm/shape.hpp"

namespace greta::kernels::gemm {

/// A variant by its functions of a Shape, see kernels::Variant.
template <auto space, auto plan, auto defaults, auto divisions>
Variant make_variant(std::string name, std::string summary) {
  return {std::move(name),
          [](const Problem& problem, const DeviceInfo& device) {
            return space(shape_of(problem), device);
          },
          [](const Problem& problem, const DeviceInfo& device, const Config& config) {
            return plan(shape_of(problem), device, config);
          },
          [](const Problem& problem, const DeviceInfo& device) {
            return defaults(shape_of(problem), device);
          },
          std::move(summary),
          [](const Problem& problem, const Config& config) {
            return divisions(shape_of(problem), config);
          }};
}

Variant gemv(), naive(), matrix(), tiled(), split_k();

}  // namespace greta::kernels::gemm
