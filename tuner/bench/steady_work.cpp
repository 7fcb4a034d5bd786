#include "tuner/bench/steady_work.hpp"

#include <utility>

namespace greta::tuner {
namespace {

constexpr std::uint32_t iterations = 2;
constexpr std::uint32_t pattern = 0x3F9D70A4;  // not zero: some memory systems move zeros faster

}  // namespace

Result<SteadyWork> SteadyWork::create(Device& device,
                                      std::shared_ptr<const ReferenceKernel> reference) {
  SteadyWork work;
  work.reference_ = std::move(reference);
  for (auto* buffer : {&work.from_, &work.to_}) {
    auto allocated = device.allocate(written_bytes);
    if (!allocated) return allocated.failure();
    *buffer = *std::move(allocated);
  }
  auto stream = device.create_stream();
  if (!stream) return stream.failure();
  if (auto r = (*stream)->fill(*work.from_, 0, written_bytes, pattern); !r) return r.failure();
  if (auto r = (*stream)->synchronize(std::chrono::seconds(30)); !r) return r.failure();
  return work;
}

Result<void> SteadyWork::record(Stream& stream) const {
  if (auto r = reference_->record(stream, iterations); !r) return r;
  return stream.copy(*to_, 0, *from_, 0, written_bytes);
}

}  // namespace greta::tuner
