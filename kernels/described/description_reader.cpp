#include <fmt/format.h>

#include <array>
#include <limits>

#include "kernels/described/description.hpp"
#include "kernels/described/fields.hpp"
#include "kernels/described/launch_reader.hpp"
#include "kernels/described/rules.hpp"

namespace greta::kernels {
namespace described {
namespace {

constexpr std::size_t most_extents = 4;  // of an operand: tensors of programs have no more
constexpr std::int64_t most_extent = std::numeric_limits<std::int32_t>::max();

/// Reads the parts of a description in an order in which names are known before they are read.
class DescriptionReader {
 public:
  explicit DescriptionReader(const PlacedJson& file) : file_(file) {}

  Description read() {
    constexpr std::array<std::string_view, 22> keys{
        "greta",           "$schema",     "name",      "summary",      "language",
        "source",          "include",     "options",   "entry",        "dimensions",
        "parameters",      "constraints", "defaults",  "operands",     "scalars",
        "arguments",       "grid",        "workgroup", "shared_bytes", "launches",
        "workspace_bytes", "reference"};
    std::vector<std::string_view> all(keys.begin(), keys.end());
    all.insert(all.end(), {"flops", "bytes", "unordered"});
    allow_keys(file_, all);
    read_integer(need(file_, "greta", "the version of this form, 1"), 1, 1);
    d_.name = read_name(need(file_, "name", "the operation's name"));
    if (const auto* summary = file_.find("summary")) d_.summary = read_text(*summary, 200);
    if (const auto* unordered = file_.find("unordered")) {
      if (unordered->truth() == nullptr)
        fail(*unordered, fmt::format("must be true or false, not {}", unordered->kind()));
      d_.unordered = *unordered->truth();
    }
    d_.language = read_language(need(file_, "language", "hip, cuda or glsl"));
    d_.sources = read_sources(need(file_, "source", "the kernel's source file"));
    if (const auto* folders = file_.find("include")) d_.include_folders = read_file_names(*folders);
    if (const auto* options = file_.find("options")) d_.options = read_options(*options);
    read_dimensions(need(file_, "dimensions", "the extents of a problem, such as {\"n\": 1000}"));
    read_parameters(
        need(file_, "parameters", "what is tuned, such as {\"BLOCK\": [64, 128, 256]}"));
    if (const auto* constraints = file_.find("constraints")) read_constraints(*constraints);
    if (const auto* defaults = file_.find("defaults")) read_defaults(*defaults);
    read_operands(need(file_, "operands", "inputs and outputs, in an array"));
    if (const auto* scalars = file_.find("scalars")) read_scalars(*scalars);
    read_workspace();
    const LaunchReader launches(d_, both_, has_workspace_);
    d_.launches = launches.read_launches(file_, d_.language);
    read_work();
    launches.read_reference(
        need(file_, "reference",
             "which results are correct; the shortest is a naive kernel in the same source file, "
             "such as " +
                 shortest_reference()),
        d_.reference);
    return std::move(d_);
  }

 private:
  /// Each name means one thing, as a macro does in sources.
  void claim(const PlacedJson& place, const std::string& name) {
    check_name(place, name);
    check_meaning(place, name);
    if (std::find(claimed_.begin(), claimed_.end(), name) != claimed_.end()) {
      fail(place, fmt::format("the name {} is taken", name));
    }
    claimed_.push_back(name);
  }

  void read_dimensions(const PlacedJson& object) {
    constexpr std::array<std::string_view, 5> keys{"default", "help", "least", "most", "examples"};
    for (const auto& [name, value] : read_object(object)) {
      claim(value, name);
      DescribedDimension dimension{
          .name = name, .help = {}, .most = most_extent, .fallback = {}, .examples = {}};
      if (value.members() == nullptr) {
        dimension.fallback = read_integer(value, 1, most_extent);
      } else {
        allow_keys(value, keys);
        if (const auto* help = value.find("help")) dimension.help = read_text(*help, 200);
        if (const auto* least = value.find("least")) {
          dimension.least = read_integer(*least, 0, most_extent);
        }
        if (const auto* most = value.find("most")) {
          dimension.most = read_integer(*most, dimension.least, most_extent);
        }
        if (const auto* fallback = value.find("default")) {
          dimension.fallback = read_integer(*fallback, dimension.least, dimension.most);
        }
        if (const auto* examples = value.find("examples")) {
          for (const PlacedJson& item : read_array(*examples, 64)) {
            dimension.examples.push_back(read_integer(item, dimension.least, dimension.most));
          }
        }
      }
      check_word_of_problems(value, name);
      d_.dimensions.push_back(std::move(dimension));
      dims_.push_back(name);
    }
    if (d_.dimensions.empty()) fail(object, "has no dimensions");
    both_ = dims_;
  }

