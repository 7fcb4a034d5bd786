#include "kernels/described/described_reference.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cmath>

#include "kernels/described/described_extents.hpp"
#include "kernels/launch/prepared_plan.hpp"

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

/// Results that are known element by element.
class KnownOutputs final : public Reference {
 public:
  KnownOutputs(std::vector<TensorSpec> specs, std::vector<std::vector<double>> outputs,
               const Tolerance& tolerance)
      : specs_(std::move(specs)), outputs_(std::move(outputs)), tolerance_(tolerance) {}

  Verdict check(const std::vector<HostTensor>& outputs) const override {
    Verdict verdict{.passed = true, .method = "full", .detail = {}};
    for (std::size_t t = 0; t < outputs_.size(); ++t) {
      for (std::size_t i = 0; i < outputs_[t].size(); ++i) {
        const Expected known = expected_at(t, i);
        const double got = outputs.at(t).at(i);
        const bool both_nan = std::isnan(known.value) && std::isnan(got);
        const bool same = got == known.value || both_nan;
        const double error = same ? 0 : std::abs(got - known.value);
        const Verdict one{.passed = error <= known.bound,  // false for NaN
                          .error = std::isnan(error) ? INFINITY : error,
                          .bound = known.bound,
                          .method = "full",
                          .detail = error <= known.bound
                                        ? ""
                                        : fmt::format("{}[{}] is {}, the reference {}",
                                                      specs_[t].name, i, got, known.value)};
        if (!one.passed) return one;
        if (one.ratio() > verdict.ratio()) verdict = one;
      }
    }
    return verdict;
  }

  std::optional<std::vector<std::vector<Expected>>> expected() const override {
    std::vector<std::vector<Expected>> all(outputs_.size());
    for (std::size_t t = 0; t < outputs_.size(); ++t) {
      for (std::size_t i = 0; i < outputs_[t].size(); ++i) {
        all[t].push_back(expected_at(t, i));
      }
    }
    return all;
  }

 private:
  Expected expected_at(std::size_t tensor, std::size_t index) const {
    const double value = outputs_[tensor][index];
    const double relative = std::isfinite(value) ? tolerance_.relative * std::abs(value) : 0;
    return {value, tolerance_.absolute + relative +
                       tolerance_.ulp * last_place(specs_[tensor].dtype, value)};
  }

  std::vector<TensorSpec> specs_;
  std::vector<std::vector<double>> outputs_;
  Tolerance tolerance_;
};

/// Runs the naive kernel on these inputs.
Result<std::vector<HostTensor>> run_naive(Device& device, const LaunchPlan& plan,
                                          const std::vector<TensorSpec>& specs,
                                          const std::vector<HostTensor>& inputs) {
  auto operands = Operands::create(device, specs);
  if (!operands) return operands.failure();
  const auto prepared = PreparedPlan::create(
      device, plan, *operands, [&](const KernelSource& source) { return device.compile(source); });
  if (!prepared) return prepared.failure();
  auto stream = device.create_stream();
  if (!stream) return stream.failure();
  auto input = inputs.begin();
  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (specs[i].role == Role::output) continue;
    if (auto done = operands->upload(device, i, *input++); !done) return done.failure();
  }
  if (auto done = operands->poison_outputs(**stream); !done) return done.failure();
  if (auto done = prepared->record(**stream); !done) return done.failure();
  if (auto done = (*stream)->synchronize(std::chrono::minutes(10)); !done) return done.failure();
  const auto broken = operands->broken_guard(device);
  if (!broken) return broken.failure();
  if (*broken) return Failure{Status::correctness, "the reference wrote outside: " + **broken, {}};
  std::vector<HostTensor> outputs;
  if (auto done = operands->download_outputs(device, outputs); !done) return done.failure();
  return outputs;
}

Result<std::vector<HostTensor>> golden_outputs(const Extents& extents) {
  const Description& d = extents.shared->description;
  std::vector<HostTensor> outputs;
  for (const TensorSpec& spec : tensors(extents)) {
    if (spec.role == Role::input) continue;
    const std::string& name = d.reference.golden.at(outputs.size());
    const std::string_view elements = elements_of(extents.shared->files.at(name));
    if (elements.size() != spec.bytes()) {
      return invalid_argument(
          fmt::format("the file {} has {} bytes of elements, and the output {} {}", name,
                      elements.size(), spec.name, spec.bytes()));
    }
    HostTensor tensor{spec, std::vector<std::byte>(elements.size())};
    std::transform(elements.begin(), elements.end(), tensor.data.begin(),
                   [](char c) { return static_cast<std::byte>(c); });
    outputs.push_back(std::move(tensor));
  }
  return outputs;
}

