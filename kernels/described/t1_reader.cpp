#include <array>
#include <limits>

#include "kernels/described/description.hpp"
#include "kernels/described/fields.hpp"
#include "kernels/described/launch_reader.hpp"

namespace greta::kernels {
namespace described {
namespace {

constexpr std::array<std::string_view, 3> axes{"X", "Y", "Z"};
constexpr std::array<std::string_view, 3> extents{"problem_size_x", "problem_size_y",
                                                  "problem_size_z"};

/// Reads a description in the form T1. Keys that mean nothing to a kernel, such as General, are
/// read over.
class T1Reader {
 public:
  T1Reader(const PlacedJson& file, const PlacedJson* reference)
      : file_(file), reference_(reference) {}

  Description read() {
    const PlacedJson& space = need(file_, "ConfigurationSpace", "the tunable parameters");
    const PlacedJson& kernel = need(file_, "KernelSpecification", "the kernel");
    d_.name = read_name(need(kernel, "KernelName", "the name of the kernel's function"));
    d_.language = language(need(kernel, "Language", "CUDA, HIP or GLSL"));
    d_.sources = read_file_names(need(kernel, "KernelFile", "the kernel's source file"));
    if (const auto* options = kernel.find("CompilerOptions")) d_.options = read_options(*options);
    read_problem_size(need(kernel, "ProblemSize", "up to three extents"));
    read_parameters(space);
    read_conditions(space);
    read_arguments(need(kernel, "Arguments", "the kernel's arguments in an array"));
    read_launch(kernel);
    d_.options.emplace_back("-Dkernel_tuner=1");
    read_tolerance(kernel);
    const PlacedJson* const reference =
        reference_ != nullptr ? reference_ : file_.find("reference");
    if (reference != nullptr) {
      d_.reference.kind = DescribedReference::Kind::kernel;
      LaunchReader(d_, formula_names(), false).read_reference(*reference, d_.reference);
    }
    return std::move(d_);
  }

 private:
  static SourceLanguage language(const PlacedJson& value) {
    constexpr std::array<std::string_view, 6> words{"HIP", "CUDA", "GLSL", "hip", "cuda", "glsl"};
    if (value.text() != nullptr && *value.text() == "OpenCL") {
      fail(value, "OpenCL has no backend here; CUDA, HIP and GLSL have");
    }
    return static_cast<SourceLanguage>(read_word(value, words) % 3);
  }

  void read_problem_size(const PlacedJson& value) {
    const auto& items = read_array(value, 3);
    if (items.empty()) fail(value, "has no extents");
    for (std::size_t i = 0; i < items.size(); ++i) {
      DescribedDimension dimension{.name = std::string(extents[i]),
                                   .help = fmt::format("ProblemSize[{}]", i),
                                   .most = std::numeric_limits<std::int32_t>::max(),
                                   .fallback = {},
                                   .examples = {}};
      dimension.fallback = read_integer(items[i], 1, dimension.most);
      names_.push_back(dimension.name);
      d_.dimensions.push_back(std::move(dimension));
    }
  }

  void read_parameters(const PlacedJson& space) {
    const PlacedJson& array = need(space, "TuningParameters", "what is tuned, in an array");
    std::vector<FormulaValue> defaults;
    for (const PlacedJson& item : read_array(array, 64)) {
      DescribedParameter parameter;
      const PlacedJson& name = need(item, "Name", "the parameter's name");
      parameter.name = read_name(name);
      if (std::find(names_.begin(), names_.end(), parameter.name) != names_.end()) {
        fail(name, fmt::format("the name {} is taken", parameter.name));
      }
      parameter.values = read_values(need(item, "Values", "a list, or a formula of one"));
      names_.push_back(parameter.name);
      if (const auto* value = item.find("Default")) {
        if (const auto known = default_of(parameter, *value)) defaults.push_back(*known);
      }
      d_.parameters.push_back(std::move(parameter));
    }
    if (!defaults.empty() && defaults.size() == d_.parameters.size()) {
      d_.defaults.push_back(std::move(defaults));
    }
  }

  /// One of the values, or a list of one; none where the file's default is not among them.
  static std::optional<FormulaValue> default_of(const DescribedParameter& parameter,
                                                const PlacedJson& value) {
    const bool listed = value.items() != nullptr && value.items()->size() == 1;
    const PlacedJson& one = listed ? value.items()->front() : value;
    const FormulaValue* const found = find_value(parameter.values, one);
    return found != nullptr ? std::optional(*found) : std::nullopt;
  }

