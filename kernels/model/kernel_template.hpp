#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "kernels/model/problem.hpp"
#include "kernels/model/space.hpp"
#include "kernels/model/tensor.hpp"
#include "runtime/device/device_info.hpp"
#include "runtime/device/kernel_source.hpp"

namespace greta {

/// The least work that any kernel must do for a problem.
struct Work {
  double flops = 0;
  double bytes = 0;  ///< every input read once, every output written once
};

/// One launch argument: an operand, the workspace, or a scalar.
struct OperandArgument {
  std::size_t tensor = 0;  ///< position in KernelTemplate::tensors
};
struct WorkspaceArgument {
  std::uint64_t offset = 0;  ///< bytes from the workspace's start
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
  /// Every element of each of these outputs, in order; nothing where the problem is so large that
  /// check() takes samples.
  virtual std::optional<std::vector<std::vector<Expected>>> expected() const = 0;
};

/// A dimension of an operation, e.g. {"m", "rows of C"}.
struct Dimension {
  std::string name;
  std::string help;
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
};

/// Element types that an operation takes together.
struct DTypes {
  DType in;
  DType out;
};

/// An operation: what it computes, what is tunable, and how to tell that a result is right. A plain
/// struct of functions; one for each folder of kernels/templates, listed in catalog.cpp.
struct KernelTemplate {
  std::string name;     ///< "gemm"
  std::string summary;  ///< one line for --help
  std::vector<Dimension> dimensions;
  std::vector<Attribute> attributes;
  std::vector<DTypes> dtypes;  ///< the first pair is the default

  /// Rules beyond those of dimensions, attributes and types, which check_problem() has judged; null
  /// where there are none.
  Result<void> (*check)(const Problem&) = nullptr;
  Work (*work)(const Problem&) = nullptr;
  /// All operands, in the order of the kernels' arguments.
  std::vector<TensorSpec> (*tensors)(const Problem&) = nullptr;
  Space (*space)(const Problem&, const DeviceInfo&) = nullptr;
  /// A sensible untuned choice; always valid in space().
  Config (*default_config)(const Problem&, const DeviceInfo&) = nullptr;
  /// Renders the kernels and their launches. Fails with `constraints` for a config that is not
  /// valid for this problem and device.
  Result<LaunchPlan> (*plan)(const Problem&, const DeviceInfo&, const Config&) = nullptr;
  /// The plainest configuration, one thread per output: what others are compared with.
  Config naive;
  std::unique_ptr<Reference> (*reference)(const Problem&, const std::vector<HostTensor>& inputs,
                                          std::uint64_t seed) = nullptr;
  /// A problem with about `fraction` of the work, made of fewer tiles of the same kernel: a
  /// configuration's compiled kernels and relative speed carry over. May return the problem itself.
  Problem (*stand_in)(const Problem&, double fraction) = nullptr;
  /// Changes when results recorded with earlier sources must be measured again: a hash of the
  /// template's sources.
  std::string (*key)() = nullptr;
};

}  // namespace greta
