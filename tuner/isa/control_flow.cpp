#include "tuner/isa/control_flow.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace greta::tuner {
namespace {

constexpr std::size_t no_block = static_cast<std::size_t>(-1);

bool ends_kernel(const IsaInstruction& instruction) {
  const std::string& name = instruction.operation.mnemonic;
  return name.starts_with("s_endpgm") || name == "s_setpc_b64" || name == "s_trap";
}

bool continues(const IsaInstruction& instruction) {
  return !ends_kernel(instruction) && instruction.operation.mnemonic != "s_branch";
}

/// The positions of instructions by their addresses.
using BlockPositions = std::map<std::uint64_t, std::size_t>;

/// Returns the first instructions of the blocks.
std::set<std::size_t> block_leaders(const std::vector<IsaInstruction>& instructions,
                                    const BlockPositions& positions) {
  std::set<std::size_t> found{0};
  for (std::size_t i = 0; i < instructions.size(); ++i) {
    if (instructions[i].target) {
      const auto target = positions.find(*instructions[i].target);
      if (target != positions.end()) found.insert(target->second);
    }
    if ((instructions[i].target || ends_kernel(instructions[i])) && i + 1 < instructions.size()) {
      found.insert(i + 1);
    }
  }
  return found;
}

/// Immediate dominators, by block.
std::vector<std::size_t> dominators(const ControlFlow& flow) {
  std::vector<std::size_t> number(flow.blocks.size(), no_block),
      above(flow.blocks.size(), no_block);
  std::vector<std::vector<std::size_t>> before(flow.blocks.size());
  for (std::size_t i = 0; i < flow.order.size(); ++i) number[flow.order[i]] = i;
  for (const std::size_t block : flow.order) {
    for (const std::size_t next : flow.blocks[block].next) before[next].push_back(block);
  }
  const auto meet = [&](std::size_t a, std::size_t b) {
    while (a != b) {
      while (number[a] > number[b]) a = above[a];
      while (number[b] > number[a]) b = above[b];
    }
    return a;
  };
  above[0] = 0;
  for (bool changed = true; changed;) {
    changed = false;
    for (const std::size_t block : flow.order) {
      if (block == 0) continue;
      std::size_t found = no_block;
      for (const std::size_t one : before[block]) {
        if (above[one] != no_block) found = found == no_block ? one : meet(one, found);
      }
      changed = changed || above[block] != found;
      above[block] = found;
    }
  }
  return above;
}

bool dominates(const std::vector<std::size_t>& above, std::size_t a, std::size_t b) {
  while (b != a && b != 0) b = above[b];
  return a == b;
}

}  // namespace

ControlFlow::ControlFlow(const std::vector<IsaInstruction>& instructions) {
  if (instructions.empty()) return;
  BlockPositions positions;
  for (std::size_t i = 0; i < instructions.size(); ++i) positions[instructions[i].address] = i;
  const auto starts = block_leaders(instructions, positions);
  std::map<std::size_t, std::size_t> block_at;
  for (const std::size_t start : starts) {
    block_at[start] = blocks.size();
    blocks.push_back({start, 0, {}});
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    blocks[i].last = i + 1 < blocks.size() ? blocks[i + 1].first : instructions.size();
    const IsaInstruction& end = instructions[blocks[i].last - 1];
    if (continues(end) && i + 1 < blocks.size()) blocks[i].next.push_back(i + 1);
    const auto target = end.target ? positions.find(*end.target) : positions.end();
    if (target != positions.end()) blocks[i].next.push_back(block_at.at(target->second));
  }
  find_order();
  find_loops();
}

void ControlFlow::find_order() {
  // Reverse postorder, by depth-first search with a stack of its own.
  std::vector<bool> seen(blocks.size(), false);
  std::vector<std::pair<std::size_t, std::size_t>> stack{{0, 0}};  // block, successors visited
  seen[0] = true;
  while (!stack.empty()) {
    auto& [block, visited] = stack.back();
    if (visited == blocks[block].next.size()) {
      order.push_back(block);
      stack.pop_back();
      continue;
    }
    const std::size_t next = blocks[block].next[visited++];
    if (!seen[next]) {
      seen[next] = true;
      stack.emplace_back(next, 0);
    }
  }
  std::reverse(order.begin(), order.end());
}

void ControlFlow::find_loops() {
  const auto above = dominators(*this);
  std::vector<std::vector<std::size_t>> before(blocks.size());
  for (const std::size_t block : order) {
    for (const std::size_t next : blocks[block].next) before[next].push_back(block);
  }
  for (const std::size_t header : order) {
    IsaLoop loop{header, std::vector<bool>(blocks.size(), false)};
    std::vector<std::size_t> open;
    for (const std::size_t end : before[header]) {
      if (dominates(above, header, end)) open.push_back(end);
    }
    if (open.empty()) continue;
    loop.blocks[header] = true;
    while (!open.empty()) {
      const std::size_t block = open.back();
      open.pop_back();
      if (loop.blocks[block]) continue;
      loop.blocks[block] = true;
      open.insert(open.end(), before[block].begin(), before[block].end());
    }
    loops.push_back(std::move(loop));
  }
  for (IsaLoop& loop : loops) {
    loop.innermost = std::none_of(loops.begin(), loops.end(), [&](const IsaLoop& other) {
      return other.header != loop.header && loop.blocks[other.header];
    });
  }
}

}  // namespace greta::tuner
