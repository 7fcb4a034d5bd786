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
#include "kernels/model/config_migration.hpp"
#include "kernels/model/launch_plan.hpp"
#include "kernels/model/launch_work.hpp"
#include "kernels/model/problem.hpp"
#include "kernels/model/reference.hpp"
#include "kernels/model/space.hpp"
#include "kernels/model/tensor.hpp"
#include "runtime/device/device.hpp"

namespace greta::kernels {

/// The minimum work that any kernel must do for a problem.
struct Work {
  double flops = 0;
  double bytes = 0;  ///< every input read once and every output written once
  /// What matrix cores may multiply in place of elements of the problem's type.
  std::optional<MatrixNumbers> numbers{};
};

/// Describes an extent that varies at run time, such as a number of tokens. Other extents are fixed
/// by the model. A look-up returns the same answer for all problems whose extents round to the same
/// one, so a loop over lengths does not compile new kernels at each step.
struct RunTimeExtent {
  enum class Rounded { up, down };
  std::int64_t exact_to = 0;  ///< extents up to this one are not rounded
  Rounded rounded = Rounded::up;
  /// The number of extents to which others round up, from one power of two to the next; they are at
  /// least 8 apart.
  int steps = 1;
  /// The extent is not rounded if this attribute has one of these values, because kernels are then
  /// specialised for the extent.
  std::pair<std::string, std::vector<std::string>> exact_with{};
};

/// A dimension of an operation, e.g. {.name = "m", .help = "rows of C"}.
struct Dimension {
  std::string name;
  std::string help;
  std::int64_t least = 1;
  std::int64_t most = std::numeric_limits<std::int32_t>::max();
  /// The default: a number or the name of an earlier dimension. Empty: the dimension is required.
  std::string fallback{};
  std::vector<std::int64_t> examples{};        ///< extents to test; empty: any allowed extent
  std::optional<RunTimeExtent> at_run_time{};  ///< std::nullopt: fixed by the model
  /// Problems in which the dimension has its default, a number, do not contain it, so that their
  /// keys are those from before it was added. Only the last dimension can be optional.
  bool optional = false;
};

/// Returns the dimension `rows` or `tokens`, which look-ups round up to a power of two.
Dimension run_time_rows(std::string help);
Dimension run_time_tokens(std::string help);

/// A property of a problem that is not a dimension, e.g. layout: nn, nt or tn.
struct Attribute {
  std::string name;
  std::string help;
  std::string fallback;  ///< the default value, or the name of the dimension whose extent it is
  std::vector<std::string> allowed{};  ///< empty: `canonical` decides
  std::string allowed_text{};          ///< for messages; used if `allowed` is empty
  /// Returns the canonical spelling of a value, which is what a Problem holds, or std::nullopt if
  /// the value is not allowed.
  std::function<std::optional<std::string>(const std::string&)> canonical{};
  std::vector<std::string> examples{};  ///< canonical values to test; used if `allowed` is empty
  /// Set only for row strides (leading dimensions, in elements). Returns the stride of packed rows,
  /// which is the default, and the minimum except with `may_interleave`; 0 if the problem has no
  /// such rows.
  std::function<std::int64_t(const Problem&)> packed{};
  /// The operation checks a stride below `packed`: e.g. matrices of a batch between each other's
  /// rows.
  bool may_interleave = false;
  /// Other values than the default only permit more: what computes the problem with the default is
  /// right for them, too.
  bool permission = false;
};

/// An earlier spelling of an attribute's or dimension's value, which is still read.
struct Renamed {
  std::string old_name, old_value;
  std::string name, value;  ///< the current attribute and value
};

struct ProblemRequest;

/// Another way to write a problem, e.g. with column-major matrices. A request that has the field
/// `name` with the value `value` is translated when it is read, so keys never contain the field.
struct Notation {
  std::string name, value;
  std::string usual;  ///< the value that changes nothing
  std::string help;
  /// Pairs of fields that stand for each other, such as m and n.
  std::vector<std::pair<std::string, std::string>> pairs{};
  /// Changes a request whose fields were exchanged in pairs.
  std::function<Result<void>(ProblemRequest&)> translate{};

  /// Returns the field that stands for this one, or the same one.
  std::string exchanged(const std::string& field) const;
};

/// Element types of inputs and output that an operation supports as a pair.
struct DTypes {
  DType in;
  DType out;

  bool operator==(const DTypes&) const = default;
};

/// Returns the pairs of types with conversion: equal types, and all pairs in which one type is f32.
std::vector<DTypes> converted_dtypes();

/// Value of Division::may_exceed for parts that never exceed the extent.
constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

/// An extent that kernels divide into parts of equal length, of which the last may be shorter.
struct Division {
  std::string name;  ///< name of the divided extent: a dimension, or a description
  std::int64_t extent = 0;
  std::int64_t part = 1;    ///< length of a part
  std::string parameter{};  ///< the one that equals `part`; empty if several determine it
  /// The smallest part that may be longer than the extent. Constraints keep shorter parts within
  /// it.
  std::int64_t may_exceed = 1;

