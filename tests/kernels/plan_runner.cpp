#include "tests/kernels/plan_runner.hpp"

#include <algorithm>
#include <chrono>

namespace greta::test {
namespace {

constexpr std::size_t guard_bytes = 1024;
constexpr std::byte guard_byte{0xa5};
constexpr std::byte nan_byte{0xff};  // repeated, a NaN in every type

/// A buffer with a guard zone on each side.
struct Guarded {
  std::string name;
  std::size_t bytes = 0;
  std::unique_ptr<Buffer> buffer;

  std::uint64_t address() const { return buffer->address() + guard_bytes; }
};

Guarded make_guarded(Device& device, const std::string& name, const std::byte* content,
                     std::size_t bytes) {
  std::vector<std::byte> image(bytes + 2 * guard_bytes, guard_byte);
  if (content != nullptr) {
    std::copy_n(content, bytes, image.begin() + guard_bytes);
  } else {
    std::fill_n(image.begin() + guard_bytes, bytes, nan_byte);
  }
  Guarded guarded{name, bytes, device.allocate(image.size()).value()};
  device.upload(*guarded.buffer, 0, image).value();
  return guarded;
}

/// The content; appends the buffer's name to `overrun` where a guard zone was written.
std::vector<std::byte> read_back(Device& device, const Guarded& guarded, std::string& overrun) {
  std::vector<std::byte> image(guarded.bytes + 2 * guard_bytes);
  device.download(*guarded.buffer, 0, image).value();
  const auto clean = [](auto first, auto last) {
    return std::all_of(first, last, [](std::byte b) { return b == guard_byte; });
  };
  const auto begin = image.begin() + guard_bytes;
  const auto end = begin + static_cast<std::ptrdiff_t>(guarded.bytes);
  if (!clean(image.begin(), begin)) overrun += " before " + guarded.name;
  if (!clean(end, image.end())) overrun += " behind " + guarded.name;
  return {begin, end};
}

/// Puts back what a launch reads and overwrites.
void restore(Device& device, const std::vector<Guarded>& operands,
             const std::vector<TensorSpec>& tensors, const std::vector<HostTensor>& inputs) {
  auto input = inputs.begin();
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].role == Role::input_output) {
      device.upload(*operands[i].buffer, guard_bytes, input->data).value();
    }
    if (tensors[i].role != Role::output) ++input;
  }
}

std::vector<std::byte> pack(const Launch& launch, const std::vector<Guarded>& operands,
                            std::uint64_t workspace) {
  std::vector<std::byte> block;
  const auto append = [&block](auto value) {
    block.resize((block.size() + sizeof(value) - 1) / sizeof(value) * sizeof(value));
    const auto* bytes = reinterpret_cast<const std::byte*>(&value);
    block.insert(block.end(), bytes, bytes + sizeof(value));
  };
  for (const Argument& argument : launch.arguments) {
    if (const auto* operand = std::get_if<OperandArgument>(&argument)) {
      append(operands.at(operand->tensor).address());
    } else if (std::holds_alternative<WorkspaceArgument>(argument)) {
      append(workspace);
    } else if (const auto* integer = std::get_if<std::uint32_t>(&argument)) {
      append(*integer);
    } else if (const auto* number = std::get_if<float>(&argument)) {
      append(*number);
    } else {
      append(std::get<std::uint64_t>(argument));
    }
  }
  return block;
}

}  // namespace

Device& device() {
  static const std::unique_ptr<Device> instance = open_device("auto", {}).value();
  return *instance;
}

std::vector<HostTensor> random_inputs(const std::vector<TensorSpec>& tensors, std::uint64_t seed) {
  std::vector<HostTensor> inputs;
  for (const TensorSpec& spec : tensors) {
    if (spec.role != Role::output) inputs.push_back(random_tensor(spec, seed++));
  }
  return inputs;
}

Result<PlanRun> run_plan(Device& device, const LaunchPlan& plan,
                         const std::vector<TensorSpec>& tensors,
                         const std::vector<HostTensor>& inputs, int repetitions) {
  std::vector<std::unique_ptr<Kernel>> kernels;
  for (const KernelSource& source : plan.sources) {
    auto kernel = device.compile(source);
    if (!kernel) return kernel.failure();
    kernels.push_back(std::move(kernel).value());
  }
  std::vector<Guarded> operands;
  auto input = inputs.begin();
  for (const TensorSpec& spec : tensors) {
    const bool read = spec.role != Role::output;
    operands.push_back(
        make_guarded(device, spec.name, read ? input->data.data() : nullptr, spec.bytes()));
    if (read) ++input;
  }
  const Guarded workspace = make_guarded(device, "the workspace", nullptr,
                                         std::max<std::size_t>(plan.workspace_bytes, 4));

  const auto stream = device.create_stream().value();
  const auto start = device.create_event().value(), stop = device.create_event().value();
  for (int i = 0; i < repetitions; ++i) {
    if (i > 0) restore(device, operands, tensors, inputs);
    stream->record(*start).value();
    for (const Launch& launch : plan.launches) {
      const auto arguments = pack(launch, operands, workspace.address());
      const auto done = stream->launch(*kernels[launch.source], launch.grid, arguments);
      if (!done) return done.failure();
    }
    stream->record(*stop).value();
    if (const auto done = stream->synchronize(std::chrono::seconds(60)); !done) {
      return done.failure();
    }
  }
  PlanRun run;
  run.microseconds = device.elapsed_us(*start, *stop).value();
  read_back(device, workspace, run.overrun);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    auto content = read_back(device, operands[i], run.overrun);
    if (tensors[i].role != Role::input) run.outputs.push_back({tensors[i], std::move(content)});
  }
  return run;
}

}  // namespace greta::test