  void read_conditions(const PlacedJson& space) {
    const PlacedJson* const conditions = space.find("Conditions");
    if (conditions == nullptr) return;
    for (const PlacedJson& item : read_array(*conditions, 256)) {
      const PlacedJson& text = need(item, "Expression", "what must hold");
      d_.constraints.push_back({formula(text), fmt::format("must hold: {}", read_text(text))});
    }
  }

  /// A formula, in which ProblemSize[0] is the first dimension.
  Formula formula(const PlacedJson& value) const {
    if (value.text() == nullptr) return read_formula(value, names_);
    PlacedJson renamed = value;
    std::string text = *value.text();
    for (std::size_t i = 0; i < d_.dimensions.size(); ++i) {
      const std::string subscripted = fmt::format("ProblemSize[{}]", i);
      for (std::size_t at = 0; (at = text.find(subscripted, at)) != std::string::npos;) {
        text.replace(at, subscripted.size(), extents[i]);
      }
    }
    renamed.is = std::move(text);
    return read_formula(renamed, names_);
  }

  void read_arguments(const PlacedJson& array) {
    constexpr std::array<std::string_view, 3> memories{"Vector", "Constant", "Scalar"};
    DescribedLaunch launch;
    for (const PlacedJson& item : read_array(array, 256)) {
      const PlacedJson& place = need(item, "Name", "the argument's name");
      const std::string name = read_name(place);
      if (std::find(names_.begin(), names_.end(), name) != names_.end()) {
        fail(place, fmt::format("the name {} is taken", name));
      }
      names_.push_back(name);
      const auto memory =
          read_word(need(item, "MemoryType", "Vector, Constant or Scalar"), memories);
      memory == 2 ? read_scalar(item, name) : read_vector(item, name);
      // Kernel Tuner passes what lies in constant memory, the variable of its name, as an argument,
      // too, where MemType says so.
      const auto* const copied = item.find("MemType");
      if (memory == 1 || (copied != nullptr && read_word(*copied, memories) == 1)) {
        if (memory == 2 || d_.operands.back().role != Role::input) {
          fail(place, "only a vector that is read lies in constant memory");
        }
        d_.operands.back().constant = name;
      }
      if (memory != 1) launch.arguments.push_back(name);
    }
    const bool written = std::any_of(d_.operands.begin(), d_.operands.end(),
                                     [](const auto& o) { return o.role != Role::input; });
    if (!written) fail(array, "has no argument that is written");
    d_.launches.push_back(std::move(launch));
  }

  void read_vector(const PlacedJson& item, const std::string& name) {
    constexpr std::array<std::string_view, dtype_table.size()> types{
        "float", "half", "bfloat16", "int32", "double", "int64", "uint32", "int8", "uint8"};
    constexpr std::array<std::string_view, 3> access{"ReadOnly", "WriteOnly", "ReadWrite"};
    constexpr std::array<std::string_view, 2> fills{"Random", "Constant"};
    DescribedOperand operand;
    operand.name = name;
    operand.dtype = dtype_table[read_word(need(item, "Type", "the type of elements"), types)].type;
    operand.role =
        static_cast<Role>(read_word(need(item, "AccessType", "how it is accessed"), access));
    operand.shape.push_back(formula(need(item, "Size", "the number of elements")));
    const double value = number(item, "FillValue", 1);
    const auto* const fill = item.find("FillType");
    if (fill != nullptr && read_word(*fill, fills) == 1) {
      operand.fill = {.kind = OperandFill::Kind::constant, .from = value, .file = {}};
    } else {
      operand.fill = {.from = 0, .to = value > 0 ? value : 1, .file = {}};
    }
    d_.operands.push_back(std::move(operand));
  }

  void read_scalar(const PlacedJson& item, const std::string& name) {
    constexpr std::array<std::string_view, 6> types{"int32",  "uint32", "int64",
                                                    "uint64", "float",  "double"};
    DescribedScalar scalar;
    scalar.name = name;
    scalar.type = static_cast<DescribedScalar::Type>(
        read_word(need(item, "Type", "the scalar's type"), types));
    scalar.value = formula(need(item, "FillValue", "the scalar's value"));
    d_.scalars.push_back(std::move(scalar));
  }