  bool operator==(const Division&) const = default;
};

/// What inputs are drawn from: a number, and for the inputs of one configuration, how it divides
/// extents, so that adversarial lengths may lie at the borders of its parts.
struct InputSeed {
  std::uint64_t number = 0;
  std::vector<Division> divisions{};

  // Most operations need only the number.
  InputSeed(std::uint64_t drawn = 0, std::vector<Division> parts = {})  // NOLINT
      : number(drawn), divisions(std::move(parts)) {}
  operator std::uint64_t() const { return number; }  // NOLINT
  bool operator==(const InputSeed&) const = default;
  /// Returns the length of the parts of an extent, or 1.
  std::int64_t part_of(std::string_view extent) const;
};

/// The type-erased form in which variants read a Problem: an operation's struct of extents, types
/// and attributes as numbers, built once per problem.
class ProblemShape {
 public:
  template <typename T>
  explicit ProblemShape(T shape)
      : shape_(std::make_shared<T>(std::move(shape))), type_(&typeid(T)) {}

  /// Throws Error if the shape has another type.
  template <typename T>
  const T& as() const {
    if (*type_ != typeid(T)) throw Error("a variant of an operation reads another's shape");
    return *static_cast<const T*>(shape_.get());
  }

 private:
  std::shared_ptr<const void> shape_;
  const std::type_info* type_;
};

/// The name of variants that call a vendor's library. They are compared with the winner of a search
/// instead of being searched, and used only where that is allowed (docs/vendor.md).
inline constexpr std::string_view vendor_variant = "vendor";

/// One way to compute an operation: its search space and the launches of its kernels.
struct Variant {
  std::string name;
  std::string summary;  ///< purpose and the work of a workgroup, in one line
  /// Returns the parameters and constraints for a problem on a device. No list of values may be
  /// empty.
  std::function<Alternative(const ProblemShape&, const DeviceInfo&)> space;
  /// Returns the kernels and launches of a configuration in the space.
  std::function<LaunchPlan(const ProblemShape&, const DeviceInfo&, const Config&)> plan;
  /// Returns sensible untuned configurations, best first. Constraints may reject some of them.
  /// Empty if a later variant is the better default.
  std::function<std::vector<Config>(const ProblemShape&, const DeviceInfo&)> defaults;
  /// Returns further configurations, in any order: predictions choose among these and the defaults
  /// (predicted_config). Constraints may reject some of them. Empty: there are none.
  std::function<std::vector<Config>(const ProblemShape&, const DeviceInfo&)> candidates{};
  /// Returns every extent that the kernels of a valid configuration divide, in the same order for
  /// all configurations. Kernels branch on incomplete parts, so tests must cover both cases.
  std::function<std::vector<Division>(const ProblemShape&, const Config&)> divisions;
  /// Returns the paths of the kernels that a configuration takes and that neither a parameter nor
  /// an attribute nor a division names alone, such as "packed residual". Empty: there are none.
  std::function<std::vector<std::string>(const ProblemShape&, const Config&)> paths{};
  /// Returns what the launches of a configuration do, in their order, from which its speed is
  /// predicted (docs/search.md). Empty: the variant's configurations are not ranked before they
  /// run.
  std::function<KernelWork(const ProblemShape&, const DeviceInfo&, const Config&)> work{};
  /// A parameter each of whose values has kernels of its own, such as the matrix instruction, so
  /// that random problems cover each value as often as a variant; empty if there is none. The
  /// values may depend on the device and the element types.
  std::string kernels_by{};
  /// What changed in the parameters since results were first stored, the oldest change first, by
  /// which stored configurations are read. An addition to tests/data/config_forms.txt tells when
  /// one is needed (CONTRIBUTING.md).
  std::vector<ConfigMigration> migrations{};
  /// Whether equal runs may give results of other bits, because sums are added in no fixed order,
  /// as by atomic operations. Otherwise results that differ between runs are a race, and wrong.
  bool unordered = false;
  /// Whether its first default answers where that is the operation's default and nothing was
  /// measured, as it is measured to cost less than what the static prior predicts
  /// (Operation::untuned).
  bool default_stands = false;
  /// Another variant. Where this one's default judges winners of other shapes (Operation::untuned),
  /// it judges that variant's, too, because predicted times of both compare. Empty: there is none.
  std::string judges{};
  /// Whether results are defined only where all elements of the inputs are finite, also those that
  /// are not used: a vendor's library may multiply them by zero.
  bool finite_inputs = false;
  /// Of a vendor_variant: the device's name of the library that it calls.
  std::string DeviceInfo::*library = nullptr;
};

/// Makes a Variant of functions that take the struct T held by the operation's ProblemShape.
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

/// Sets Variant::work to a function of the struct T held by the operation's ProblemShape.
template <typename T, typename WorkOf>
void set_work(Variant& variant, WorkOf work) {
  variant.work = [work](const ProblemShape& shape, const DeviceInfo& device, const Config& config) {
    return work(shape.as<T>(), device, config);
  };
}

/// Sets Variant::candidates likewise.
template <typename T, typename CandidatesOf>
void set_candidates(Variant& variant, CandidatesOf candidates) {
  variant.candidates = [candidates](const ProblemShape& shape, const DeviceInfo& device) {
    return candidates(shape.as<T>(), device);
  };
}

/// Sets Variant::paths likewise.
template <typename T, typename PathsOf>
void set_paths(Variant& variant, PathsOf paths) {
  variant.paths = [paths](const ProblemShape& shape, const Config& config) {
    return paths(shape.as<T>(), config);
  };
}

/// Typical extents of all dimensions in order, and the attributes that differ from their defaults.
struct TypicalSize {
  std::vector<std::int64_t> extents;
  std::vector<std::pair<std::string, std::string>> attributes{};
};

/// An operation: its definition, its search space and its check. Operations are values. Those that
/// GRETA ships are made in the folders of kernels/templates and listed in catalog.cpp; others can
/// be made at run time.
struct Operation {
  std::string name;     ///< "gemm"
  std::string summary;  ///< one line for --help
  std::string bound;    ///< error bound of the result, in words
  /// Describes how lengths, positions and ids out of range are treated. Empty if there are none.
  std::string out_of_range{};
  std::vector<Dimension> dimensions;
  std::vector<Attribute> attributes;
  std::vector<Renamed> renamed{};
  std::optional<Notation> notation{};
  std::vector<DTypes> dtypes;  ///< the first pair is the default
  std::vector<TypicalSize> sizes;
  /// The first variant with a valid default configuration provides the problem's default.
  std::vector<Variant> variants;
  /// What a look-up answers on a GPU where nothing was measured, whichever is measured to cost less
  /// (docs/lookup.md): the default, or predicted_config(). With `judging_default` the default also
  /// answers in place of another shape's winner of its variant (and Variant::judges) that is
  /// predicted to take longer, as predictions do.
  enum class Untuned { first_default, judging_default, best_predicted };
  Untuned untuned = Untuned::first_default;
  /// The simplest configuration, with one thread per output element: the baseline for comparisons.
  /// std::nullopt if there is none.
  std::optional<Config> naive;

