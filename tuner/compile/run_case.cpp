#include "tuner/compile/run_case.hpp"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "kernels/launch/argument_block.hpp"
#include "kernels/launch/guarded_buffer.hpp"

namespace greta::tuner {

class LoadedCase::Memory {
 public:
  static Result<Memory> create(Device& device, const std::vector<CaseBuffer>& buffers) {
    Memory memory;
    for (const CaseBuffer& buffer : buffers) {
      auto guarded = GuardedBuffer::create(device, buffer.bytes, GuardValues::nan, buffer.offset);
      if (!guarded) return guarded.failure();
      memory.buffers_.push_back(*std::move(guarded));
    }
    return memory;
  }

  /// Puts what the buffers contain before the first launch into them.
  Result<void> fill(Device& device, const std::vector<CaseBuffer>& buffers) {
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      const CaseBuffer& buffer = buffers[i];
      const std::vector<std::byte> filled(buffer.data.empty() ? buffer.bytes : 0, buffer.fill);
      auto uploaded = buffers_[i].upload(device, buffer.data.empty() ? filled : buffer.data);
      if (!uploaded) return uploaded;
    }
    return {};
  }

  std::vector<std::byte> pack(const std::vector<CaseArgument>& arguments) const {
    ArgumentBlock block;
    for (const CaseArgument& argument : arguments) {
      block.add(argument, [this](const CaseAddress& address) {
        return buffers_[address.buffer].address() + address.offset;
      });
    }
    return block.take();
  }

  /// Returns the contents of the buffers with expected values.
  Result<std::vector<std::vector<std::byte>>> contents(
      Device& device, const std::vector<CaseBuffer>& buffers) const {
    std::vector<std::vector<std::byte>> all;
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      if (buffers[i].expected.empty()) continue;
      auto downloaded = buffers_[i].download(device, all.emplace_back(buffers[i].bytes));
      if (!downloaded) return downloaded.failure();
    }
    return all;
  }

  /// Returns what was written outside of the buffers; empty if nothing was.
  Result<std::string> broken_guard(Device& device, const std::vector<CaseBuffer>& buffers) const {
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      const auto broken = buffers_[i].broken_guard(device, buffers[i].name);
      if (!broken) return broken.failure();
      if (*broken) return **broken;
    }
    return std::string();
  }

  /// Returns the first error in the buffers after the launches; empty if there is none.
  Result<std::string> judge(Device& device, const std::vector<CaseBuffer>& buffers) const {
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      if (buffers[i].expected.empty()) continue;
      std::vector<std::byte> contents(buffers[i].bytes);
      auto downloaded = buffers_[i].download(device, contents);
      if (!downloaded) return downloaded.failure();
      if (auto wrong = check_buffer(buffers[i], contents); !wrong.empty()) return wrong;
    }
    return std::string();
  }

 private:
  std::vector<GuardedBuffer> buffers_;
};

namespace {

/// Returns the kernel description of a launch that a device needs.
KernelSource source_of(const KernelCase& run, const CaseLaunch& launch,
                       std::size_t argument_bytes) {
  KernelSource source;
  source.name = source.entry = launch.kernel;
  source.language = run.language;
  source.block = launch.block;
  source.argument_bytes = static_cast<std::uint32_t>(argument_bytes);
  source.dynamic_shared_bytes = launch.dynamic_shared_bytes;
  source.required_subgroup_size = launch.subgroup_size;
  return source;
}

}  // namespace

Result<std::string> run_case(Device& device, const KernelCase& run, Deadline deadline) {
  const std::string& there = device.info().architecture;
  const bool same_language = device.info().language == run.language;
  if (!same_language || (run.language == Language::hip && there != run.architecture)) {
    return Failure{Status::invalid_argument,
                   fmt::format("compiled for {}, but {} is {}", run.architecture,
                               device.info().id(), there.empty() ? "of another kind" : there),
                   {}};
  }
  return LoadedCase(device, run).run(deadline);
}

LoadedCase::LoadedCase(Device& device, const KernelCase& run) : device_(device), run_(run) {}
LoadedCase::~LoadedCase() = default;

/// Allocates the memory if there is none, and fills it.
Result<void> LoadedCase::prepare() {
  if (!stream_) {
    auto stream = device_.create_stream();
    if (!stream) return stream.failure();
    stream_ = *std::move(stream);
  }
  if (!memory_) {
    auto memory = Memory::create(device_, run_.buffers);
    if (!memory) return memory.failure();
    memory_ = std::make_unique<Memory>(*std::move(memory));
  }
  return memory_->fill(device_, run_.buffers);
}

Result<void> LoadedCase::launch(Deadline deadline) {
  for (std::size_t i = 0; i < run_.launches.size(); ++i) {
    const CaseLaunch& launch = run_.launches[i];
    const auto arguments = memory_->pack(launch.arguments);
    if (i == kernels_.size()) {
      auto kernel = device_.load(source_of(run_, launch, arguments.size()),
                                 run_.code_objects[launch.code_object]);
      if (!kernel) {  // a failed load says nothing about results
        return Failure{Status::invalid_argument, kernel.failure().message, kernel.failure().log};
      }
      kernels_.push_back(*std::move(kernel));
    }
    auto launched = stream_->launch(*kernels_[i], launch.grid, arguments);
    if (!launched) return launched.failure();
  }
  return stream_->synchronize(deadline);
}

Result<std::string> LoadedCase::run(Deadline deadline) {
  if (auto ready = prepare(); !ready) return ready.failure();
  if (auto done = launch(deadline); !done) return done.failure();
  auto broken = memory_->broken_guard(device_, run_.buffers);
  if (broken && broken->empty()) return memory_->judge(device_, run_.buffers);
  memory_.reset();  // whose guards say nothing about another run
  return broken;
}

Result<std::vector<std::vector<std::byte>>> LoadedCase::contents(Deadline deadline) {
  if (auto ready = prepare(); !ready) return ready.failure();
  if (auto done = launch(deadline); !done) return done.failure();
  return last_contents();
}

Result<std::vector<std::vector<std::byte>>> LoadedCase::last_contents() {
  if (!memory_) return Failure{Status::unavailable, "the memory of the last run is broken", {}};
  return memory_->contents(device_, run_.buffers);
}

}  // namespace greta::tuner
