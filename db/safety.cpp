#include "db/safety.hpp"

#include <vector>

namespace greta::db {

Avoided avoided(const std::vector<UnsafePart>& parts) {
  Avoided result;
  for (const auto& part : parts) {
    if (part.check == "f16") {
      result.f16 = true;
    } else if (part.check == "matrix") {
      result.matrix = true;
    } else {
      result.device = true;
    }
  }
  return result;
}

DeviceInfo without(DeviceInfo device, const Avoided& parts) {
  if (parts.matrix) device.matrix_operations.clear();
  if (parts.f16) {
    device.f16_arithmetic = device.f16_storage = false;
    std::erase_if(device.matrix_operations,
                  [](const MatrixOperation& operation) { return operation.input != DType::f32; });
  }
  return device;
}

}  // namespace greta::db
