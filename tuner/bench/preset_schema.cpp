#include <algorithm>
#include <nlohmann/json.hpp>

#include "kernels/catalog.hpp"
#include "kernels/model/problem_rules.hpp"
#include "tuner/bench/benchmark_names.hpp"
#include "tuner/bench/preset.hpp"

namespace greta::tuner {
namespace {

using nlohmann::ordered_json;

ordered_json one_or_list(const ordered_json& value) {
  return {{"anyOf", {value, {{"type", "array"}, {"minItems", 1}, {"items", value}}}}};
}

ordered_json type_names(const Operation& operation, bool of_output) {
  ordered_json names = ordered_json::array();
  for (const DTypes& pair : operation.dtypes) {
    const ordered_json name = to_string(of_output ? pair.out : pair.in);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return {{"enum", names}};
}

/// Numbers may be written as numbers, or as strings.
ordered_json attribute_schema(const Attribute& attribute) {
  ordered_json schema{{"description", attribute.help + ": " + values_text(attribute)}};
  if (attribute.allowed.empty()) {
    schema["type"] = {"string", "number"};
    return schema;
  }
  schema["enum"] = attribute.allowed;
  for (const std::string& value : attribute.allowed) {
    const auto number = ordered_json::parse(value, nullptr, false);
    if (number.is_number()) schema["enum"].push_back(number);
  }
  return schema;
}

ordered_json text(const std::string& description) {
  return {{"description", description}, {"type", "string"}};
}

ordered_json names_schema(const std::string& description, const std::vector<std::string>& names) {
  const ordered_json list{{"type", "array"}, {"uniqueItems", true}, {"items", {{"enum", names}}}};
  return {{"description", description}, {"anyOf", {{{"const", "all"}}, list}}};
}

ordered_json operation_schema(const Operation& operation) {
  ordered_json properties{{"op", {{"const", operation.name}}}};
  ordered_json required = ordered_json::array({"op"});
  for (const auto& dimension : operation.dimensions) {
    properties[dimension.name] = one_or_list({{"type", "integer"},
                                              {"minimum", dimension.least},
                                              {"maximum", dimension.most},
                                              {"description", dimension.help}});
    if (dimension.fallback.empty()) required.push_back(dimension.name);
  }
  properties["dtype"] = one_or_list(type_names(operation, false));
  properties["out_dtype"] = one_or_list(type_names(operation, true));
  for (const auto& attribute : operation.attributes) {
    properties[attribute.name] = one_or_list(attribute_schema(attribute));
  }
  if (const auto& other = operation.notation) {
    properties[other->name] =
        one_or_list({{"enum", {other->usual, other->value}}, {"description", other->help}});
  }
  properties["config"] =
      one_or_list(text("A configuration that greta-bench measures, as reports print it"));
  properties["variants"] = names_schema(
      "Variants whose best known configurations greta-bench measures", operation.variant_names());
  ordered_json gate = text(
      "A limit, by which greta-bench judges the configuration: us <= 40, tflops >= 1.2, gbps >= "
      "500, roofline >= 60 %, error <= 50 %, >= 1.1x default, >= 2x VARIANT, >= 10x "
      "vulkan:FILE.csv; each may end with: on DEVICE");
  gate["pattern"] = gate_pattern();
  properties["expect"] = one_or_list(gate);
  if (operation.parts) {
    properties["parts"] = {{"type", "boolean"},
                           {"description",
                            "Whether greta-bench also measures the operations that "
                            "compute the same one after the other"}};
  }
  return {{"description", operation.summary},
          {"properties", properties},
          {"required", required},
          {"additionalProperties", false}};
}

ordered_json problems_schema(const Catalog& catalog) {
  ordered_json names = ordered_json::array();
  ordered_json cases = ordered_json::array();
  for (const Operation& operation : catalog) {
    names.push_back(operation.name);
    cases.push_back({{"if", {{"properties", {{"op", {{"const", operation.name}}}}}}},
                     {"then", {{"$ref", "#/$defs/" + operation.name}}}});
  }
  return {{"description",
           "Problems to tune or benchmark; a list as a value stands for each of its elements"},
          {"type", "array"},
          {"items",
           {{"type", "object"},
            {"properties", {{"op", {{"enum", names}}}}},
            {"required", ordered_json::array({"op"})},
            {"allOf", cases}}}};
}

ordered_json whole(const std::string& description, int least, int most) {
  return {{"description", description}, {"type", "integer"}, {"minimum", least}, {"maximum", most}};
}

}  // namespace

std::string preset_schema(const Catalog& catalog) {
  ordered_json budget = text("Tuning budget of each problem: 60s, 500 (trials) or 5%");
  budget["pattern"] = "^[0-9.]+(s|m|h|%)?$";
  ordered_json schema{
      {"$schema", "https://json-schema.org/draft/2020-12/schema"},
      {"title", "GRETA preset"},
      {"type", "object"},
      {"properties",
       {{"$schema", text("Where this schema is, for editors")},
        {"name", text("The file's name without .json")},
        {"summary", text("One line of description")},
        {"budget", budget},
        {"iterations", whole("Blocks of samples of each benchmark", 1, 10'000)},
        {"batch", whole("Samples in a block", 1, 10'000)},
        {"repeat", whole("Number of runs", 1, 10'000)},
        {"measure",
         {{"description", "false: kernels are checked and not timed"}, {"type", "boolean"}}},
        {"random", whole("Random configurations of each operation to check", 0, 100'000)},
        {"checks", names_schema("Health checks of the device", names_of(check_names()))},
        {"platform", names_schema("Limits of the machine to measure", names_of(platform_names()))},
        {"runtime", names_schema("Costs of the runtime to measure", names_of(runtime_names()))},
        {"problems", problems_schema(catalog)}}},
      {"additionalProperties", false},
      {"$defs", ordered_json::object()}};
  for (const Operation& operation : catalog) {
    schema["$defs"][operation.name] = operation_schema(operation);
  }
  return schema.dump(2) + "\n";
}

}  // namespace greta::tuner
