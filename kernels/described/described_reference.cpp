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
  KnownOutputs(std::vector<HostTensor> outputs, const Tolerance& tolerance)
      : outputs_(std::move(outputs)), tolerance_(tolerance) {}

  Verdict check(const std::vector<HostTensor>& outputs) const override {
    Verdict verdict{.passed = true, .method = "full", .detail = {}};
    for (std::size_t t = 0; t < outputs_.size(); ++t) {
      for (std::size_t i = 0; i < outputs_[t].spec.elements(); ++i) {
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
                                                      outputs_[t].spec.name, i, got, known.value)};
        if (!one.passed) return one;
        if (one.ratio() > verdict.ratio()) verdict = one;
      }
    }
    return verdict;
  }

  std::optional<std::vector<std::vector<Expected>>> expected() const override {
    std::vector<std::vector<Expected>> all(outputs_.size());
    for (std::size_t t = 0; t < outputs_.size(); ++t) {
      for (std::size_t i = 0; i < outputs_[t].spec.elements(); ++i) {
        all[t].push_back(expected_at(t, i));
      }
    }
    return all;
  }

 private:
  Expected expected_at(std::size_t tensor, std::size_t index) const {
    const double value = outputs_[tensor].at(index);
    const double relative = std::isfinite(value) ? tolerance_.relative * std::abs(value) : 0;
    return {value, tolerance_.absolute + relative +
                       tolerance_.ulp * last_place(outputs_[tensor].spec.dtype, value)};
  }

  std::vector<HostTensor> outputs_;
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

}  // namespace
}  // namespace described

Result<Operation> make_verified(const Description& description, const DescribedFiles& files,
                                ReferenceDevice device) {
  using namespace described;
  const DescribedReference& reference = description.reference;
  const bool golden = reference.kind == DescribedReference::Kind::golden;
  if (!golden && reference.launches.empty()) {
    return invalid_argument(
        fmt::format("{} has no reference, so its results cannot be verified", description.name));
  }
  auto shared = std::make_shared<Shared>(Shared{description, {}, files});
  for (const std::string& name : reference.golden) {
    if (files.count(name) == 0)
      return invalid_argument(fmt::format("the file {} is missing", name));
  }
  const auto text = text_of(reference.sources, files);
  if (!text) return text.failure();
  return make_described(
      description, files,
      [shared, text = *text, device = std::move(device), golden](
          const Problem& problem, const std::vector<HostTensor>& inputs, std::uint64_t /*seed*/) {
        const Extents extents = extents_of(shared, problem);
        auto outputs =
            golden ? golden_outputs(extents) : naive_outputs(extents, text, device, inputs);
        if (!outputs) throw Error(outputs.failure());
        return std::make_unique<KnownOutputs>(*std::move(outputs),
                                              shared->description.reference.tolerance);
      });
}

}  // namespace greta::kernels
