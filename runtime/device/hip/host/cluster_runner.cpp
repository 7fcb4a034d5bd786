#include "runtime/device/hip/host/cluster_runner.hpp"

#include <string>

#include "runtime/device/hip/host/block_state.hpp"

namespace greta::device::hip::host {

namespace {

/// Draws a number for a cluster, the same in a launch that is repeated.
unsigned draw_for(const BlockRunner::Launch& launch, greta_host::Index first) {
  unsigned hash = 0;
  for (const unsigned word : {launch.grid.x, launch.grid.y, launch.grid.z, launch.block.x,
                              launch.dynamic_bytes, first.x, first.y, first.z}) {
    hash = (hash ^ word) * 0x9e3779b1U;
    hash ^= hash >> 15;
  }
  return hash;
}

}  // namespace

ClusterRunner::ClusterRunner() : cluster_(std::make_unique<BlockRunner::Cluster>()) {}
ClusterRunner::~ClusterRunner() = default;

void ClusterRunner::set_launch(const std::vector<const greta_host::Entry*>& copies,
                               const Launch& launch, const std::function<void()>* earlier) {
  launch_ = &launch;
  size_ = copies[0]->cluster;
  cluster_->blocks.clear();
  for (const greta_host::Entry* copy : copies) {
    const auto rank = static_cast<unsigned>(cluster_->blocks.size());
    if (rank == runners_.size()) runners_.push_back(std::make_unique<BlockRunner>());
    cluster_->blocks.push_back(runners_[rank].get());
    runners_[rank]->set_launch(*copy, launch, earlier, *cluster_, rank);
  }
}

std::optional<Fault> ClusterRunner::run(greta_host::Index first) {
  cluster_->phase = 1;
  unsigned rank = 0;
  for (BlockRunner* const block : cluster_->blocks) {
    block->start({first.x + rank % size_.x, first.y + rank / size_.x % size_.y,
                  first.z + rank / (size_.x * size_.y)});
    ++rank;
  }
  auto fault = run_blocks(draw_for(*launch_, first));
  if (!fault) return fault;
  for (BlockRunner* const block : cluster_->blocks) block->abandon();
  return fault;
}

void ClusterRunner::release_stacks(std::size_t most) {
  for (const auto& runner : runners_) most -= runner->release_stacks(most);
}

std::optional<Fault> ClusterRunner::run_blocks(unsigned draw) {
  const auto count = static_cast<unsigned>(cluster_->blocks.size());
  const unsigned step = draw % 2 == 0 ? 1 : count - 1;
  unsigned at = draw / 2 % count;
  for (unsigned passed = 0; passed < count; at = (at + step) % count) {
    BlockRunner& block = *cluster_->blocks[at];
    if (!block.ready()) {
      ++passed;
      continue;
    }
    passed = 0;
    running_ = &block;
    auto fault = block.resume();
    running_ = nullptr;
    if (!fault && block.ended()) fault = block.close();
    if (fault) return fault;
  }
  for (const BlockRunner* block : cluster_->blocks) {
    if (!block->ended()) return stuck();
  }
  return std::nullopt;
}

Fault ClusterRunner::stuck() const {
  Fault fault;
  for (const BlockRunner* block : cluster_->blocks) {
    if (block->ended()) continue;
    fault.message += (fault.message.empty() ? "" : "; ") + block->stuck().message;
  }
  return fault;
}

bool ClusterRunner::interrupt(int signal, const void* address) {
  BlockRunner* const running = running_;
  return running != nullptr && running->interrupt(signal, address);
}

void ClusterRunner::report() const {
  const BlockRunner* const running = running_;
  if (running != nullptr) running->report();
}

}  // namespace greta::device::hip::host
