#include "kernels/templates/scaled_gemm/cores.hpp"

#include <fmt/format.h>

#include "runtime/device/hardware/architectures.hpp"

namespace greta::kernels::scaled_gemm {

MxCores mx_cores(const Shape& shape, const DeviceInfo& device) {
  if (!shape.mx() || device.language != Language::hip) return MxCores::none;
  const std::string_view name = device.architecture;
  const bool mixed = (shape.format == ByteFormat::e5m2 && shape.format_b == ByteFormat::e4m3) ||
                     (shape.format == ByteFormat::e4m3 && shape.format_b == ByteFormat::e5m2);
  switch (matrix_cores(name)) {
    case MatrixCores::none:
      return MxCores::none;
    case MatrixCores::wmma11:
      return MxCores::halves;
    case MatrixCores::wmma12:
      return mixed ? MxCores::halves : MxCores::bytes;
    case MatrixCores::mfma:
      if (name == "gfx950" || name == "host-gfx942") return MxCores::scaled;
      return name.ends_with("gfx908") ? MxCores::none : MxCores::halves;
    case MatrixCores::mma: {
      const bool has_fp8 = name == "sm_89" || name == "sm_100" || name == "sm_120";
      return has_fp8 && !mixed ? MxCores::bytes : MxCores::halves;
    }
  }
  return MxCores::none;
}

bool has_cores(const Shape& shape, const DeviceInfo& device) {
  if (shape.mx()) return mx_cores(shape, device) != MxCores::none;
  if (device.language != Language::hip) return false;
  const ByteCores cores = byte_cores(device.architecture);
  if (shape.integers()) return cores.int8;
  const bool fnuz = shape.format == ByteFormat::e4m3_fnuz || shape.format == ByteFormat::e5m2_fnuz;
  return cores.fp8 && cores.fnuz == fnuz;
}

bool rows_have_scales(const Shape& shape, const DeviceInfo& device) {
  return !shape.mx() || matrix_cores(device.architecture) == MatrixCores::mma;
}

bool has_warpgroup_bytes(const Shape& shape, const DeviceInfo& device) {
  return device.language == Language::hip && has_warpgroup_products(device.architecture) &&
         !shape.mx() &&
         (shape.format == ByteFormat::e4m3 || shape.format == ByteFormat::e5m2 || shape.integers());
}

bool adds_steps(const Shape& shape, const DeviceInfo& device) {
  if (shape.mx()) return mx_cores(shape, device) != MxCores::scaled;
  return shape.scales == Scales::block ||
         (!shape.integers() && matrix_cores(device.architecture) == MatrixCores::mma);
}

Constraint cores_constraint(const Shape& shape, const DeviceInfo& device) {
  return {
      "matrix_operations",
      fmt::format("HIP kernels of the device have no matrix cores of {}", to_string(shape.format)),
      has_cores(shape, device)};
}

}  // namespace greta::kernels::scaled_gemm