  /// Converts a problem that check_problem() accepts to the form that variants read.
  std::function<ProblemShape(const Problem&)> shape;
  /// Checks rules beyond those of dimensions, attributes and types, which check_problem() checks
  /// first. May be empty.
  std::function<Result<void>(const Problem&)> check;
  std::function<Work(const Problem&)> work;
  /// Returns all operands in the order of the kernels' arguments, each with its element type.
  std::function<std::vector<TensorSpec>(const Problem&)> tensors;
  /// Returns one tensor's contents before a launch, with packed rows. Equal seeds give equal data
  /// on every machine. Empty: random_tensor().
  std::function<HostTensor(const Problem&, const TensorSpec&, std::uint64_t seed)> input;
  /// Makes plain inputs adversarial (InputStyle) in place. Their rows are packed. Empty: mixes in
  /// rows with values across each tensor type's range.
  std::function<void(const Problem&, std::vector<HostTensor>& inputs, const InputSeed& seed)>
      harden;
  std::function<std::unique_ptr<Reference>(const Problem&, const std::vector<HostTensor>& inputs,
                                           std::uint64_t seed)>
      reference;
  /// Computes the reference on the device that is tuned, for problems that take too long elsewhere.
  /// Empty: `reference` is used.
  std::function<Result<std::unique_ptr<Reference>>(Device& device, const Problem&,
                                                   const std::vector<HostTensor>& inputs)>
      reference_on{};
  /// What a candidate is checked on before it is timed, besides the given problem.
  struct Checks {
    std::size_t small = 3;   ///< small problems that run the same kernels
    std::size_t odd = 0;     ///< of these, with odd extents in every dimension that can vary
    std::size_t inputs = 1;  ///< different inputs in all, those of small problems included
  };
  Checks checks{};
  /// Returns whether the reference computes every element rather than samples. Empty: always.
  std::function<bool(const Problem&)> fully_checked;
  /// Returns the problem without what is fused into it and changes little of its time, or with
  /// operands in another order that the same kernels read, or itself; what it returns may have such
  /// a problem, too. Its winners serve the problem as those of another shape do, where they are
  /// valid. Empty: nothing is fused.
  std::function<Problem(const Problem&)> unfused;
  /// Returns the problems of other operations that compute the same one after the other, with the
  /// types that a pipeline would give their results: what the operation is measured beside. The
  /// same problem occurs as often as it is launched. An empty list: nothing is fused into this
  /// problem, or no operations compute its parts. Empty: nothing is ever fused.
  std::function<std::vector<Problem>(const Problem&)> parts{};
  /// Returns a problem with about `fraction` of the work and fewer tiles of the same kernel, so
  /// that a configuration's compiled kernels and relative speed carry over. May return the problem
  /// itself.
  std::function<Problem(const Problem&, double fraction)> stand_in;
  /// A hash of the kernels' sources where they are not in kernels/templates; else empty.
  std::string sources_key{};

