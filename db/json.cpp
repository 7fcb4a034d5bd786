#include "db/json.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include "db/enum_text.hpp"

namespace greta::db {
namespace {

using Json = nlohmann::json;

/// Drivers and compilers may write any bytes, but JSON is UTF-8. Everything else becomes U+FFFD.
Json from_text(const std::string& text) {
  return Json::parse(Json(text).dump(-1, ' ', false, Json::error_handler_t::replace));
}

/// Reads the fields of one object, and reports which one is missing or of the wrong type.
class Reader {
 public:
  Reader(const Json& json, std::string_view what) : json_(json), what_(what) {
    if (!json.is_object()) throw Error(fmt::format("{}: not a JSON object", what));
  }

  const Json& at(const char* name) const {
    const auto found = json_.find(name);
    if (found == json_.end()) throw wrong(name, "is missing");
    return *found;
  }
  const Json& array(const char* name) const {
    if (!at(name).is_array()) throw wrong(name, "is not an array");
    return at(name);
  }
  std::string text(const char* name) const {
    if (!at(name).is_string()) throw wrong(name, "is not a string");
    return at(name).get<std::string>();
  }
  bool boolean(const char* name) const {
    if (!at(name).is_boolean()) throw wrong(name, "is not true or false");
    return at(name).get<bool>();
  }
  double number(const char* name) const {
    return number_from_json(at(name), fmt::format("{}: {}", what_, name));
  }
  template <typename Integer>
  Integer integer(const char* name) const {
    return integer<Integer>(at(name), name);
  }
  template <typename Integer>
  Integer integer(const Json& value, const char* name) const {
    if (value.is_number_unsigned() && std::in_range<Integer>(value.get<std::uint64_t>())) {
      return static_cast<Integer>(value.get<std::uint64_t>());
    }
    if (value.is_number_integer() && !value.is_number_unsigned() &&
        std::in_range<Integer>(value.get<std::int64_t>())) {
      return static_cast<Integer>(value.get<std::int64_t>());
    }
    throw wrong(name, "is not an integer in the valid range");
  }
  std::array<std::uint32_t, 3> triple(const char* name) const {
    if (array(name).size() != 3) throw wrong(name, "does not have three elements");
    std::array<std::uint32_t, 3> values{};
    for (std::size_t i = 0; i < 3; ++i) values[i] = integer<std::uint32_t>(at(name)[i], name);
    return values;
  }

  Error wrong(const char* name, std::string_view problem) const {
    return Error(fmt::format("{}: {} {}", what_, name, problem));
  }