  void read_parameters(const PlacedJson& object) {
    for (const auto& [name, value] : read_object(object)) {
      claim(value, name);
      check_macro(value, name);
      d_.parameters.push_back({name, read_values(value)});
      both_.push_back(name);
    }
    if (d_.parameters.size() > 64) fail(object, "has more than 64 parameters");
  }

  void read_constraints(const PlacedJson& array) {
    constexpr std::array<std::string_view, 2> keys{"if", "reason"};
    for (const PlacedJson& item : read_array(array, 256)) {
      allow_keys(item, keys);
      const auto& condition = need(item, "if", "the condition that must hold");
      const auto& reason = need(item, "reason", "why, for whoever meets it");
      d_.constraints.push_back({read_formula(condition, both_), read_text(reason, 200)});
      check_words(condition, d_.constraints.back().condition, d_.parameters);
    }
  }

  void read_defaults(const PlacedJson& value) {
    if (value.items() == nullptr) {
      d_.defaults.push_back(one_default(value));
      return;
    }
    for (const PlacedJson& item : read_array(value, 64)) d_.defaults.push_back(one_default(item));
  }
  std::vector<FormulaValue> one_default(const PlacedJson& object) const {
    std::vector<std::string_view> names;
    for (const DescribedParameter& p : d_.parameters) names.emplace_back(p.name);
    allow_keys(object, names);
    std::vector<FormulaValue> values;
    for (const DescribedParameter& p : d_.parameters) {
      const PlacedJson& value = need(object, p.name, "a default has a value of each parameter");
      const FormulaValue* const found = find_value(p.values, value);
      if (found == nullptr) {
        fail(value, fmt::format("must be one of {}, not {}", FormulaValue{p.values}.text(),
                                value.shown()));
      }
      values.push_back(*found);
    }
    return values;
  }

  void read_operands(const PlacedJson& array) {
    constexpr std::array<std::string_view, 6> keys{"name",  "role", "type",
                                                   "shape", "fill", "constant"};
    constexpr std::array<std::string_view, 3> roles{"input", "output", "input_output"};
    bool written = false;
    for (const PlacedJson& item : read_array(array, 64)) {
      allow_keys(item, keys);
      DescribedOperand operand;
      operand.name = read_text(need(item, "name", "the operand's name"));
      claim(*item.find("name"), operand.name);
      operand.role =
          static_cast<Role>(read_word(need(item, "role", "input, output or input_output"), roles));
      operand.dtype = read_dtype(need(item, "type", "the type of its elements"));
      const PlacedJson& shape = need(item, "shape", "its extents, formulas of dimensions");
      if (shape.items() == nullptr) operand.shape.push_back(read_formula(shape, dims_));
      if (shape.items() != nullptr) {
        for (const PlacedJson& e : read_array(shape, most_extents))
          operand.shape.push_back(read_formula(e, dims_));
        if (operand.shape.empty()) fail(shape, "has no extents");
      }
      if (const auto* fill = item.find("fill")) {
        if (operand.role == Role::output)
          fail(*fill, "an output is filled with NaN before a launch");
        operand.fill = read_fill(*fill);
        check_fill(*fill, operand);
      } else if (!is_floating(operand.dtype)) {
        operand.fill = {.from = 0, .to = 9, .file = {}};
      }
      if (const auto* constant = item.find("constant")) {
        if (operand.role != Role::input) fail(*constant, "only an input lies in constant memory");
        if (d_.language == SourceLanguage::glsl) {
          fail(*constant, "GLSL has no variables in constant memory");
        }
        operand.constant = read_name(*constant);
      }
      written = written || operand.role != Role::input;
      d_.operands.push_back(std::move(operand));
    }
    if (!written) fail(array, "has no output");
  }

