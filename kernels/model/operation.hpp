#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <typeinfo>
#include <vector>

#include "kernels/model/adversarial.hpp"
#include "kernels/model/launch_plan.hpp"
#include "kernels/model/problem.hpp"
#include "kernels/model/reference.hpp"
#include "kernels/model/space.hpp"
#include "kernels/model/tensor.hpp"
#include "runtime/device/device_info.hpp"

namespace greta::kernels {

/// The least work that any kernel must do for a problem.
struct Work {
  double flops = 0;
  double bytes = 0;  ///< every input read once, every output written once
};

/// An extent that varies at run time, as numbers of tokens do, where others are fixed by the model.
/// A look-up answers all problems alike whose extents are rounded to the same power of two, so that
/// no loop over lengths compiles anything anew.
struct RunTimeExtent {
  enum class Rounded { up, down };
  std::int64_t exact_to = 0;  ///< extents that are looked up as they are, up to this one
  Rounded rounded = Rounded::up;
  /// With this value of an attribute, {name, value}, the extent is not rounded: kernels are made
  /// for it.
  std::pair<std::string, std::string> exact_with{};
};

/// A dimension of an operation, e.g. {.name = "m", .help = "rows of C"}.
struct Dimension {
  std::string name;
  std::string help;
  std::int64_t least = 1;
  std::int64_t most = std::numeric_limits<std::int32_t>::max();
  /// What it is when nobody says: a number, or the name of an earlier dimension. Empty: it must be
  /// said.
  std::string fallback{};
  std::vector<std::int64_t> examples{};        ///< extents to test; empty: whatever is allowed
  std::optional<RunTimeExtent> at_run_time{};  ///< nothing: fixed by the model
};

/// `rows` or `tokens`, rounded up to a power of two by look-ups.
Dimension run_time_rows(std::string help);
Dimension run_time_tokens(std::string help);

/// A property of a problem that is not a dimension, e.g. layout: nn, nt or tn.
struct Attribute {
  std::string name;
  std::string help;
  std::string fallback;                ///< the default value
  std::vector<std::string> allowed{};  ///< empty: `canonical` decides
  std::string allowed_text{};          ///< for messages, where `allowed` is empty
  /// The one spelling of a value that a Problem holds; nothing for a value that is not allowed.
  std::function<std::optional<std::string>(const std::string&)> canonical{};
  std::vector<std::string> examples{};  ///< canonical values to test, where `allowed` is empty
  /// For the elements from one row of an operand to the next: how many they are by default, when
  /// rows are packed, and at least. Empty: the attribute is something else.
  std::function<std::int64_t(const Problem&)> packed{};
};

/// A value of an attribute, or of a dimension, that was spelt otherwise once; it is still read.
struct Renamed {
  std::string old_name, old_value;
  std::string name, value;  ///< of the attribute that says it now
};

/// Element types that an operation takes together.
struct DTypes {
  DType in;
  DType out;
};

/// Types that elements are converted between: all pairs with f32 on a side, or equal ones.
std::vector<DTypes> converted_dtypes();

/// Division::may_exceed of parts that never do.
constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

/// An extent that kernels cut into parts of equal length, the last of which may be shorter.
struct Division {
  std::string name;  ///< of what is cut: a dimension, or in words
  std::int64_t extent = 0;
  std::int64_t part = 1;    ///< length of a part
  std::string parameter{};  ///< the one that is `part`; empty where it is made of several
  /// The shortest part that may be longer than the extent; of shorter ones constraints forbid it.
  std::int64_t may_exceed = 1;
};

/// What an operation's variants read instead of a Problem: a struct of their own with extents,
/// types and attributes as numbers, made once for each problem.
class ProblemShape {
 public:
  template <typename T>
  explicit ProblemShape(T shape)
      : shape_(std::make_shared<T>(std::move(shape))), type_(&typeid(T)) {}

