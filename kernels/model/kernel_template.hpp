#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "kernels/model/adversarial.hpp"
#include "kernels/model/problem.hpp"
#include "kernels/model/space.hpp"
#include "kernels/model/tensor.hpp"
#include "runtime/device/device_info.hpp"
#include "runtime/device/kernel_source.hpp"

namespace greta::kernels {

/// The least work that any kernel must do for a problem.
struct Work {
  double flops = 0;
  double bytes = 0;  ///< every input read once, every output written once
};

/// One launch argument: an operand, the workspace, or a scalar.
struct OperandArgument {
  std::size_t tensor = 0;  ///< position in KernelTemplate::tensors

  bool operator==(const OperandArgument&) const = default;
};
struct WorkspaceArgument {
  std::uint64_t offset = 0;  ///< bytes from the workspace's start

  bool operator==(const WorkspaceArgument&) const = default;
};
using Argument =
    std::variant<OperandArgument, WorkspaceArgument, std::uint32_t, float, std::uint64_t>;

/// One kernel launch. Arguments are packed in order at their natural alignment (addresses: 8).
struct Launch {
  std::size_t source = 0;  ///< position in LaunchPlan::sources
  std::array<std::uint32_t, 3> grid{1, 1, 1};
  std::vector<Argument> arguments;
};

/// A configuration made concrete: kernels to compile and launches to run in order.
struct LaunchPlan {
  std::vector<KernelSource> sources;
  std::vector<Launch> launches;
  std::uint64_t workspace_bytes = 0;
  /// This many of the workspace's first bytes are zero before the first launch, and every run
  /// leaves them zero: room for counters. The rest holds anything.
  std::uint64_t zeroed_bytes = 0;
};

/// Outcome of checking one result against an independent FP64 reference.
struct Verdict {
  bool passed = false;
  double error = 0;    ///< |result - reference| of the element closest to (or past) its bound
  double bound = 0;    ///< what that element was held to
  std::string method;  ///< "full", or "16 rows in full, Freivalds over all columns"
  std::string detail;  ///< what broke, where; empty when passed

