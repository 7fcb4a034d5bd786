#include "kernels/described/description_json.hpp"

#include <nlohmann/json.hpp>

namespace greta::kernels {
namespace {

using nlohmann::json;

json json_of(const FormulaValue& value) {
  if (const auto* truth = std::get_if<bool>(&value.is)) return *truth;
  if (const std::string* word = value.word()) return *word;
  if (value.is_integer()) return value.integer();
  return value.text();
}

std::string_view role_of(Role role) {
  if (role == Role::input) return "input";
  return role == Role::output ? "output" : "input_output";
}

}  // namespace

std::string description_json(const Description& description, const Operation& operation) {
  json dimensions = json::array(), parameters = json::array(), operands = json::array();
  for (const DescribedDimension& one : description.dimensions) {
    dimensions.push_back({{"name", one.name},
                          {"help", one.help},
                          {"default", one.fallback ? json(*one.fallback) : json()},
                          {"least", one.least},
                          {"most", one.most}});
  }
  for (const DescribedParameter& one : description.parameters) {
    json values = json::array();
    for (const FormulaValue& value : one.values) values.push_back(json_of(value));
    parameters.push_back({{"name", one.name}, {"values", std::move(values)}});
  }
  for (const DescribedOperand& one : description.operands) {
    json shape = json::array();
    for (const Formula& extent : one.shape) shape.push_back(extent.text());
    operands.push_back({{"name", one.name},
                        {"role", role_of(one.role)},
                        {"dtype", to_string(one.dtype)},
                        {"shape", std::move(shape)}});
  }
  return json{{"name", description.name},
              {"summary", operation.summary},
              {"language", to_string(description.language)},
              {"dtype", to_string(operation.dtypes.front().in)},
              {"out", to_string(operation.dtypes.front().out)},
              {"dimensions", std::move(dimensions)},
              {"parameters", std::move(parameters)},
              {"operands", std::move(operands)}}
      .dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace greta::kernels
