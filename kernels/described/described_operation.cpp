#include "kernels/described/described_operation.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/described/described_extents.hpp"
#include "kernels/described/source_text.hpp"
#include "runtime/device/text/hash.hpp"

namespace greta::kernels {
namespace described {
namespace {

Work work(const Extents& extents) {
  const Description& d = extents.shared->description;
  const auto number = [&](const Formula& formula) {
    const auto value = evaluate(extents, formula, nullptr);
    return value && value->is_number() ? value->real() : 0.0;
  };
  Work work{number(d.flops), number(d.bytes)};
  if (d.tells_bytes) return work;
  for (const TensorSpec& spec : tensors(extents)) {
    const double bytes = bytes_of(spec.dtype, static_cast<double>(spec.elements()));
    work.bytes += spec.role == Role::input_output ? 2 * bytes : bytes;
  }
  return work;
}

DType first_type(const Description& d, bool input) {
  for (const DescribedOperand& o : d.operands) {
    if ((o.role == Role::input) == input) return o.dtype;
  }
  return d.operands.front().dtype;
}

std::shared_ptr<const ValueWords> words_of(const std::vector<DescribedParameter>& parameters) {
  ValueWords words;
  for (const DescribedParameter& p : parameters) {
    if (p.values.front().word() == nullptr) continue;
    for (const FormulaValue& value : p.values) words[p.name].push_back(*value.word());
  }
  return words.empty() ? nullptr : std::make_shared<const ValueWords>(std::move(words));
}

/// Adds what the launches of a configuration depend on beside the sources.
void add_launches(Hash& hash, const Description& d) {
  const auto add_all = [&](const auto& formulas) {
    for (const Formula& formula : formulas) hash.add(formula.text());
  };
  for (const DescribedLaunch& launch : d.launches) {
    hash.add(launch.entry);
    add_all(launch.grid);
    add_all(launch.workgroup);
    hash.add(launch.shared_bytes.text());
    for (const std::string& argument : launch.arguments) hash.add(argument);
  }
  for (const DescribedScalar& scalar : d.scalars) {
    hash.add(scalar.name).add(static_cast<std::uint64_t>(scalar.type)).add(scalar.value.text());
  }
  for (const DescribedOperand& operand : d.operands) {
    hash.add(operand.name).add(to_string(operand.dtype)).add(operand.constant);
    add_all(operand.shape);
  }
  for (const std::string& option : d.options) hash.add(option);
  hash.add(d.workspace_bytes.text());
}

/// Copies a file that the description names.
Result<void> keep_file(Shared& shared, const DescribedFiles& files, const std::string& name) {
  const auto file = files.find(name);
  if (file == files.end()) return invalid_argument(fmt::format("the file {} is missing", name));
  shared.files.insert(*file);
  return {};
}

}  // namespace

Result<std::shared_ptr<const Shared>> shared_of(Description of, const DescribedFiles& files) {
  auto shared = std::make_shared<Shared>();
  shared->description = std::move(of);
  const Description& description = shared->description;
  const FindSource find = [&](const std::string& name) {
    const auto file = files.find(name);
    return file == files.end() ? nullptr : &file->second;
  };
  const auto text_of = [&](const std::vector<std::string>& sources, SourceLanguage language) {
    return whole_text(sources, description.include_folders, find, language);
  };
  const DescribedReference& reference = description.reference;
  auto text = text_of(description.sources, description.language);
  if (!text) return text.failure();
  auto reference_text = text_of(reference.sources, reference.language);
  if (!reference_text) return reference_text.failure();
  shared->text = *std::move(text);
  shared->reference_text = *std::move(reference_text);
  for (const DescribedOperand& operand : description.operands) {
    if (operand.fill.kind != OperandFill::Kind::file) continue;
    if (auto kept = keep_file(*shared, files, operand.fill.file); !kept) return kept.failure();
  }
  for (const std::string& name : reference.golden) {
    if (auto kept = keep_file(*shared, files, name); !kept) return kept.failure();
  }
  shared->words = words_of(description.parameters);
  return std::shared_ptr<const Shared>(std::move(shared));
}

Operation operation_of(const std::shared_ptr<const Shared>& shared) {
  const Description& description = shared->description;
  Hash hash;
  hash.add(shared->text);
  for (const auto& [name, content] : shared->files) hash.add(name).add(content);
  add_launches(hash, description);
  if (shared->words != nullptr) {  // stored configurations have their numbers
    for (const auto& [name, words] : *shared->words) {
      hash.add(name);
      for (const std::string& word : words) hash.add(word);
    }
  }
  Operation operation;
  operation.name = description.name;
  operation.summary =
      description.summary.empty() ? "a kernel of a description" : description.summary;
  const Tolerance& tolerance = description.reference.tolerance;
  operation.bound = fmt::format("{} + {} of the reference, {} units in the last place",
                                tolerance.absolute, tolerance.relative, tolerance.ulp);
  TypicalSize size;
  for (const DescribedDimension& d : description.dimensions) {
    operation.dimensions.push_back({.name = d.name,
                                    .help = d.help,
                                    .least = d.least,
                                    .most = d.most,
                                    .fallback = d.fallback ? std::to_string(*d.fallback) : "",
                                    .examples = d.examples});
    size.extents.push_back(d.fallback.value_or(d.examples.empty() ? d.least : d.examples.back()));
  }
  const DescribedReference& reference = description.reference;
  operation.checks = {.small = reference.small,
                      .odd = std::min<std::size_t>(reference.small, 2),
                      .inputs = reference.inputs};
  operation.dtypes = {{first_type(description, true), first_type(description, false)}};
  operation.sizes = {std::move(size)};
  operation.variants = {variant()};
  operation.variants.front().unordered = description.unordered;
  operation.sources_key = hash.hex();
  const auto of = [shared](const Problem& problem) { return extents_of(shared, problem); };
  operation.shape = [of](const Problem& problem) { return ProblemShape(of(problem)); };
  operation.check = [of](const Problem& problem) { return described::check(of(problem)); };
  operation.work = [of](const Problem& problem) { return described::work(of(problem)); };
  operation.tensors = [of](const Problem& problem) { return described::tensors(of(problem)); };
  operation.input = [shared](const Problem&, const TensorSpec& spec, std::uint64_t seed) {
    return described::input(*shared, spec, seed);
  };
  operation.harden = [shared](const Problem&, std::vector<HostTensor>& inputs, std::uint64_t seed) {
    described::harden(*shared, inputs, seed);
  };
  operation.stand_in = [](const Problem& problem, double) { return problem; };
  return operation;
}

}  // namespace described

Result<Operation> make_described(const Description& description, const DescribedFiles& files,
                                 std::function<std::unique_ptr<Reference>(
                                     const Problem&, const std::vector<HostTensor>&, std::uint64_t)>
                                     reference) {
  const auto shared = described::shared_of(description, files);
  if (!shared) return shared.failure();
  Operation operation = described::operation_of(*shared);
  operation.reference = std::move(reference);
  return operation;
}

}  // namespace greta::kernels