  /// error / bound; at most 1 when passed.
  double ratio() const { return bound > 0 ? error / bound : (error > 0 ? 1e300 : 0); }
};

/// The verdict on a result of two tensors: the one that failed, or came closer to its bound.
const Verdict& worse(const Verdict& a, const Verdict& b);

/// An exact value and how far a correct kernel's result may lie from it.
struct Expected {
  double value = 0;
  double bound = 0;
};

/// The FP64 reference of one problem with given inputs. Computed once, checks many results.
/// Independent of every kernel: it shares no code with the templates.
class Reference {
 public:
  virtual ~Reference() = default;
  /// `outputs`: the tensors whose role is not input, in order. NaN, Inf and unwritten elements
  /// fail. Thread-safe.
  virtual Verdict check(const std::vector<HostTensor>& outputs) const = 0;
  /// Every element of each of these outputs, in order; nothing where the problem is not
  /// KernelTemplate::fully_checked.
  virtual std::optional<std::vector<std::vector<Expected>>> expected() const = 0;
};

/// A dimension of an operation, e.g. {"m", "rows of C"}.
struct Dimension {
  std::string name;
  std::string help;
  std::int64_t least = 1;
  std::int64_t most = std::numeric_limits<std::int32_t>::max();
  /// What it is when nobody says: a number, or the name of an earlier dimension. Empty: it must be
  /// said.
  std::string fallback{};
  std::vector<std::int64_t> examples{};  ///< extents to test; empty: whatever is allowed
};

/// A property of a problem that is not a dimension, e.g. layout: nn, nt or tn.
struct Attribute {
  std::string name;
  std::string help;
  std::string fallback;              ///< the default value
  std::vector<std::string> allowed;  ///< empty: `canonical` decides
  std::string allowed_text;          ///< for messages, where `allowed` is empty
  /// The one spelling of a value that a Problem holds; nothing for a value that is not allowed.
  std::optional<std::string> (*canonical)(const std::string&) = nullptr;
  std::vector<std::string> examples;  ///< canonical values to test, where `allowed` is empty
  /// For the elements from one row of an operand to the next: how many they are by default, when
  /// rows are packed, and at least. Null: the attribute is something else.
  std::int64_t (*packed)(const Problem&) = nullptr;
};

/// Element types that an operation takes together.
struct DTypes {
  DType in;
  DType out;
};

/// Types that elements are converted between: all seven pairs with f32 on a side, or equal ones.
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

/// One way to compute an operation: what is tunable about it, and how its kernels are launched.
struct Variant {
  std::string name;
  /// Parameters and constraints for a problem on a device; empty lists of values are not allowed.
  std::function<Alternative(const Problem&, const DeviceInfo&)> space;
  /// Kernels and launches of a configuration that the space holds.
  std::function<LaunchPlan(const Problem&, const DeviceInfo&, const Config&)> plan;
  /// Sensible untuned choices, best first, some of which the constraints may reject; none where
  /// variants behind this one serve better.
  std::function<std::vector<Config>(const Problem&, const DeviceInfo&)> defaults;
  std::string summary{};  ///< what it is for and what a workgroup computes, in one line
  /// Every extent that the kernels of a valid configuration cut, in the same order for all of them:
  /// where a part is incomplete, kernels take another branch, which has to be tested.
  std::function<std::vector<Division>(const Problem&, const Config&)> divisions{};
  /// A parameter whose values choose the instructions, so that each value has kernels of its own,
  /// which random problems meet as often as those of another variant; empty where none does. Its
  /// values follow from the device and the types.
  std::string kernels_by{};
};

/// An operation: what it computes, what is tunable, and how to tell that a result is right. A plain
/// struct of functions; one for each folder of kernels/templates, listed in catalog.cpp.
struct KernelTemplate {
  std::string name;     ///< "gemm"
  std::string summary;  ///< one line for --help
  std::string bound;    ///< in words, how far a result may lie from the exact one
  /// In words, what becomes of lengths, positions and ids that are out of range; empty where there
  /// are none.
  std::string out_of_range{};
  std::vector<Dimension> dimensions;
  std::vector<Attribute> attributes;
  std::vector<DTypes> dtypes;  ///< the first pair is the default
  /// Extents that people have, each of all dimensions in order.
  std::vector<std::vector<std::int64_t>> sizes;
  /// The explicit list. The first one with a valid default is a problem's default.
  std::vector<Variant> variants;
  /// The plainest configuration, one thread per output: what others are compared with. Nothing
  /// where there is no such kernel.
  std::optional<Config> naive;

  /// Rules beyond those of dimensions, attributes and types, which check_problem() has judged; null
  /// where there are none.
  Result<void> (*check)(const Problem&) = nullptr;
  Work (*work)(const Problem&) = nullptr;
  /// All operands, in the order of the kernels' arguments.
  std::vector<TensorSpec> (*tensors)(const Problem&) = nullptr;
  /// One tensor's contents before a launch, its rows packed; null: random_tensor(). Equal seeds
  /// give equal data on every machine.
  HostTensor (*input)(const Problem&, const TensorSpec&, std::uint64_t seed) = nullptr;
  /// Makes plain inputs adversarial (InputStyle), in place; their rows are packed. Null: rows of
  /// all values that each tensor's type has are mixed in.
  void (*harden)(const Problem&, std::vector<HostTensor>& inputs, std::uint64_t seed) = nullptr;
  std::unique_ptr<Reference> (*reference)(const Problem&, const std::vector<HostTensor>& inputs,
                                          std::uint64_t seed) = nullptr;
  /// Whether the reference knows every element, and does not check in samples; null where it always
  /// does.
  bool (*fully_checked)(const Problem&) = nullptr;
  /// A problem with about `fraction` of the work, made of fewer tiles of the same kernel: a
  /// configuration's compiled kernels and relative speed carry over. May return the problem itself.
  Problem (*stand_in)(const Problem&, double fraction) = nullptr;

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

/// The problem with fewer whole steps of one dimension, at least one of them, until that is about
/// `fraction` of what it was.
Problem shorter(Problem problem, std::string_view dimension, std::int64_t step, double fraction);
/// As KernelTemplate::stand_in: with fewer `rows`, in steps of 64; with fewer `tokens`, of 16.
Problem fewer_rows(const Problem& problem, double fraction);
Problem fewer_tokens(const Problem& problem, double fraction);

}  // namespace greta::kernels
