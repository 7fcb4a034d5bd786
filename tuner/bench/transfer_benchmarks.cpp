#include <algorithm>
#include <memory>
#include <vector>

#include "tuner/bench/device_work.hpp"
#include "tuner/bench/host_timer.hpp"
#include "tuner/measure/reference_kernel.hpp"
#include "tuner/measure/stopwatch.hpp"

namespace greta::tuner {
namespace {

using TransferBenchmarks = std::vector<Benchmark>;
using Taken = Result<std::vector<double>>;

struct BlockingTransfer {
  std::unique_ptr<Buffer> buffer;
  std::vector<std::byte> data;
  HostTimer timer;
};

TransferBenchmarks blocking_transfers(Device& device, const std::string& op) {
  TransferBenchmarks list;
  for (const std::size_t bytes : {std::size_t{4}, std::size_t{64} << 10, std::size_t{16} << 20}) {
    auto benchmark = machine_benchmark(device, Benchmark::Kind::platform, op, {{"bytes", bytes}},
                                       static_cast<double>(bytes));
    benchmark.calls = true;
    auto work = std::make_shared<BlockingTransfer>();
    const bool up = op == "upload";
    benchmark.take = [&device, work, bytes, up](int count) -> Result<std::vector<double>> {
      if (!work->buffer) {
        work->data.resize(bytes);
        work->buffer = device.allocate(bytes).value();
        device.upload(*work->buffer, 0, work->data).value();
      }
      return work->timer.take(count, [&](int calls) -> Result<void> {
        for (int i = 0; i < calls; ++i) {
          auto moved = up ? device.upload(*work->buffer, 0, work->data)
                          : device.download(*work->buffer, 0, work->data);
          if (!moved) return moved;
        }
        return {};
      });
    };
    list.push_back(benchmark);
  }
  return list;
}

// Copies between memory of the host that the device reaches by itself, and its own memory, in
// streams that run at the same time.
class StreamTransfers {
 public:
  explicit StreamTransfers(Device& device)
      : bytes_(bytes_of(device.info())),
        kernel_(std::move(ReferenceKernel::create(device).value())) {
    for (int i = 0; i < 2; ++i) {
      host_.push_back(device.allocate(bytes_, Memory::staging).value());
      own_.push_back(device.allocate(bytes_).value());
    }
    for (int i = 0; i < 3; ++i) streams_.push_back(device.create_stream().value());
  }

  static std::size_t bytes_of(const DeviceInfo& info) {
    return info.is_cpu() ? std::size_t{8} << 20 : std::size_t{64} << 20;
  }

  Result<void> upload() { return streams_[0]->copy(*own_[0], 0, *host_[0], 0, bytes_); }
  Result<void> download() { return streams_[1]->copy(*host_[1], 0, *own_[1], 0, bytes_); }
  Result<void> compute() { return kernel_.record(*streams_[2], iterations_); }

  /// Returns the time on the host's clock from the submission of all that is recorded to its end.
  Result<double> run() {
    const Stopwatch watch;
    for (auto& stream : streams_) {
      if (auto r = stream->submit(); !r) return r.failure();
    }
    for (auto& stream : streams_) {
      if (auto r = stream->synchronize(deadline_of(machine_patience_s)); !r) return r.failure();
    }
    return watch.seconds() * 1e6;
  }

  /// Makes computing take as long as an upload alone.
  Result<void> calibrate() {
    const auto fastest = [&](Result<void> (StreamTransfers::*record)()) -> Result<double> {
      double least = 0;
      for (int i = 0; i < 5; ++i) {
        if (auto r = (this->*record)(); !r) return r.failure();
        const auto us = run();
        if (!us) return us;
        least = least == 0 ? *us : std::min(least, *us);
      }
      return least;
    };
    const auto transfer_us = fastest(&StreamTransfers::upload);
    if (!transfer_us) return transfer_us.failure();
    for (int i = 0; i < 3; ++i) {  // a short run consists of the launch mostly
      const auto compute_us = fastest(&StreamTransfers::compute);
      if (!compute_us) return compute_us.failure();
      constexpr double most = 1e6;
      iterations_ = static_cast<std::uint32_t>(
          std::clamp(iterations_ * *transfer_us / std::max(*compute_us, 1e-3), 1.0, most));
    }
    return {};
  }

 private:
  std::size_t bytes_;
  ReferenceKernel kernel_;
  std::uint32_t iterations_ = 100;
  std::vector<std::unique_ptr<Buffer>> host_, own_;
  std::vector<std::unique_ptr<Stream>> streams_;
};

// `parts` are recorded in streams of their own, and run together.
Benchmark stream_transfer(Device& device, const std::string& op, double copies,
                          const std::vector<Result<void> (StreamTransfers::*)()>& parts) {
  const std::size_t bytes = StreamTransfers::bytes_of(device.info());
  auto benchmark = machine_benchmark(device, Benchmark::Kind::platform, op, {{"bytes", bytes}},
                                     copies * static_cast<double>(bytes));
  auto transfers = std::make_shared<std::unique_ptr<StreamTransfers>>();
  benchmark.take = [&device, transfers, parts](int count) -> Taken {
    if (!*transfers) {
      *transfers = std::make_unique<StreamTransfers>(device);
      if (auto calibrated = (*transfers)->calibrate(); !calibrated) return calibrated.failure();
    }
    std::vector<double> samples;
    for (int i = 0; i <= count; ++i) {  // the first is a warm-up
      for (const auto part : parts) {
        if (auto r = (**transfers.*part)(); !r) return r.failure();
      }
      const auto us = (*transfers)->run();
      if (!us) return us.failure();
      if (i > 0) samples.push_back(*us);
    }
    return samples;
  };
  return benchmark;
}

}  // namespace

std::vector<Benchmark> transfer_benchmarks(Device& device, const std::string& name) {
  using T = StreamTransfers;
  if (name == "upload_stream") return {stream_transfer(device, name, 1, {&T::upload})};
  if (name == "download_stream") return {stream_transfer(device, name, 1, {&T::download})};
  if (name == "both_ways") {
    return {stream_transfer(device, name, 2, {&T::upload, &T::download})};
  }
  if (name == "upload_and_compute") {
    return {stream_transfer(device, name, 1, {&T::upload, &T::compute})};
  }
  if (name == "both_ways_and_compute") {
    return {stream_transfer(device, name, 2, {&T::upload, &T::download, &T::compute})};
  }
  return blocking_transfers(device, name);
}

}  // namespace greta::tuner