  /// Throws Error where it is of another type.
  template <typename T>
  const T& as() const {
    if (*type_ != typeid(T)) throw Error("a variant of an operation reads another's shape");
    return *static_cast<const T*>(shape_.get());
  }

 private:
  std::shared_ptr<const void> shape_;
  const std::type_info* type_;
};

/// One way to compute an operation: what is tunable about it, and how its kernels are launched.
struct Variant {
  std::string name;
  std::string summary;  ///< what it is for and what a workgroup computes, in one line
  /// Parameters and constraints for a problem on a device; empty lists of values are not allowed.
  std::function<Alternative(const ProblemShape&, const DeviceInfo&)> space;
  /// Kernels and launches of a configuration that the space holds.
  std::function<LaunchPlan(const ProblemShape&, const DeviceInfo&, const Config&)> plan;
  /// Sensible untuned choices, best first, some of which the constraints may reject; none where
  /// variants after this one serve better.
  std::function<std::vector<Config>(const ProblemShape&, const DeviceInfo&)> defaults;
  /// Every extent that the kernels of a valid configuration cut, in the same order for all of them:
  /// where a part is incomplete, kernels take another branch, which has to be tested.
  std::function<std::vector<Division>(const ProblemShape&, const Config&)> divisions;
  /// A parameter whose values choose the instructions, so that each value has kernels of its own,
  /// which random problems meet as often as those of another variant; empty where none does. Its
  /// values follow from the device and the types.
  std::string kernels_by{};
};

/// A variant by functions of the struct that its operation's ProblemShape holds.
template <typename T, typename SpaceOf, typename PlanOf, typename DefaultsOf, typename DivisionsOf>
Variant make_variant(std::string name, std::string summary, SpaceOf space, PlanOf plan,
                     DefaultsOf defaults, DivisionsOf divisions) {
  return {
      .name = std::move(name),
      .summary = std::move(summary),
      .space = [space](const ProblemShape& shape,
                       const DeviceInfo& device) { return space(shape.as<T>(), device); },
      .plan = [plan](const ProblemShape& shape, const DeviceInfo& device,
                     const Config& config) { return plan(shape.as<T>(), device, config); },
      .defaults = [defaults](const ProblemShape& shape,
                             const DeviceInfo& device) { return defaults(shape.as<T>(), device); },
      .divisions = [divisions](const ProblemShape& shape,
                               const Config& config) { return divisions(shape.as<T>(), config); }};
}

/// Extents that people have, of all dimensions in order, and attributes that are not the default.
struct TypicalSize {
  std::vector<std::int64_t> extents;
  std::vector<std::pair<std::string, std::string>> attributes{};
};

/// An operation: what it computes, what is tunable, and how to tell that a result is right. A
/// value: those that GRETA ships are made by the folders of kernels/templates and listed in
/// catalog.cpp; others can be made at run time.
struct Operation {
  std::string name;     ///< "gemm"
  std::string summary;  ///< one line for --help
  std::string bound;    ///< how far a result may lie from the exact one
  /// In words, what becomes of lengths, positions and ids that are out of range; empty where there
  /// are none.
  std::string out_of_range{};
  std::vector<Dimension> dimensions;
  std::vector<Attribute> attributes;
  std::vector<Renamed> renamed{};
  std::vector<DTypes> dtypes;  ///< the first pair is the default
  std::vector<TypicalSize> sizes;
  /// The explicit list. The first one with a valid default is a problem's default.
  std::vector<Variant> variants;
  /// The plainest configuration, one thread per output: what others are compared with. Nothing
  /// where there is no such kernel.
  std::optional<Config> naive;

