#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "runtime/device/hip/event.hpp"
#include "runtime/device/hip/kernel.hpp"

namespace greta::device::hip {

using GraphHandle = Handle<hipGraphExec_t, &Functions::hipGraphExecDestroy>;

/// Work that was recorded but not issued yet. Commands keep alive the objects they use, except
/// buffers.
struct Commands {
  struct Launch {
    std::shared_ptr<const Function> function;
    Grid grid{};
    std::size_t arguments = 0;  ///< offset of the block in argument_bytes
    bool overlaps = false;      ///< may begin before the launch ahead of it ends
  };
  struct Copy {
    std::byte* to = nullptr;
    const std::byte* from = nullptr;
    std::size_t bytes = 0;
  };
  struct PeerCopy {
    std::byte* to = nullptr;
    int to_device = 0;  ///< number within the platform
    const std::byte* from = nullptr;
    int from_device = 0;
    std::size_t bytes = 0;
  };
  struct Fill {
    std::byte* to = nullptr;
    std::size_t words = 0;
    std::uint32_t pattern = 0;
  };
  struct Record {
    std::shared_ptr<Recording> event;
  };
  struct Replay {
    std::shared_ptr<const GraphHandle> graph;
  };
  using Command = std::variant<Launch, Copy, PeerCopy, Fill, Record, Replay>;

  std::vector<Command> list;
  std::vector<std::byte> argument_bytes;

  /// Issues command `index` to a stream. Throws Refusal.
  void issue(const Context& context, std::size_t index, hipStream_t stream);
  /// Marks events recorded by command `first` and later ones as never recorded.
  void forget_events(std::size_t first = 0);
};

/// The common part of streams and graphs, which records launches, copies and fills.
class Recorder : public Stream {
 public:
  Result<void> launch(const Kernel& kernel, Grid grid, std::span<const std::byte> arguments,
                      LaunchOrder order) final;
  Result<void> copy(Buffer& to, std::size_t to_offset, const Buffer& from, std::size_t from_offset,
                    std::size_t bytes) final;
  Result<void> write_constant(const Kernel& kernel, std::size_t index, std::uint64_t from,
                              std::size_t bytes) final;
  Result<void> encode(const TensorMap& map, std::uint64_t address, std::byte* to) final;
  Result<void> fill(Buffer& to, std::size_t offset, std::size_t bytes, std::uint32_t pattern) final;
  void discard() final;

 protected:
  explicit Recorder(std::shared_ptr<Context> context) : context_(std::move(context)) {}

  void record_peer_copy(const Commands::PeerCopy& copy) { commands_.list.emplace_back(copy); }
  /// Throws Refusal for kernels of other devices.
  const HipKernel& checked_kernel(const Kernel& kernel) const;

  const std::shared_ptr<Context> context_;
  Commands commands_;
};

}  // namespace greta::device::hip