/// A reference's kernel sees the macros of a default, as its file may contain the tuned kernel.
Result<std::vector<HostTensor>> naive_outputs(const Extents& extents, const std::string& text,
                                              const ReferenceDevice& open,
                                              const std::vector<HostTensor>& inputs) {
  const DescribedReference& reference = extents.shared->description.reference;
  const auto device = open(reference.language);
  if (!device) return device.failure();
  const LaunchPlan plan = plan_of(extents, reference.launches, text, (*device)->info().language,
                                  defaults_of(extents).front());
  return run_naive(**device, plan, tensors(extents), inputs);
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

/// Wraps a function that returns tensors.
OutputsOf values_of(std::function<Result<std::vector<HostTensor>>(
                        const Problem&, const std::vector<HostTensor>& inputs)>
                        compute) {
  return [compute = std::move(compute)](
             const Problem& problem, const std::vector<ShapedOperand>&,
             const std::vector<HostTensor>& inputs) -> Result<std::vector<std::vector<double>>> {
    const auto tensors = compute(problem, inputs);
    if (!tensors) return tensors.failure();
    std::vector<std::vector<double>> values(tensors->size());
    for (std::size_t t = 0; t < values.size(); ++t) {
      const HostTensor& tensor = (*tensors)[t];
      values[t].resize(tensor.spec.elements());
      for (std::size_t i = 0; i < values[t].size(); ++i) values[t][i] = tensor.at(i);
    }
    return values;
  };
}

Result<std::unique_ptr<Reference>> known_outputs(const OutputsOf& outputs_of,
                                                 const Extents& extents, const Problem& problem,
                                                 const std::vector<HostTensor>& inputs) {
  const std::vector<ShapedOperand> operands = shaped(extents);
  auto outputs = outputs_of(problem, operands, inputs);
  if (!outputs) return outputs.failure();
  std::vector<TensorSpec> written;
  for (const ShapedOperand& operand : operands) {
    if (operand.spec.role != Role::input) written.push_back(operand.spec);
  }
  bool whole = outputs->size() == written.size();
  for (std::size_t t = 0; whole && t < written.size(); ++t) {
    whole = (*outputs)[t].size() == written[t].elements();
  }
  if (!whole) return invalid_argument("the reference does not have the elements of the outputs");
  return std::unique_ptr<Reference>(std::make_unique<KnownOutputs>(
      std::move(written), *std::move(outputs), extents.shared->description.reference.tolerance));
}

/// Returns what computes the outputs, unless a function is given.
OutputsOf described_outputs(const std::shared_ptr<const Shared>& shared, std::string text,
                            ReferenceDevice device) {
  if (shared->description.reference.kind == DescribedReference::Kind::golden) {
    return values_of([shared](const Problem& problem, const std::vector<HostTensor>&) {
      return golden_outputs(extents_of(shared, problem));
    });
  }
  return values_of([shared, text = std::move(text), device = std::move(device)](
                       const Problem& problem, const std::vector<HostTensor>& inputs) {
    return naive_outputs(extents_of(shared, problem), text, device, inputs);
  });
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
    return invalid_argument(
        fmt::format("{} has no reference, so its results cannot be verified", description.name));
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
  for (const std::string& name : checked.reference.golden) {
    if (files.count(name) == 0)
      return invalid_argument(fmt::format("the file {} is missing", name));
  }
  auto text = text_of(checked.reference.sources, files);
  if (!text) return text.failure();
  const auto shared = std::make_shared<const Shared>(Shared{checked, {}, files});
  OutputsOf outputs =
      given ? given->outputs : described_outputs(shared, *std::move(text), std::move(device));
  return make_described(
      checked, files,
      [shared, outputs = std::move(outputs)](
          const Problem& problem, const std::vector<HostTensor>& inputs, std::uint64_t /*seed*/) {
        return known_outputs(outputs, extents_of(shared, problem), problem, inputs).value();
      });
}

}  // namespace greta::kernels
