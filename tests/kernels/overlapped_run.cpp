#include "tests/kernels/overlapped_run.hpp"

#include <algorithm>
#include <chrono>

#include "kernels/launch/compiled_plan.hpp"
#include "kernels/launch/guarded_buffer.hpp"

namespace greta::test {
namespace {

constexpr auto nan_byte = static_cast<std::byte>(nan_pattern & 0xffU);

std::unique_ptr<Buffer> filled(Device& device, std::size_t bytes, std::byte value) {
  auto buffer = device.allocate(std::max<std::size_t>(bytes, 4)).value();
  device.upload(*buffer, 0, std::vector<std::byte>(buffer->size(), value)).value();
  return buffer;
}

/// An operand and what it is a copy of.
struct Operand {
  TensorSpec spec;
  std::unique_ptr<Buffer> memory, contents;
  bool early = false;  ///< the kernel may read it before it waits
};

std::vector<Operand> operands_of(Device& device, const LaunchPlan& plan,
                                 const std::vector<TensorSpec>& tensors,
                                 const std::vector<HostTensor>& inputs) {
  std::vector<Operand> operands;
  auto input = inputs.begin();
  for (const TensorSpec& spec : tensors) {
    operands.push_back(
        {spec, filled(device, spec.bytes(), nan_byte), filled(device, spec.bytes(), nan_byte)});
    if (spec.role != Role::output) {
      device.upload(*operands.back().contents, 0, (input++)->data).value();
    }
  }
  for (const Launch& launch : plan.launches) {
    for (const std::size_t index : launch.early_operands) operands[index].early = true;
  }
  return operands;
}

/// What the operand holds before the graph runs: its contents, or NaN.
void reset(Device& device, const Operand& operand) {
  std::vector<std::byte> bytes(operand.memory->size(), nan_byte);
  if (operand.early) device.download(*operand.contents, 0, bytes).value();
  device.upload(*operand.memory, 0, bytes).value();
}

Result<void> record(Stream& stream, const std::vector<Operand>& operands, const CompiledPlan& plan,
                    std::uint64_t workspace) {
  std::vector<std::uint64_t> addresses;
  for (const Operand& each : operands) {
    addresses.push_back(each.memory->address());
    if (each.early) continue;
    auto done = stream.copy(*each.memory, 0, *each.contents, 0, each.memory->size());
    if (!done) return done;
  }
  return plan.record(stream, addresses, workspace, std::vector<bool>(operands.size(), true));
}

std::vector<HostTensor> outputs_of(Device& device, const std::vector<Operand>& operands) {
  std::vector<HostTensor> outputs;
  for (const Operand& each : operands) {
    if (each.spec.role == Role::input) continue;
    outputs.push_back({each.spec, std::vector<std::byte>(each.spec.bytes())});
    device.download(*each.memory, 0, outputs.back().data).value();
  }
  return outputs;
}

}  // namespace

Result<std::vector<std::vector<HostTensor>>> run_overlapped(Device& device, const LaunchPlan& plan,
                                                            const std::vector<TensorSpec>& tensors,
                                                            const std::vector<HostTensor>& inputs) {
  const auto compile = [&](const KernelSource& source) -> Result<std::shared_ptr<const Kernel>> {
    auto kernel = device.compile(source);
    if (!kernel) return kernel.failure();
    return std::shared_ptr<const Kernel>(*std::move(kernel));
  };
  const auto compiled = CompiledPlan::create(plan, compile);
  if (!compiled) return compiled.failure();
  const auto workspace = filled(device, plan.workspace_bytes, std::byte{0});
  const std::vector<Operand> operands = operands_of(device, plan, tensors, inputs);
  const auto graph = device.create_graph(
      [&](Stream& to) { return record(to, operands, *compiled, workspace->address()); });
  if (!graph) return graph.failure();
  const auto stream = device.create_stream().value();
  std::vector<std::vector<HostTensor>> runs;
  for (int run = 0; run < 2; ++run) {
    for (const Operand& each : operands) reset(device, each);
    stream->replay(**graph).value();
    if (auto done = stream->synchronize(std::chrono::minutes(4)); !done) return done.failure();
    runs.push_back(outputs_of(device, operands));
  }
  return runs;
}

}  // namespace greta::test
