#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "runtime/device/device.hpp"

namespace greta::device {

/// Use of memory and streams that other libraries of this process created for the same device.
/// Devices of APIs that have addresses and stream objects (HIP, CUDA) implement it.
class Interop {
 public:
  virtual ~Interop() = default;
  /// Returns a buffer of memory that another library allocated on this device. It is used in place
  /// and never freed; the caller keeps it valid.
  virtual Result<std::unique_ptr<Buffer>> wrap(std::uint64_t address, std::size_t bytes) = 0;
  /// Returns a stream that submits its work to a stream of another library: hipStream_t, CUstream;
  /// nullptr is the default stream. The caller keeps it valid, and keeps kernels and graphs until
  /// their work is done. submit() only adds work, so that the stream may be capturing.
  virtual Result<std::unique_ptr<Stream>> wrap_stream(void* stream) = 0;
  /// Returns the API's own object of a stream of this device.
  virtual Result<void*> native(const Stream& stream) = 0;
};

/// Returns a device's interoperability. Fails with `unavailable` where its API has none.
Result<Interop*> interop(Device& device);

}  // namespace greta::device