  static DType read_dtype(const PlacedJson& value) {
    std::vector<std::string_view> names;
    for (const DTypeTraits& t : dtype_table) names.push_back(t.name);
    return dtype_table[read_word(value, names)].type;
  }

  static OperandFill read_fill(const PlacedJson& value) {
    constexpr std::array<std::string_view, 4> keys{"random", "constant", "ramp", "file"};
    allow_keys(value, keys);
    if (value.members()->size() != 1)
      fail(value, "must have one of random, constant, ramp or file");
    const auto& [key, what] = value.members()->front();
    OperandFill fill;
    if (key == "random") {
      if (read_array(what, 2).size() != 2) fail(what, "must be [from, to]");
      fill.from = read_number(what.items()->at(0));
      fill.to = read_number(what.items()->at(1));
      if (fill.from >= fill.to) fail(what, "must be [from, to] with from < to");
    } else if (key == "constant") {
      fill.kind = OperandFill::Kind::constant;
      fill.from = read_number(what);
    } else if (key == "ramp") {
      fill.kind = OperandFill::Kind::ramp;
      fill.to = static_cast<double>(read_integer(what, 0, most_extent));
    } else {
      fill.kind = OperandFill::Kind::file;
      fill.file = read_file_name(what);
    }
    return fill;
  }

  void read_scalars(const PlacedJson& object) {
    constexpr std::array<std::string_view, 2> keys{"type", "value"};
    constexpr std::array<std::string_view, 6> types{"i32", "u32", "i64", "u64", "f32", "f64"};
    for (const auto& [name, value] : read_object(object)) {
      allow_keys(value, keys);
      DescribedScalar scalar;
      scalar.name = name;
      // A scalar that is a dimension's value may have its name.
      if (std::find(dims_.begin(), dims_.end(), name) == dims_.end()) claim(value, name);
      scalar.type = static_cast<DescribedScalar::Type>(
          read_word(need(value, "type", "i32, u32, i64, u64, f32 or f64"), types));
      if (const auto* formula = value.find("value")) {
        scalar.value = read_formula(*formula, both_);
      } else if (std::find(dims_.begin(), dims_.end(), name) != dims_.end()) {
        scalar.value = *Formula::parse(name);
      } else {
        fail(value, "\"value\" is missing: a formula, except for a dimension");
      }
      d_.scalars.push_back(std::move(scalar));
    }
  }

  void read_workspace() {
    d_.workspace_bytes = Formula::constant({std::int64_t{0}});
    const PlacedJson* const bytes = file_.find("workspace_bytes");
    if (bytes == nullptr) return;
    d_.workspace_bytes = read_formula(*bytes, both_);
    has_workspace_ = true;
  }

  void read_work() {
    d_.flops = d_.bytes = Formula::constant({std::int64_t{0}});
    if (const auto* flops = file_.find("flops")) d_.flops = read_formula(*flops, dims_);
    const PlacedJson* const bytes = file_.find("bytes");
    d_.tells_bytes = bytes != nullptr;
    if (bytes != nullptr) d_.bytes = read_formula(*bytes, dims_);
  }

  const PlacedJson& file_;
  Description d_;
  std::vector<std::string> claimed_, dims_, both_;  // both_: of dimensions and of parameters
  bool has_workspace_ = false;
};

}  // namespace
}  // namespace described

Result<Description> read_description(const PlacedJson& file) {
  return described::caught([&] { return described::DescriptionReader(file).read(); });
}

Result<Description> read_description(std::string_view text, std::string_view reference) {
  const auto file = PlacedJson::parse(text);
  if (!file) return file.failure();
  if (file->find("ConfigurationSpace") == nullptr) return read_description(*file);
  if (reference.empty()) return read_t1(*file);
  const auto object = PlacedJson::parse(reference);
  if (!object) return object.failure();
  return read_t1(*file, &*object);
}

}  // namespace greta::kernels