  Space space(const Problem& problem, const DeviceInfo& device) const;
  /// Returns a sensible untuned configuration that is valid in space(). Throws Error if there is
  /// none.
  Config default_config(const Problem& problem, const DeviceInfo& device) const;
  /// Renders the kernels and their launches. Fails with `constraints` if the configuration is not
  /// valid for this problem and device.
  Result<LaunchPlan> plan(const Problem& problem, const DeviceInfo& device,
                          const Config& config) const;
  /// Returns the contents of every tensor that a launch reads, in order. Adversarial inputs contain
  /// about as many plain rows as adversarial ones. Either the exact result lies within the output's
  /// range, or the reference handles its overflow.
  std::vector<HostTensor> inputs(const Problem& problem, const InputSeed& seed,
                                 InputStyle style = InputStyle::plain) const;
  /// Returns parts(problem), or an empty list.
  std::vector<Problem> parts_of(const Problem& problem) const {
    return parts ? parts(problem) : std::vector<Problem>{};
  }
  /// Returns the names of the variants, in order.
  std::vector<std::string> variant_names() const;
  /// Returns the variant of this name. Throws Error if there is none.
  const Variant& variant(std::string_view named) const;
  /// Returns the files of kernels/templates that the kernels are rendered from: those in the folder
  /// `name` and all files that they include.
  std::set<std::string_view> sources() const;
  /// Returns a hash of the kernel sources. Results recorded with another key must be measured
  /// again.
  std::string key() const;
};

/// Whether the operation has a vendor_variant.
bool has_vendor(const Operation& operation);
/// Returns the name and version of the device's library that the operation's vendor_variant calls;
/// empty if it has none or the library is not open.
std::string vendor_library(const Operation& operation, const DeviceInfo& device);

/// A problem of an operation on a device, converted once. Use one instance for queries about many
/// configurations. The operation must outlive it.
class Instance {
 public:
  Instance(const Operation& operation, const Problem& problem, DeviceInfo device)
      : operation_(operation), shape_(operation.shape(problem)), device_(std::move(device)) {}

  const DeviceInfo& device() const { return device_; }
  const ProblemShape& shape() const { return shape_; }
  /// Returns the parameters and constraints of all variants that are searched, in the operation's
  /// order: of all but vendor_variant.
  std::vector<Alternative> alternatives() const;
  /// Returns a stored configuration in the form of today's variant, which may have been renamed.
  /// Fails with `constraints` and the reason if it can't be carried over. Constraints are not
  /// checked.
  Result<MigratedConfig> migrate(const Config& stored) const;
  /// Like kernels::rejects, but evaluates only the configuration's variant.
  std::optional<std::string> rejects(const Config& config) const;
  /// Like Operation::plan.
  Result<LaunchPlan> plan(const Config& config) const;
  /// Returns what the configuration's launches do; empty if its variant does not tell.
  KernelWork work(const Config& config) const;
  /// Returns the first valid default of the variants. If there is none, sets `rejected` to the
  /// reason why the first default is invalid.
  std::optional<Config> untuned(std::string& rejected) const;

 private:
  const Alternative& alternative(const Variant& variant) const;

  const Operation& operation_;
  ProblemShape shape_;
  DeviceInfo device_;
  mutable std::map<std::string, Alternative, std::less<>> made_;  ///< by variant
};

/// Returns the problem with one dimension reduced to about `fraction` of its extent, in whole steps
/// of `step` and to no less than one step.
Problem shorter(Problem problem, std::string_view dimension, std::int64_t step, double fraction);
/// Implement Operation::stand_in with fewer `rows` in steps of 64, or fewer `tokens` in steps of
/// 16.
Problem fewer_rows(const Problem& problem, double fraction);
Problem fewer_tokens(const Problem& problem, double fraction);

}  // namespace greta::kernels
