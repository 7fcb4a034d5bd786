#pragma once

#include "runtime/pipeline/c/handles.hpp"

namespace greta::runtime::c {

/// The operands of one call.
class Call {
 public:
  explicit Call(greta_operations* operations) : to_(need(operations, "operations")) {}

  Operations& operator*() const { return *to_.operations; }
  Operations* operator->() const { return to_.operations; }
  /// Returns a required tensor, which must belong to the same runtime.
  const Tensor& operator()(const greta_tensor* tensor, const char* name) const {
    check_runtime(to_.runtime, need(tensor, name).runtime, name);
    return tensor->tensor;
  }
  /// Returns a tensor, or an empty one for null.
  Tensor maybe(const greta_tensor* tensor, const char* name) const {
    return tensor == nullptr ? Tensor() : (*this)(tensor, name);
  }
  NormOptions norm(const greta_norm_options* options) const {
    const auto given = read_options(options, greta_norm_defaults(), "options");
    return {maybe(given.weight, "weight"), maybe(given.bias, "bias"), given.epsilon};
  }

 private:
  greta_operations& to_;
};

inline kernels::WeightFormat weight_format(greta_weights format, const char* name) {
  using Format = kernels::WeightFormat;
  return choose(format,
                {Format::int4, Format::int8, Format::q4_0, Format::q8_0, Format::q4_k, Format::q6_k,
                 Format::mxfp4},
                name);
}

/// Returns whether B has panels, of products that don't read words of AWQ and GPTQ.
inline bool in_panels(std::int64_t packing) {
  if (packing != GRETA_NOT_PACKED && packing != GRETA_PANELS) {
    refuse(fmt::format("packing is {}; allowed: GRETA_NOT_PACKED, GRETA_PANELS", packing));
  }
  return packing == GRETA_PANELS;
}

}  // namespace greta::runtime::c