  /// What variants read of a problem that check_problem() accepts.
  std::function<ProblemShape(const Problem&)> shape;
  /// Rules beyond those of dimensions, attributes and types, which check_problem() has judged;
  /// empty where there are none.
  std::function<Result<void>(const Problem&)> check;
  std::function<Work(const Problem&)> work;
  /// All operands, in the order of the kernels' arguments, each with its own element type.
  std::function<std::vector<TensorSpec>(const Problem&)> tensors;
  /// One tensor's contents before a launch, its rows packed; empty: random_tensor(). Equal seeds
  /// give equal data on every machine.
  std::function<HostTensor(const Problem&, const TensorSpec&, std::uint64_t seed)> input;
  /// Makes plain inputs adversarial (InputStyle), in place; their rows are packed. Empty: rows of
  /// all values that each tensor's type has are mixed in.
  std::function<void(const Problem&, std::vector<HostTensor>& inputs, std::uint64_t seed)> harden;
  std::function<std::unique_ptr<Reference>(const Problem&, const std::vector<HostTensor>& inputs,
                                           std::uint64_t seed)>
      reference;
  /// Whether the reference knows every element, and does not check in samples; empty where it
  /// always does.
  std::function<bool(const Problem&)> fully_checked;
  /// A problem with about `fraction` of the work, made of fewer tiles of the same kernel: a
  /// configuration's compiled kernels and relative speed carry over. May return the problem itself.
  std::function<Problem(const Problem&, double fraction)> stand_in;

  Space space(const Problem& problem, const DeviceInfo& device) const;
  /// A sensible untuned choice; always valid in space(). Throws Error where no configuration is.
  Config default_config(const Problem& problem, const DeviceInfo& device) const;
  /// Renders the kernels and their launches. Fails with `constraints` for a config that is not
  /// valid for this problem and device.
  Result<LaunchPlan> plan(const Problem& problem, const DeviceInfo& device,
                          const Config& config) const;
  /// Contents of every tensor that a launch reads, in order. Adversarial ones contain about as many
  /// plain rows as others; the exact result is within the output's range, or its overflow is
  /// defined, and the reference knows it.
  std::vector<HostTensor> inputs(const Problem& problem, std::uint64_t seed,
                                 InputStyle style = InputStyle::plain) const;
  /// The variant of this name. Throws Error where there is none.
  const Variant& variant(std::string_view named) const;
  /// The files of kernels/templates that its kernels are made of: those in the folder `name`, and
  /// what they include.
  std::set<std::string_view> sources() const;
  /// Changes when results recorded with earlier sources must be measured again: a hash of them.
  std::string key() const;
};

/// A problem of an operation on a device, parsed once: its spaces and plans. Keep one to ask for
/// many configurations. The operation must outlive it.
class Instance {
 public:
  Instance(const Operation& operation, const Problem& problem, DeviceInfo device)
      : operation_(operation), shape_(operation.shape(problem)), device_(std::move(device)) {}

  const DeviceInfo& device() const { return device_; }
  const ProblemShape& shape() const { return shape_; }
  /// All variants' parameters and constraints, in the operation's order.
  std::vector<Alternative> alternatives() const;
  /// As kernels::rejects, without other variants than the configuration's.
  std::optional<std::string> rejects(const Config& config) const;
  /// As Operation::plan.
  Result<LaunchPlan> plan(const Config& config) const;
  /// The first of the variants' defaults that is valid; else `rejected` is why the first was not.
  std::optional<Config> untuned(std::string& rejected) const;

 private:
  const Alternative& alternative(const Variant& variant) const;

  const Operation& operation_;
  ProblemShape shape_;
  DeviceInfo device_;
  mutable std::map<std::string, Alternative, std::less<>> made_;  ///< by variant
};

/// The problem with fewer whole steps of one dimension, at least one of them, until that is about
/// `fraction` of what it was.
Problem shorter(Problem problem, std::string_view dimension, std::int64_t step, double fraction);
/// As Operation::stand_in: with fewer `rows`, in steps of 64; with fewer `tokens`, of 16.
Problem fewer_rows(const Problem& problem, double fraction);
Problem fewer_tokens(const Problem& problem, double fraction);

}  // namespace greta::kernels
