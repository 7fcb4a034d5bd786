#include "runtime/device/hip/recorder.hpp"

#include <fmt/format.h>

#include "runtime/device/hip/memory.hpp"
#include "runtime/device/launch_checks.hpp"
#include "runtime/device/telemetry.hpp"

namespace greta::device::hip {

namespace {

/// Issues one command to a stream.
struct Issue {
  const Context& context;
  hipStream_t stream;
  std::byte* argument_bytes;

  void operator()(const Commands::Launch& launch) const {
    const Functions& hip = context.functions();
    const Function& function = *launch.function;
    if (function.call) {
      function.call->launch({argument_bytes + launch.arguments, function.argument_bytes}, stream);
      return;
    }
    const auto& [x, y, z] = function.block;
    std::byte* const block = argument_bytes + launch.arguments;
    std::vector<void*> parameters;
    if (hip.arguments_one_by_one) {
      for (const std::uint32_t offset : function.argument_offsets) {
        parameters.push_back(block + offset);
      }
    }
    std::size_t size = function.argument_bytes;
    std::array<void*, 5> extra{HIP_LAUNCH_PARAM_BUFFER_POINTER, block, HIP_LAUNCH_PARAM_BUFFER_SIZE,
                               &size, hip.launch_param_end};
    const bool one_by_one = !parameters.empty();
    const auto start = [&](const auto& call) {
      return call(function.handle, launch.grid[0], launch.grid[1], launch.grid[2], x, y, z,
                  function.dynamic_shared_bytes, stream, one_by_one ? parameters.data() : nullptr,
                  one_by_one ? nullptr : extra.data());
    };
    if (launch.overlaps) return context.check(start(hip.launch_overlapping), "cuLaunchKernelEx");
    context.check(start(hip.hipModuleLaunchKernel), "hipModuleLaunchKernel");
  }

  void operator()(const Commands::Copy& copy) const {
    context.check(context.functions().copy_async(copy.to, copy.from, copy.bytes, stream),
                  "hipMemcpyAsync");
  }

  void operator()(const Commands::PeerCopy& copy) const {
    context.check(context.functions().copy_peer_async(copy.to, copy.to_device, copy.from,
                                                      copy.from_device, copy.bytes, stream),
                  "hipMemcpyPeerAsync");
  }

  void operator()(const Commands::Fill& fill) const {
    context.check(context.functions().hipMemsetD32Async(fill.to, static_cast<int>(fill.pattern),
                                                        fill.words, stream),
                  "hipMemsetD32Async");
  }

  void operator()(const Commands::Record& record) const {
    context.check(context.functions().hipEventRecord(record.event->handle.get(), stream),
                  "hipEventRecord");
    record.event->state = Recording::State::submitted;
  }

  void operator()(const Commands::Replay& replay) const {
    context.check(context.functions().hipGraphLaunch(replay.graph->get(), stream),
                  "hipGraphLaunch");
  }
};

void check_threads(const Context& context, const Function& function, Grid grid) {
  const std::uint64_t most = context.platform().max_threads_per_axis;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (std::uint64_t{grid[axis]} * function.block[axis] > most) {
      throw Refusal(Status::launch,
                    fmt::format("a grid of {} workgroups of {}, the device takes {} threads in a "
                                "dimension",
                                fmt::join(grid, "x"), fmt::join(function.block, "x"), most));
    }
  }
}

}  // namespace

void Commands::issue(const Context& context, std::size_t index, hipStream_t stream) {
  std::visit(Issue{context, stream, argument_bytes.data()}, list[index]);
}

void Commands::forget_events(std::size_t first) {
  for (; first < list.size(); ++first) {
    if (const auto* const record = std::get_if<Record>(&list[first])) {
      record->event->state = Recording::State::never;
    }
  }
}

const HipKernel& Recorder::checked_kernel(const Kernel& kernel) const {
  const auto* const known = dynamic_cast<const HipKernel*>(&kernel);
  if (known == nullptr || known->context() != context_.get()) {
    throw Refusal(Status::invalid_argument, "the kernel belongs to another device");
  }
  return *known;
}

Result<void> Recorder::write_constant(const Kernel& kernel, std::size_t index, std::uint64_t from,
                                      std::size_t bytes) {
  return guarded(*context_, [&]() -> Result<void> {
    const Constant& to = checked_kernel(kernel).function()->constants.at(index);
    if (bytes > to.bytes) {
      throw Refusal(Status::launch, fmt::format("{} bytes for a variable in constant memory of {}",
                                                bytes, to.bytes));
    }
    commands_.list.emplace_back(
        Commands::Copy{to.address, reinterpret_cast<const std::byte*>(from), bytes});
    return {};
  });
}

Result<void> Recorder::encode(const TensorMap& map, std::uint64_t address, std::byte* to) {
  const auto& encode = context_->functions().encode;
  if (!encode) return Stream::encode(map, address, to);
  return guarded(*context_, [&]() -> Result<void> {
    context_->check(encode(map, address, to), "cuTensorMapEncodeTiled");
    return {};
  });
}

Result<void> Recorder::launch(const Kernel& kernel, Grid grid, std::span<const std::byte> arguments,
                              LaunchOrder order) {
  return guarded(*context_, [&]() -> Result<void> {
    const auto& function = checked_kernel(kernel).function();
    check_launch(context_->info(), grid, arguments.size(), function->argument_bytes);
    check_threads(*context_, *function, grid);
    auto& bytes = commands_.argument_bytes;
    const bool overlaps = order == LaunchOrder::overlapping && function->may_overlap;
    commands_.list.emplace_back(Commands::Launch{function, grid, bytes.size(), overlaps});
    bytes.insert(bytes.end(), arguments.begin(), arguments.end());
    bytes.resize((bytes.size() + 15) / 16 * 16);  // aligns the next block for any type of value
    telemetry::count("device.launches");
    return {};
  });
}

Result<void> Recorder::copy(Buffer& to, std::size_t to_offset, const Buffer& from,
                            std::size_t from_offset, std::size_t bytes) {
  return guarded(*context_, [&]() -> Result<void> {
    std::byte* const target = checked_range(*context_, to, to_offset, bytes);
    const std::byte* const origin = checked_range(*context_, from, from_offset, bytes);
    check_apart(to, to_offset, from, from_offset, bytes);
    if (bytes != 0) commands_.list.emplace_back(Commands::Copy{target, origin, bytes});
    return {};
  });
}

Result<void> Recorder::fill(Buffer& to, std::size_t offset, std::size_t bytes,
                            std::uint32_t pattern) {
  return guarded(*context_, [&]() -> Result<void> {
    std::byte* const target = checked_range(*context_, to, offset, bytes);
    check_words(offset, bytes);
    if (bytes != 0) commands_.list.emplace_back(Commands::Fill{target, bytes / 4, pattern});
    return {};
  });
}

void Recorder::discard() {
  commands_.forget_events();
  commands_ = {};
}

}  // namespace greta::device::hip
