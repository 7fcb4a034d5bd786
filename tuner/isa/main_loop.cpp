#include "tuner/isa/main_loop.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "tuner/isa/instruction_kind.hpp"

namespace greta::tuner {
namespace {

/// What the instructions of a path do.
struct PathWork {
  double matrix_flops = 0;
  double memory_bytes = 0, lds_bytes = 0;
  double instructions = 0;
  double others = 0;  ///< vector and memory instructions

  void add(const PathWork& more) {
    matrix_flops += more.matrix_flops;
    memory_bytes += more.memory_bytes;
    lds_bytes += more.lds_bytes;
    instructions += more.instructions;
    others += more.others;
  }
  /// Whether a turn rather takes this path.
  bool before(const PathWork& other) const {
    return std::tuple(-matrix_flops, -memory_bytes, -lds_bytes, instructions) <
           std::tuple(-other.matrix_flops, -other.memory_bytes, -other.lds_bytes,
                      other.instructions);
  }
};

PathWork block_work(const std::vector<IsaInstruction>& instructions, const IsaBlock& block) {
  PathWork work;
  for (std::size_t i = block.first; i < block.last; ++i) {
    const std::string& name = instructions[i].operation.mnemonic;
    ++work.instructions;
    switch (kind_of(instructions[i])) {
      case InstructionKind::matrix:
        work.matrix_flops += matrix_shape(name).flops();
        break;
      case InstructionKind::vector_memory:
        work.memory_bytes += lane_bytes(name);
        ++work.others;
        break;
      case InstructionKind::lds:
        work.lds_bytes += lane_bytes(name);
        ++work.others;
        break;
      case InstructionKind::vector:
        ++work.others;
        break;
      default:
        break;
    }
  }
  return work;
}

struct LoopPath {
  PathWork work;
  std::vector<std::size_t> blocks;
};

/// Finds the path of a turn: from `start` through `inside` to a block that leads back to `start`,
/// or to the end of the kernel if `to_end`.
LoopPath find_path(const std::vector<PathWork>& work, const ControlFlow& flow,
                   const std::vector<bool>& inside, std::size_t start, bool to_end) {
  constexpr std::size_t none = static_cast<std::size_t>(-1);
  std::vector<std::optional<PathWork>> best(flow.blocks.size());
  std::vector<std::size_t> from(flow.blocks.size(), none), number(flow.blocks.size(), none);
  for (std::size_t i = 0; i < flow.order.size(); ++i) number[flow.order[i]] = i;
  best[start] = work[start];
  std::size_t end = none;
  for (const std::size_t block : flow.order) {
    if (!best[block] || !inside[block]) continue;
    const auto& next = flow.blocks[block].next;
    const bool last =
        to_end ? next.empty() : std::find(next.begin(), next.end(), start) != next.end();
    if (last && (end == none || best[block]->before(*best[end]))) end = block;
    for (const std::size_t one : next) {
      if (one == start || !inside[one] || number[one] <= number[block]) continue;
      PathWork sum = *best[block];
      sum.add(work[one]);
      if (best[one] && !sum.before(*best[one])) continue;
      best[one] = sum;
      from[one] = block;
    }
  }
  LoopPath path;
  if (end == none) return path;
  path.work = *best[end];
  for (std::size_t block = end; block != none; block = from[block]) path.blocks.push_back(block);
  std::reverse(path.blocks.begin(), path.blocks.end());
  return path;
}

}  // namespace

MainLoop find_main_loop(const std::vector<IsaInstruction>& instructions, const ControlFlow& flow) {
  if (flow.blocks.empty()) return {};
  std::vector<PathWork> work;
  double matrix_flops = 0;
  for (const IsaBlock& block : flow.blocks) {
    work.push_back(block_work(instructions, block));
    matrix_flops += work.back().matrix_flops;
  }
  MainLoop main;
  std::pair<double, double> most{0, 0};
  for (const IsaLoop& loop : flow.loops) {
    if (!loop.innermost) continue;
    LoopPath path = find_path(work, flow, loop.blocks, loop.header, false);
    const std::pair size{path.work.matrix_flops, path.work.others};
    if (path.blocks.empty() || size <= most) continue;
    most = size;
    main = {loop.blocks, loop.header, std::move(path.blocks)};
  }
  if (main.header && (matrix_flops == 0 || most.first > 0)) return main;
  const std::vector<bool> all(flow.blocks.size(), true);
  return {all, std::nullopt, find_path(work, flow, all, 0, true).blocks};
}

}  // namespace greta::tuner
