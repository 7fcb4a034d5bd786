#include "kernels/model/operation.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>
#include <utility>

#include "kernels/model/embedded.hpp"
#include "kernels/model/first_valid.hpp"
#include "runtime/device/text/hash.hpp"

namespace greta::kernels {
namespace {

bool can_run(const Operation& operation, const Problem& problem, const DeviceInfo& device) {
  if (operation.check && !operation.check(problem)) return false;
  return operation.space(problem, device).count() > 0;
}

/// If a dimension with a small range prevents the problem from running, returns the nearest extents
/// below and above it that could run, as the end of a message.
std::string what_could_run(const Operation& operation, const Problem& problem,
                           const DeviceInfo& device) {
  for (std::size_t i = 0; i < problem.dims.size(); ++i) {
    const Dimension& dimension = operation.dimensions[i];
    if (dimension.most - dimension.least > 1024) continue;
    std::vector<std::int64_t> found;
    for (const int step : {-1, 1}) {
      Problem other = problem;
      std::int64_t& extent = other.dims.at(i).second;
      do extent += step;
      while (extent >= dimension.least && extent <= dimension.most &&
             !can_run(operation, other, device));
      if (extent >= dimension.least && extent <= dimension.most) found.push_back(extent);
    }
    if (found.empty()) continue;
    return fmt::format("; {} {} would", dimension.name, fmt::join(found, " or "));
  }
  return {};
}

/// Adds a file of kernels/templates and, recursively, all files that it includes.
void add_with_includes(std::string_view path, std::set<std::string_view>& files) {
  if (!files.insert(path).second) return;
  std::string_view text = embedded_file(path);
  while (!text.empty()) {
    const std::string_view included = included_file(take_line(text));
    if (!included.empty()) add_with_includes(included, files);
  }
}

}  // namespace

Dimension run_time_rows(std::string help) {
  return {.name = "rows", .help = std::move(help), .at_run_time = RunTimeExtent{}};
}

Dimension run_time_tokens(std::string help) {
  return {.name = "tokens", .help = std::move(help), .at_run_time = RunTimeExtent{}};
}

std::vector<DTypes> converted_dtypes() {
  std::vector<DTypes> pairs;
  for (const DType type : converted_types()) pairs.push_back({type, type});
  for (const DType type : narrow_types()) pairs.push_back({type, DType::f32});
  for (const DType type : narrow_types()) pairs.push_back({DType::f32, type});
  return pairs;
}

bool has_vendor(const Operation& operation) {
  return std::any_of(operation.variants.begin(), operation.variants.end(),
                     [](const Variant& variant) { return variant.name == vendor_variant; });
}

std::string vendor_library(const Operation& operation, const DeviceInfo& device) {
  return has_vendor(operation) ? device.*operation.variant(vendor_variant).library : std::string();
}

std::vector<Alternative> Instance::alternatives() const {
  std::vector<Alternative> list;
  for (const Variant& variant : operation_.variants) {
    if (variant.name != vendor_variant) list.push_back(alternative(variant));
  }
  return list;
}

const Alternative& Instance::alternative(const Variant& variant) const {
  const auto found = made_.find(variant.name);
  if (found != made_.end()) return found->second;
  return made_.emplace(variant.name, variant.space(shape_, device_)).first->second;
}

Result<MigratedConfig> Instance::migrate(const Config& stored) const {
  const auto was_called = [&](const ConfigMigration& step) {
    return step.kind == ConfigMigration::Kind::variant_renamed && step.name == stored.variant;
  };
  const auto& variants = operation_.variants;
  auto found = std::find_if(variants.begin(), variants.end(),
                            [&](const Variant& one) { return one.name == stored.variant; });
  if (found == variants.end()) {
    found = std::find_if(variants.begin(), variants.end(), [&](const Variant& one) {
      return std::any_of(one.migrations.begin(), one.migrations.end(), was_called);
    });
  }
  if (found == variants.end()) {
    return Failure{Status::constraints,
                   fmt::format("\"{}\" can't be carried over: {} has no variant {} any more",
                               stored.text(), operation_.name, stored.variant),
                   {}};
  }
  return migrated(alternative(*found), found->migrations, shape_, device_, stored);
}

std::optional<std::string> Instance::rejects(const Config& config) const {
  for (const Variant& variant : operation_.variants) {
    if (variant.name == config.variant) return kernels::rejects(alternative(variant), config);
  }
  return kernels::rejects(alternatives(), config);  // the message lists the variants
}

Result<LaunchPlan> Instance::plan(const Config& config) const {
  if (const auto broken = rejects(config)) return Failure{Status::constraints, *broken, {}};
  return operation_.variant(config.variant).plan(shape_, device_, config);
}

KernelWork Instance::work(const Config& config) const {
  const Variant& variant = operation_.variant(config.variant);
  return variant.work ? variant.work(shape_, device_, config) : KernelWork{};
}

std::optional<Config> Instance::untuned(std::string& rejected) const {
  for (const Variant& variant : operation_.variants) {
    for (const Config& config : variant.defaults(shape_, device_)) {
      const auto broken = rejects(config);
      if (!broken) return config;
      if (rejected.empty()) rejected = *broken;
    }
  }
  return std::nullopt;
}

Space Operation::space(const Problem& problem, const DeviceInfo& device) const {
  return Space(Instance(*this, problem, device).alternatives());
}

Config Operation::default_config(const Problem& problem, const DeviceInfo& device) const {
  const Instance instance(*this, problem, device);
  std::string rejected;
  if (auto config = instance.untuned(rejected)) return *std::move(config);
  const auto choices = instance.alternatives();
  for (const Alternative& choice : choices) {
    if (auto config = first_valid(choice)) return *std::move(config);
  }
  const std::string reasons = why_empty(choices);
  throw Error(Failure{
      Status::constraints,
      fmt::format("{} can't run on {}: {}{}", problem.key(), device.name,
                  reasons.empty() ? rejected : reasons, what_could_run(*this, problem, device)),
      {}});
}

Result<LaunchPlan> Operation::plan(const Problem& problem, const DeviceInfo& device,
                                   const Config& config) const {
  return Instance(*this, problem, device).plan(config);
}

namespace {

void make_finite(HostTensor& tensor) {
  if (!is_floating(tensor.spec.dtype)) return;
  for (std::size_t i = 0; i < tensor.spec.elements(); ++i) {
    if (!std::isfinite(tensor.at(i))) store_element(tensor.spec.dtype, tensor.data.data(), i, 0);
  }
}

}  // namespace

std::int64_t InputSeed::part_of(std::string_view extent) const {
  const auto found = std::find_if(divisions.begin(), divisions.end(),
                                  [&](const Division& one) { return one.name == extent; });
  return found == divisions.end() ? 1 : found->part;
}

std::vector<HostTensor> Operation::inputs(const Problem& problem, const InputSeed& seed,
                                          InputStyle style) const {
  const auto own_seed = [&](const TensorSpec& spec) {
    return Hash().add(seed.number).add(spec.name).low();
  };
  std::vector<HostTensor> contents;
  std::vector<TensorSpec> places;
  for (const TensorSpec& operand : tensors(problem)) {
    if (operand.role == Role::output) continue;
    places.push_back(operand);
    const TensorSpec spec = packed(operand);
    const std::uint64_t own = own_seed(spec);
    contents.push_back(input ? input(problem, spec, own) : random_tensor(spec, own));
  }
  if (style != InputStyle::plain) {
    if (harden) {
      harden(problem, contents, seed);
    } else {
      for (HostTensor& tensor : contents) {
        mix_in_adversarial_rows(tensor, magnitudes_of(tensor.spec.dtype), own_seed(tensor.spec));
        mix_in_special_values(tensor, own_seed(tensor.spec));
      }
    }
  }
  if (style == InputStyle::finite) {
    for (HostTensor& tensor : contents) make_finite(tensor);
  }
  for (std::size_t i = 0; i < contents.size(); ++i)
    contents[i] = placed(std::move(contents[i]), places[i]);
  return contents;
}

std::string Notation::exchanged(const std::string& field) const {
  for (const auto& [one, other] : pairs) {
    if (field == one) return other;
    if (field == other) return one;
  }
  return field;
}

std::vector<std::string> Operation::variant_names() const {
  std::vector<std::string> names;
  for (const Variant& one : variants) names.push_back(one.name);
  return names;
}

const Variant& Operation::variant(std::string_view named) const {
  const auto found = std::find_if(variants.begin(), variants.end(),
                                  [&](const Variant& one) { return one.name == named; });
  if (found == variants.end()) throw Error(fmt::format("{} has no variant {}", name, named));
  return *found;
}

std::set<std::string_view> Operation::sources() const {
  std::set<std::string_view> files;
  for (const EmbeddedFile& file : embedded_files()) {
    if (file.path.starts_with(name + "/")) add_with_includes(file.path, files);
  }
  return files;
}

std::string Operation::key() const {
  if (!sources_key.empty()) return sources_key;
  Hash hash;
  for (const std::string_view file : sources()) hash.add(file).add(embedded_file(file));
  return hash.hex();
}

Problem shorter(Problem problem, std::string_view dimension, std::int64_t step, double fraction) {
  std::int64_t& extent = problem.extent(dimension);
  const std::int64_t rest = extent % step, steps = extent / step;
  const auto wanted =
      static_cast<std::int64_t>(std::llround(fraction * static_cast<double>(steps)));
  extent = std::clamp<std::int64_t>(wanted, std::min<std::int64_t>(1, steps), steps) * step + rest;
  return problem;
}

Problem fewer_rows(const Problem& problem, double fraction) {
  return shorter(problem, "rows", 64, fraction);
}

Problem fewer_tokens(const Problem& problem, double fraction) {
  return shorter(problem, "tokens", 16, fraction);
}

}  // namespace greta::kernels