  /// The names that formulas may read: without arguments.
  const std::vector<std::string>& formula_names() {
    names_.resize(d_.dimensions.size() + d_.parameters.size());
    return names_;
  }

  /// ReferenceArguments have a tolerance in the words of KTT. One holds for all outputs.
  void read_tolerance(const PlacedJson& kernel) {
    const PlacedJson* const array = kernel.find("ReferenceArguments");
    if (array == nullptr) return;
    constexpr std::array<std::string_view, 3> methods{"AbsoluteDifference", "SideBySideComparison",
                                                      "SideBySideRelativeComparison"};
    for (const PlacedJson& item : read_array(*array, 64)) {
      const auto* const method = item.find("ValidationMethod");
      const bool relative = method != nullptr && read_word(*method, methods) == 2;
      const double threshold = number(item, "ValidationThreshold", 0);
      double& limit = relative ? d_.reference.tolerance.relative : d_.reference.tolerance.absolute;
      limit = limit == 0 ? threshold : std::min(limit, threshold);
    }
  }

  static double number(const PlacedJson& object, std::string_view key, double fallback) {
    const PlacedJson* const value = object.find(key);
    return value == nullptr ? fallback : read_number(*value);
  }

  void read_launch(const PlacedJson& kernel) {
    DescribedLaunch& launch = d_.launches.front();
    launch.entry = d_.name;
    const PlacedJson& local = need(kernel, "LocalSize", "the threads of a workgroup");
    for (std::size_t i = 0; i < 3; ++i) {
      const auto* const size = local.find(axes[i]);
      launch.workgroup[i] = size == nullptr ? one() : formula(*size);
      launch.grid[i] = workgroups(kernel, i, launch.workgroup[i]);
    }
    const auto* const shared = kernel.find("SharedMemory");
    launch.shared_bytes =
        shared == nullptr ? Formula::constant({std::int64_t{0}}) : formula(*shared);
    d_.workspace_bytes = d_.flops = d_.bytes = Formula::constant({std::int64_t{0}});
  }
  static Formula one() { return Formula::constant({std::int64_t{1}}); }

  /// Kernel Tuner divides the problem's extent by GridDivX etc. and rounds up. Without these,
  /// GlobalSize counts workgroups (GlobalSizeType CUDA) or threads.
  Formula workgroups(const PlacedJson& kernel, std::size_t axis, const Formula& threads) const {
    constexpr std::array<std::string_view, 3> divisors{"GridDivX", "GridDivY", "GridDivZ"};
    constexpr std::array<std::string_view, 2> types{"CUDA", "OpenCL"};
    std::string text;
    PlacedJson place = kernel;
    if (kernel.find("GridDivX") != nullptr) {
      if (axis >= d_.dimensions.size()) return one();
      const auto* const divisor = kernel.find(divisors[axis]);
      text = extents[axis];
      if (divisor != nullptr && !std::holds_alternative<std::nullptr_t>(divisor->is)) {
        std::string product = "1";
        for (const PlacedJson& item : read_array(*divisor, 16)) {
          product +=
              fmt::format(" * ({})", item.integer() != nullptr ? item.shown() : read_text(item));
        }
        text = fmt::format("ceil_div({}, {})", text, product);
        place = *divisor;
      }
    } else {
      const PlacedJson& global = need(kernel, "GlobalSize", "the grid, as GridDivX is missing");
      const auto* const size = global.find(axes[axis]);
      if (size == nullptr) return one();
      const auto* const type = kernel.find("GlobalSizeType");
      const bool counts_threads = type != nullptr && read_word(*type, types) == 1;
      if (!counts_threads) return formula(*size);
      text = fmt::format("ceil_div({}, {})", formula(*size).text(), threads.text());
      place = *size;
    }
    place.is = std::move(text);
    return formula(place);
  }

  const PlacedJson& file_;
  const PlacedJson* reference_;  // null: the file's own, if it has one
  Description d_;
  std::vector<std::string> names_;
};

}  // namespace
}  // namespace described

Result<Description> read_t1(const PlacedJson& file, const PlacedJson* reference) {
  return described::caught([&] { return described::T1Reader(file, reference).read(); });
}

}  // namespace greta::kernels
