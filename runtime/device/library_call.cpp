#include "runtime/device/library_call.hpp"

namespace greta::device {

std::string text_of(const LibraryCall& call) {
  return std::visit([](const auto& one) { return one.text(); }, call);
}

const std::string& library_of(const LibraryCall& call, const DeviceInfo& device) {
  return std::holds_alternative<MatrixProduct>(call) ? device.matrix_library
                                                     : device.attention_library;
}

}  // namespace greta::device
