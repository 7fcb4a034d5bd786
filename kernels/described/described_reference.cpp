#include "kernels/described/described_reference.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <span>

#include "kernels/described/array_file.hpp"
#include "kernels/described/described_extents.hpp"
#include "kernels/described/launch_reader.hpp"
#include "kernels/launch/prepared_plan.hpp"
#include "kernels/reference/elements.hpp"

namespace greta::kernels {
namespace described {
namespace {

/// The distance from |value| to the next greater number of a type.
double last_place(DType type, double value) {
  if (!is_floating(type)) return 1;
  const double magnitude = std::max(std::abs(value), smallest_normal(type));
  if (!std::isfinite(magnitude)) return 0;
  return std::ldexp(2 * unit_roundoff(type), std::ilogb(magnitude));
}

/// A reference for outputs that are known element by element.
std::unique_ptr<Reference> reference_of(const std::vector<TensorSpec>& specs,
                                        std::vector<std::vector<double>> outputs,
                                        const Tolerance& tolerance) {
  std::vector<ExpectedOutput> expected;
  for (std::size_t t = 0; t < specs.size(); ++t) {
    const auto known = std::make_shared<const std::vector<double>>(std::move(outputs[t]));
    expected.push_back(
        {specs[t], [known, spec = specs[t], tolerance](std::int64_t row, std::int64_t col) {
           const double value = (*known)[static_cast<std::size_t>(row * spec.cols + col)];
           const double relative = std::isfinite(value) ? tolerance.relative * std::abs(value) : 0;
           return Expected{value, tolerance.absolute + relative +
                                      tolerance.ulp * last_place(spec.dtype, value)};
         }});
  }
  return elements_reference(std::move(expected));
}

/// The naive kernel on a device, with its operands.
struct Naive {
  Device& device;
  Operands operands;
  PreparedPlan plan;
  std::unique_ptr<Stream> stream;
};

/// Runs the naive kernel on these inputs. `zeros`: outputs contain zeros before, else NaN.
Result<std::vector<HostTensor>> run_once(Naive& naive, const std::vector<HostTensor>& inputs,
                                         bool zeros) {
  auto input = inputs.begin();
  const auto& specs = naive.operands.specs();
  if (auto done = naive.operands.poison_outputs(*naive.stream); !done) return done.failure();
  if (auto done = naive.stream->synchronize(std::chrono::minutes(10)); !done) return done.failure();
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const bool is_output = specs[i].role == Role::output;
    if (is_output && !zeros) continue;
    const HostTensor& from =
        is_output ? HostTensor{specs[i], std::vector<std::byte>(specs[i].bytes())} : *input++;
    if (auto done = naive.operands.upload(naive.device, i, from); !done) return done.failure();
  }
  if (auto done = naive.plan.record(*naive.stream); !done) return done.failure();
  if (auto done = naive.stream->synchronize(std::chrono::minutes(10)); !done) return done.failure();
  const auto broken = naive.operands.broken_guard(naive.device);
  if (!broken) return broken.failure();
  if (*broken) return Failure{Status::correctness, **broken, {}};
  std::vector<HostTensor> outputs;
  if (auto done = naive.operands.download_outputs(naive.device, outputs); !done) {
    return done.failure();
  }
  return outputs;
}

/// Whether all bytes of an element have this value.
bool has_bytes(const HostTensor& tensor, std::size_t element, std::byte value) {
  const auto size = bytes_of(tensor.spec.dtype, std::size_t{1});
  const std::byte* const first = tensor.data.data() + element * size;
  return std::all_of(first, first + size, [&](std::byte one) { return one == value; });
}

/// Returns the elements that contained ones in all bits, as before the launch.
std::vector<std::size_t> untouched(const HostTensor& tensor) {
  std::vector<std::size_t> elements;
  if (tensor.spec.role != Role::output) return elements;
  for (std::size_t i = 0; i < tensor.spec.elements(); ++i) {
    if (has_bytes(tensor, i, std::byte{0xFF})) elements.push_back(i);
  }
  return elements;
}

/// Fails if elements of outputs are as before the launch, whatever they were: -1 of an integer is
/// such a value, too, so the kernel runs a second time on zeros.
Result<void> check_all_written(Naive& naive, const std::vector<HostTensor>& inputs,
                               const std::vector<HostTensor>& outputs) {
  Result<std::vector<HostTensor>> again = std::vector<HostTensor>{};
  for (std::size_t t = 0; t < outputs.size(); ++t) {
    std::vector<std::size_t> elements = untouched(outputs[t]);
    if (elements.empty()) continue;
    if (again->empty()) again = run_once(naive, inputs, true);
    if (!again) return again.failure();
    std::erase_if(elements,
                  [&](std::size_t i) { return !has_bytes((*again)[t], i, std::byte{0}); });
    if (elements.empty()) continue;
    const TensorSpec& spec = outputs[t].spec;
    return Failure{Status::correctness,
                   fmt::format("leaves {} of {} elements of {} unwritten, the first is {}; an "
                               "operand that is written in part is an input_output",
                               elements.size(), spec.elements(), spec.name, elements.front()),
                   {}};
  }
  return {};
}

/// Runs the naive kernel on these inputs, which must write all of its outputs.
Result<std::vector<HostTensor>> run_naive(Device& device, const LaunchPlan& plan,
                                          const std::vector<TensorSpec>& specs,
                                          const std::vector<HostTensor>& inputs) {
  auto operands = Operands::create(device, specs);
  if (!operands) return operands.failure();
  auto prepared = PreparedPlan::create(
      device, plan, *operands, [&](const KernelSource& source) { return device.compile(source); });
  if (!prepared) return prepared.failure();
  auto stream = device.create_stream();
  if (!stream) return stream.failure();
  Naive naive{device, *std::move(operands), *std::move(prepared), *std::move(stream)};
  auto outputs = run_once(naive, inputs, false);
  if (!outputs) return outputs;
  if (auto all = check_all_written(naive, inputs, *outputs); !all) return all.failure();
  return outputs;
}

Result<std::vector<HostTensor>> golden_outputs(const Extents& extents) {
  const Description& d = extents.shared->description;
  std::vector<HostTensor> outputs;
  auto operand = d.operands.begin();
  for (const TensorSpec& spec : tensors(extents)) {
    const auto shape = shape_of(extents, *operand++);
    if (spec.role == Role::input) continue;
    const std::string& name = d.reference.golden.at(outputs.size());
    const auto elements = elements_of(name, extents.shared->files.at(name), spec, shape);
    if (!elements) return elements.failure();
    const auto bytes = std::as_bytes(std::span(*elements));
    outputs.push_back({spec, {bytes.begin(), bytes.end()}});
  }
  return outputs;
}

/// Returns the first default that satisfies the description's constraints, else the first.
Config default_of(const Extents& extents) {
  const Description& d = extents.shared->description;
  std::vector<Config> defaults = defaults_of(extents);
  const auto satisfies = [&](const Config& config) {
    return std::all_of(d.constraints.begin(), d.constraints.end(), [&](const auto& constraint) {
      const auto value = evaluate(extents, constraint.condition, &config);
      return value && value->truth();
    });
  };
  const auto found = std::find_if(defaults.begin(), defaults.end(), satisfies);
  return found != defaults.end() ? *found : defaults.front();
}

/// A reference's kernel sees the macros of a default, as its file may contain the tuned kernel.
Result<std::vector<HostTensor>> naive_outputs(const Extents& extents, Device& device,
                                              const std::vector<HostTensor>& inputs) {
  const LaunchPlan plan = plan_of(extents, Which::reference, device.info(), default_of(extents));
  return run_naive(device, plan, tensors(extents), inputs);
}

/// Returns the operands with their shapes.
std::vector<ShapedOperand> shaped(const Extents& extents) {
  std::vector<ShapedOperand> operands;
  auto described = extents.shared->description.operands.begin();
  for (TensorSpec& spec : tensors(extents)) {
    operands.push_back({std::move(spec), shape_of(extents, *described++)});
  }
  return operands;
}

Result<std::vector<std::vector<double>>> values_of(const Result<std::vector<HostTensor>>& tensors) {
  if (!tensors) return tensors.failure();
  std::vector<std::vector<double>> values(tensors->size());
  for (std::size_t t = 0; t < values.size(); ++t) {
    const HostTensor& tensor = (*tensors)[t];
    values[t].resize(tensor.spec.elements());
    for (std::size_t i = 0; i < values[t].size(); ++i) values[t][i] = tensor.at(i);
  }
  return values;
}

/// Returns a reference with these values of all outputs.
Result<std::unique_ptr<Reference>> known_outputs(const Extents& extents,
                                                 Result<std::vector<std::vector<double>>> values) {
  if (!values) {
    Failure failure = values.failure();
    failure.message = failure.status == Status::correctness ? "the reference " + failure.message
                                                            : "the reference: " + failure.message;
    return failure;
  }
  std::vector<TensorSpec> written = tensors(extents);
  std::erase_if(written, [](const TensorSpec& spec) { return spec.role == Role::input; });
  bool whole = values->size() == written.size();
  for (std::size_t t = 0; whole && t < written.size(); ++t) {
    whole = (*values)[t].size() == written[t].elements();
  }
  if (!whole) return invalid_argument("the reference does not have the elements of the outputs");
  return reference_of(written, *std::move(values), extents.shared->description.reference.tolerance);
}

/// Returns what computes the outputs, unless a function is given.
OutputsOf described_outputs(const std::shared_ptr<const Shared>& shared, ReferenceDevice device) {
  return [shared, device = std::move(device)](
             const Problem& problem, const std::vector<ShapedOperand>&,
             const std::vector<HostTensor>& inputs) -> Result<std::vector<std::vector<double>>> {
    const Extents extents = extents_of(shared, problem);
    const DescribedReference& reference = shared->description.reference;
    if (reference.kind == DescribedReference::Kind::golden) {
      return values_of(golden_outputs(extents));
    }
    const auto opened = device(reference.language);
    if (!opened) return opened.failure();
    return values_of(naive_outputs(extents, **opened, inputs));
  };
}

/// Checks that a description says which results are correct.
Result<void> check_reference(const Description& description) {
  const DescribedReference& reference = description.reference;
  if (reference.kind == DescribedReference::Kind::function) {
    return invalid_argument(
        fmt::format("{} is checked by a function, {}, which a program brings (docs/python.md)",
                    description.name, reference.function));
  }
  if (reference.kind == DescribedReference::Kind::kernel && reference.launches.empty()) {
    return invalid_argument(fmt::format(
        "{} has no reference, so its results cannot be verified; the shortest is a naive "
        "kernel in its source file: the key \"reference\", or a file "
        "NAME.reference.json beside a description in the form T1, with {}",
        description.name, shortest_reference()));
  }
  return {};
}

}  // namespace
}  // namespace described

Result<Operation> make_verified(const Description& description, const DescribedFiles& files,
                                ReferenceDevice device,
                                const std::optional<GivenReference>& given) {
  using namespace described;
  if (!given) {
    if (auto good = check_reference(description); !good) return good.failure();
  }
  Description checked = description;
  if (given && given->tolerance) checked.reference.tolerance = *given->tolerance;
  auto made = shared_of(std::move(checked), files);
  if (!made) return made.failure();
  const auto shared = *std::move(made);
  Operation operation = operation_of(shared);
  operation.reference =
      [shared, outputs = given ? given->outputs : described_outputs(shared, std::move(device))](
          const Problem& problem, const std::vector<HostTensor>& inputs, std::uint64_t /*seed*/) {
        const Extents extents = extents_of(shared, problem);
        return known_outputs(extents, outputs(problem, shaped(extents), inputs)).value();
      };
  if (given || !shared->description.reference.on_device) return operation;
  operation.reference_on = [shared](Device& on, const Problem& problem,
                                    const std::vector<HostTensor>& inputs) {
    const Extents extents = extents_of(shared, problem);
    return known_outputs(extents, values_of(naive_outputs(extents, on, inputs)));
  };
  return operation;
}

}  // namespace greta::kernels