 private:
  const Json& json_;
  std::string_view what_;
};

/// The value that a function finds for a field's text.
template <typename Value>
Value named(const Reader& reader, const char* name,
            std::optional<Value> (*from_string)(std::string_view)) {
  const auto value = from_string(reader.text(name));
  if (!value) throw reader.wrong(name, "is unknown");
  return *value;
}

DeviceKind kind_from_text(const Reader& reader) {
  const auto text = reader.text("kind");
  for (const auto kind : {DeviceKind::discrete_gpu, DeviceKind::integrated_gpu,
                          DeviceKind::virtual_gpu, DeviceKind::cpu}) {
    if (text == to_string(kind)) return kind;
  }
  throw reader.wrong("kind", "is unknown");
}

/// Calls `field(name, member)` for every statistic of a kernel, for reading and for writing.
template <typename Statistics, typename Field>
void for_each_figure(Statistics& statistics, const Field& field) {
  field("registers", statistics.registers);
  field("accumulator_registers", statistics.accumulator_registers);
  field("scalar_registers", statistics.scalar_registers);
  field("shared_memory_bytes", statistics.shared_memory_bytes);
  field("scratch_bytes", statistics.scratch_bytes);
  field("spilled_registers", statistics.spilled_registers);
  field("spilled_scalar_registers", statistics.spilled_scalar_registers);
  field("code_bytes", statistics.code_bytes);
  field("matrix_instructions", statistics.matrix_instructions);
  field("subgroups_per_simd", statistics.subgroups_per_simd);
  field("latency", statistics.latency);
  field("inverse_throughput", statistics.inverse_throughput);
}

/// Calls `field(name, member)` for every stored field of a device, for reading and for writing.
template <typename Device, typename Field>
void for_each_field(Device& device, const Field& field) {
  field("backend", device.backend);
  field("language", device.language);
  field("index", device.index);
  field("name", device.name);
  field("vendor", device.vendor);
  field("architecture", device.architecture);
  field("driver", device.driver);
  field("compiler", device.compiler);
  field("matrix_library", device.matrix_library);
  field("attention_library", device.attention_library);
  field("kind", device.kind);
  field("uuid", device.card.uuid);
  field("pci_address", device.card.pci_address);
  field("max_workgroup_invocations", device.max_workgroup_invocations);
  field("max_workgroup_size", device.max_workgroup_size);
  field("max_grid", device.max_grid);
  field("shared_memory_bytes", device.shared_memory_bytes);
  field("subgroup_size", device.subgroup_size);
  field("min_subgroup_size", device.min_subgroup_size);
  field("max_subgroup_size", device.max_subgroup_size);
  field("max_argument_bytes", device.max_argument_bytes);
  field("compute_units", device.compute_units);
  field("unit_registers", device.unit_registers);
  field("unit_shared_memory_bytes", device.unit_shared_memory_bytes);
  field("unit_threads", device.unit_threads);
  field("memory_bytes", device.memory_bytes);
  field("max_allocation_bytes", device.max_allocation_bytes);
  field("last_level_cache_bytes", device.last_level_cache_bytes);
  field("timestamp_period_ns", device.timestamp_period_ns);
  field("f16_arithmetic", device.f16_arithmetic);
  field("f16_storage", device.f16_storage);
  field("subgroup_size_control", device.subgroup_size_control);
  field("matrix_operations", device.matrix_operations);
  field("unified_memory", device.unified_memory);
}

Json matrix_operations_json(const std::vector<MatrixOperation>& operations) {
  Json list = Json::array();
  for (const auto& operation : operations) {
    list.push_back({{"input", to_string(operation.input)},
                    {"accumulator", to_string(operation.accumulator)},
                    {"m", operation.m},
                    {"n", operation.n},
                    {"k", operation.k}});
  }
  return list;
}

std::vector<MatrixOperation> matrix_operations_from_json(const Json& list) {
  std::vector<MatrixOperation> operations;
  for (const auto& json : list) {
    const Reader reader(json, "device: matrix_operations");
    operations.push_back({named(reader, "input", dtype_from_string),
                          named(reader, "accumulator", dtype_from_string),
                          reader.integer<std::uint32_t>("m"), reader.integer<std::uint32_t>("n"),
                          reader.integer<std::uint32_t>("k")});
  }
  return operations;
}

/// Converts a device's field or a kernel's statistic to JSON.
template <typename Value>
Json form(const Value& value) {
  if constexpr (std::is_same_v<Value, std::string>) {
    return from_text(value);
  } else if constexpr (std::is_enum_v<Value>) {
    return to_string(value);
  } else if constexpr (std::is_same_v<Value, double>) {
    return json_number(value);
  } else if constexpr (std::is_same_v<Value, std::vector<MatrixOperation>>) {
    return matrix_operations_json(value);
  } else {
    return value;
  }
}

/// The inverse, for one field of an object.
template <typename Value>
void read(const Reader& reader, const char* name, Value& value) {
  if constexpr (std::is_same_v<Value, std::string>) {
    value = reader.text(name);
  } else if constexpr (std::is_same_v<Value, DeviceKind>) {
    value = kind_from_text(reader);
  } else if constexpr (std::is_same_v<Value, Api>) {
    value = named(reader, name, api_from_string);
  } else if constexpr (std::is_same_v<Value, Language>) {
    value = named(reader, name, language_from_string);
  } else if constexpr (std::is_same_v<Value, double>) {
    value = reader.number(name);
  } else if constexpr (std::is_same_v<Value, bool>) {
    value = reader.boolean(name);
  } else if constexpr (std::is_integral_v<Value>) {
    value = reader.integer<Value>(name);
  } else if constexpr (std::is_same_v<Value, std::vector<MatrixOperation>>) {
    value = matrix_operations_from_json(reader.array(name));
  } else {
    value = reader.triple(name);
  }
}

}  // namespace

Json to_json(const Config& config) {
  Json values = Json::array();
  for (const auto& [name, value] : config.values) values.push_back({name, value});
  return {{"variant", config.variant}, {"values", values}};
}

Config config_from_json(const Json& json) {
  const Reader reader(json, "config");
  Config config{reader.text("variant"), {}};
  for (const auto& pair : reader.array("values")) {
    if (!pair.is_array() || pair.size() != 2 || !pair[0].is_string()) {
      throw reader.wrong("values", "is not a list of [name, value]");
    }
    config.values.emplace_back(pair[0].get<std::string>(), reader.integer<int>(pair[1], "values"));
  }
  return config;
}

Json to_json(const Verdict& verdict) {
  return {{"passed", verdict.passed},
          {"error", json_number(verdict.error)},
          {"bound", json_number(verdict.bound)},
          {"method", from_text(verdict.method)},
          {"detail", from_text(verdict.detail)}};
}

Json to_json(const std::optional<Determinism>& determinism) {
  if (!determinism) return nullptr;
  return {{"runs", determinism->runs},
          {"busy", determinism->busy},
          {"differing", determinism->differing}};
}

Verdict verdict_from_json(const Json& json) {
  const Reader reader(json, "verdict");
  return {reader.boolean("passed"), reader.number("error"), reader.number("bound"),
          reader.text("method"), reader.text("detail")};
}

Json to_json(const CardState& state) {
  Json object = Json::object();
  if (state.watts) object["watts"] = json_number(*state.watts);
  if (state.celsius) object["celsius"] = json_number(*state.celsius);
  if (!state.throttled.empty()) object["throttled"] = from_text(state.throttled);
  return object;
}

CardState card_state_from_json(const Json& json) {
  const Reader reader(json, "card_state");
  CardState state;
  if (json.contains("watts")) state.watts = reader.number("watts");
  if (json.contains("celsius")) state.celsius = reader.number("celsius");
  if (json.contains("throttled")) state.throttled = reader.text("throttled");
  return state;
}

Json to_json(const Counters& counters) {
  return {{"source", counters.source},
          {"passes", counters.passes},
          {"cold", counters.cold},
          {"figures", counters.figures}};
}

Json to_json(const Measurement& measurement) {
  Json object{{"samples_us", json_numbers(measurement.samples_us)},
              {"median_us", json_number(measurement.median_us)},
              {"low_us", json_number(measurement.low_us)},
              {"high_us", json_number(measurement.high_us)},
              {"p99_us", json_number(measurement.p99_us)},
              {"cold", measurement.cold},
              {"raced", measurement.raced},
              {"batch", measurement.batch},
              {"dropped", measurement.dropped},
              {"flush_bytes", measurement.flush_bytes},
              {"clocks", from_text(measurement.clocks)}};
  if (auto state = to_json(measurement.card_state); !state.empty())
    object["card_state"] = std::move(state);
  return object;
}

Measurement measurement_from_json(const Json& json) {
  const Reader reader(json, "measurement");
  Measurement measurement;
  measurement.samples_us = numbers_from_json(reader.at("samples_us"), "measurement: samples_us");
  measurement.median_us = reader.number("median_us");
  measurement.low_us = reader.number("low_us");
  measurement.high_us = reader.number("high_us");
  measurement.p99_us = reader.number("p99_us");
  measurement.cold = reader.boolean("cold");
  measurement.raced = reader.boolean("raced");
  measurement.batch = reader.integer<int>("batch");
  measurement.dropped = reader.integer<int>("dropped");
  measurement.flush_bytes = reader.integer<std::uint64_t>("flush_bytes");
  measurement.clocks = reader.text("clocks");
  if (json.contains("card_state"))
    measurement.card_state = card_state_from_json(json.at("card_state"));
  return measurement;
}

Json to_json(const std::vector<KernelFigures>& kernels) {
  Json list = Json::array();
  for (const auto& kernel : kernels) {
    Json object{{"name", kernel.name}};
    for_each_figure(kernel.statistics,
                    [&](const char* name, auto figure) { object[name] = form(figure); });
    list.push_back(std::move(object));
  }
  return list;
}

std::vector<KernelFigures> kernels_from_json(const Json& json) {
  if (!json.is_array()) throw Error("kernels: not an array");
  std::vector<KernelFigures> kernels;
  for (const auto& object : json) {
    const Reader reader(object, "kernel");
    KernelFigures kernel{reader.text("name"), {}};
    for_each_figure(kernel.statistics,
                    [&](const char* name, auto& figure) { read(reader, name, figure); });
    kernels.push_back(std::move(kernel));
  }
  return kernels;
}

Json to_json(const Trial& trial) {
  return {{"config", to_json(trial.config)},
          {"status", status_text(trial.failure)},
          {"message", from_text(trial.message)},
          {"log", from_text(trial.log)},
          {"verdict", to_json(trial.verdict)},
          {"measurement", to_json(trial.measurement)},
          {"problem", trial.problem_key},
          {"content_keys", trial.content_keys},
          {"card", from_text(trial.card)},
          {"kernels", to_json(trial.kernels)},
          {"compile_s", json_number(trial.compile_s)},
          {"verify_s", json_number(trial.verify_s)},
          {"measure_s", json_number(trial.measure_s)}};
}

Trial trial_from_json(const Json& json) {
  const Reader reader(json, "trial");
  Trial trial;
  trial.config = config_from_json(reader.at("config"));
  trial.failure = status_from_text(reader.text("status"));
  trial.message = reader.text("message");
  trial.log = reader.text("log");
  trial.verdict = verdict_from_json(reader.at("verdict"));
  trial.measurement = measurement_from_json(reader.at("measurement"));
  trial.problem_key = reader.text("problem");
  trial.content_keys = reader.text("content_keys");
  if (json.contains("card")) trial.card = reader.text("card");
  trial.kernels = kernels_from_json(reader.at("kernels"));
  trial.compile_s = reader.number("compile_s");
  trial.verify_s = reader.number("verify_s");
  trial.measure_s = reader.number("measure_s");
  return trial;
}

Json to_json(const Winner& winner) {
  Json ties = Json::array();
  for (const auto& tie : winner.ties) {
    ties.push_back(
        {{"config", to_json(tie.config)}, {"ratio_to_winner", json_number(tie.ratio_to_winner)}});
  }
  return {{"config", to_json(winner.config)},
          {"is_default", winner.is_default},
          {"median_us", json_number(winner.measurement.median_us)},
          {"low_us", json_number(winner.measurement.low_us)},
          {"high_us", json_number(winner.measurement.high_us)},
          {"default_us", json_number(winner.default_us)},
          {"speedup", json_number(winner.speedup)},
          {"speedup_low", json_number(winner.speedup_low)},
          {"speedup_high", json_number(winner.speedup_high)},
          {"confidence", json_number(winner.confidence)},
          {"rounds", winner.rounds},
          {"measurement", to_json(winner.measurement)},
          {"default_samples_us", json_numbers(winner.default_samples_us)},
          {"roofline", json_number(winner.roofline)},
          {"verdict", to_json(winner.verdict)},
          {"determinism", to_json(determinism_of(winner.verdict))},
          {"kernels", to_json(winner.kernels)},
          {"cold", winner.cold},
          {"ties", ties},
          {"card", from_text(winner.card)}};
}

Json to_json(const DeviceInfo& device) {
  Json object{{"id", device.id()}, {"fingerprint", device.fingerprint()}};
  for_each_field(device, [&](const char* name, const auto& value) { object[name] = form(value); });
  return object;
}

DeviceInfo device_from_json(const Json& json) {
  const Reader reader(json, "device");
  // These identify a device and its kernel language, and must be there.
  for (const char* name : {"backend", "language", "index", "name", "vendor", "architecture",
                           "driver", "compiler", "kind", "uuid", "compute_units"}) {
    reader.at(name);
  }
  DeviceInfo device;
  for_each_field(device, [&](const char* name, auto& value) {
    if (json.contains(name)) read(reader, name, value);
  });
  return device;
}

}  // namespace greta::db
