#include "tuner/evaluate/candidate.hpp"

#include <cstring>

namespace greta {
namespace {

template <typename T>
void append(std::vector<std::byte>& block, T value) {
  const std::size_t at = (block.size() + sizeof(T) - 1) / sizeof(T) * sizeof(T);
  block.resize(at + sizeof(T));
  std::memcpy(block.data() + at, &value, sizeof(T));
}

template <typename... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};
template <typename... Ts>
Overloaded(Ts...) -> Overloaded<Ts...>;

}  // namespace

std::vector<std::byte> pack_arguments(const std::vector<Argument>& arguments,
                                      const Operands& operands, std::uint64_t workspace_address) {
  std::vector<std::byte> block;
  for (const auto& argument : arguments) {
    std::visit(Overloaded{[&](OperandArgument a) { append(block, operands.address(a.tensor)); },
                          [&](WorkspaceArgument) { append(block, workspace_address); },
                          [&](auto scalar) { append(block, scalar); }},
               argument);
  }
  return block;
}

Result<Candidate> Candidate::create(Device& device, const LaunchPlan& plan,
                                    const Operands& operands, const Compile& compile) {
  Candidate candidate;
  candidate.launches_ = plan.launches;
  for (const auto& source : plan.sources) {
    auto kernel = compile(source);
    if (!kernel) return kernel.failure();
    candidate.kernels_.push_back(*std::move(kernel));
  }
  std::uint64_t workspace_address = 0;
  if (plan.workspace_bytes > 0) {
    auto workspace = device.allocate(plan.workspace_bytes);
    if (!workspace) return workspace.failure();
    candidate.workspace_ = *std::move(workspace);
    workspace_address = candidate.workspace_->address();
  }
  for (const auto& launch : plan.launches) {
    candidate.arguments_.push_back(pack_arguments(launch.arguments, operands, workspace_address));
  }
  return candidate;
}

Result<void> Candidate::record(Stream& stream) const {
  for (std::size_t i = 0; i < launches_.size(); ++i) {
    auto launched = stream.launch(*kernels_[launches_[i].source], launches_[i].grid, arguments_[i]);
    if (!launched) return launched;
  }
  return {};
}

Result<void> Candidate::poison_workspace(Stream& stream) const {
  if (!workspace_) return {};
  return stream.fill(*workspace_, 0, workspace_->size() / 4 * 4, 0xFFFFFFFF);
}

std::string Candidate::content_keys() const {
  std::string keys;
  for (const auto& kernel : kernels_) keys += (keys.empty() ? "" : ",") + kernel->content_key();
  return keys;
}

}  // namespace greta
