#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "db/lookup/lookup.hpp"
#include "db/lookup/packing_choice.hpp"
#include "runtime/device/backend.hpp"
#include "runtime/pipeline/compute/prepared.hpp"
#include "runtime/pipeline/compute/telemetry.hpp"
#include "runtime/pipeline/compute/tensor.hpp"

namespace greta::runtime {

class Queue;

struct RuntimeOptions {
  std::string device = "auto";  ///< see select_device()
  OpenOptions open{};
  LookupFiles databases{};                       ///< by default those that GRETA ships
  LookupOptions lookup{};                        ///< which results of the databases are used
  std::vector<std::string> use{};                ///< rules, see Runtime::use()
  Deadline patience = std::chrono::seconds(60);  ///< timeout of Queue::synchronize()
  /// Whether quantised weights may be rounded to 16-bit activations' type in every product of more
  /// than most_exact_rows rows (QuantizedGemmOptions::rounded_weights).
  bool rounded_weights = false;
  /// Whether launches of a pipeline, and those of an operation after its first one, may begin while
  /// those before them end (LaunchOrder::overlapping).
  bool overlap = true;
  /// Called before each longer step: an allocation, an upload, the preparation of a problem that is
  /// not prepared, a replay. The step fails with its failure, if any.
  std::function<Result<void>()> before_step{};
};

/// The outcome of one problem of Runtime::precompile.
struct Precompiled {
  std::string problem;             ///< key
  std::size_t kernels = 0;         ///< number of kernels that it launches
  std::size_t from_cache = 0;      ///< of these, number from the disk cache
  std::optional<Failure> failure;  ///< why it can't run
};

/// A rule of a runtime, and what it decided so far.
struct RuleUse {
  std::string text;
  bool matched = false;  ///< a problem that was looked up
  bool decided = false;  ///< about one; an earlier rule decides about what both match
};

/// An open device with its memory, look-up and prepared operations. Belongs to one thread at a time
/// and must outlive all objects that it created.
class Runtime {
 public:
  /// Opens a device and databases. Fails like open_device() and Lookup::open().
  static Result<std::unique_ptr<Runtime>> open(const RuntimeOptions& options);
  /// Creates a runtime for an open device.
  static Result<std::unique_ptr<Runtime>> of(std::unique_ptr<Device> device,
                                             const LookupFiles& databases = {},
                                             const LookupOptions& lookup = {});
  /// Creates a runtime with other databases for the same open device. Tensors can be used with
  /// both.
  static Result<std::unique_ptr<Runtime>> beside(const Runtime& other, const LookupFiles& databases,
                                                 const LookupOptions& lookup = {});
  ~Runtime();

  Device& device() { return *device_; }
  bool overlaps() const { return overlap_; }  ///< RuntimeOptions::overlap
  /// Returns the order of an operation's launches after its first one.
  LaunchOrder order_within() const {
    return overlap_ ? LaunchOrder::overlapping : LaunchOrder::in_turn;
  }
  bool rounded_weights() const { return rounded_weights_; }  ///< RuntimeOptions::rounded_weights
  const Lookup& lookup() const { return lookup_; }
  /// Returns the operations that can be run: LookupOptions::catalog.
  const Catalog& catalog() const { return lookup_.catalog(); }
  /// Adds an operation, such as a described kernel (docs/your-kernel.md), to the catalog, and reads
  /// what the databases know of it. Fails with `invalid_argument` if there is one of its name, and
  /// like Lookup::open().
  Result<void> add(Operation operation);
  /// Adds a rule that decides which configuration runs for the problems that it matches, in place
  /// of the databases (UseRule); "@FILE" adds those of a file, one in each line. Of several rules
  /// that match, the first one decides. Fails with `invalid_argument` and adds none if one can't be
  /// read, or matches a problem that is prepared already.
  Result<void> use(std::string_view rule);
  /// Returns all rules in order.
  std::vector<RuleUse> rules() const;
  /// Counts operations when switched on.
  Telemetry& telemetry() { return telemetry_; }
  Deadline patience() const { return patience_; }
  /// Calls RuntimeOptions::before_step.
  Result<void> check_step() const { return before_step_ ? before_step_() : Result<void>{}; }

  /// Allocates uninitialised memory for a packed tensor.
  Result<Tensor> allocate(DType dtype, const Shape& shape, Memory memory = Memory::device);
  /// Returns a tensor in memory that another library allocated on this device, from `address` on.
  /// It is used in place, and belongs to Storage::owner, which the caller sets. Fails like
  /// Interop::wrap(), and for strides that the constructor of Tensor rejects; no strides: packed.
  Result<Tensor> wrap(DType dtype, const Shape& shape, std::span<const std::int64_t> strides,
                      std::uint64_t address);
  /// Returns a function like allocate() that throws its failures.
  TensorMaker maker();
  /// Blocking copies between packed host elements and a contiguous tensor of exactly that size.
  /// They do not wait for work in flight: see Device::upload.
  Result<void> upload(const Tensor& to, std::span<const std::byte> from);
  Result<void> download(const Tensor& from, std::span<std::byte> to);
  /// Sets all bytes of a contiguous tensor of whole 32-bit words to zero, and waits for that.
  Result<void> clear(const Tensor& tensor);

  /// Creates a queue that runs operations in order. Queues run concurrently.
  Result<std::unique_ptr<Queue>> queue();
  /// Creates a queue on a stream of another library (Interop::wrap_stream), which has its own order
  /// with that library's work. Such memory as is another library's (wrap()) must exist until the
  /// stream has passed the work.
  Result<std::unique_ptr<Queue>> queue_on(void* stream);

  /// Returns the prepared problem. On the first call, looks it up, renders and compiles it. A
  /// problem that is not in the databases uses the answer for its bucket
  /// (kernels/model/problem_rules.hpp). If the looked-up configuration does not compile or launch
  /// with this driver, logs a warning and uses the default configuration; a configuration that a
  /// rule forced is not replaced, and the call fails. The result is valid as long as the runtime.
  Result<const PreparedOperation*> prepare(const Problem& problem);
  /// Returns the answer that prepare() would run, or the alternative of a chain. Compiles nothing.
  /// A rule that matches decides; else it is the look-up's answer for the problem if the match is
  /// exact, else that for its bucket, so that problems of a bucket share kernels. Fails with
  /// `constraints` and the rule if the problem or the device does not allow the rule's
  /// configuration.
  Result<Answer> answer(const Problem& problem);
  /// Returns which alternative a pipeline records for a chain (kernels/chains/chains.hpp), as the
  /// variant of the answer's configuration: by a rule, else by the databases, else the chain's
  /// default.
  Result<Answer> choose(const Problem& chain);
  /// Returns whether the weights of products should be rows or panels, by what answer() returns for
  /// both (choose_packing()). Compiles nothing.
  Result<PackingChoice> packing(std::span<const WeightedProduct> products,
                                Unmeasured unmeasured = Unmeasured::rows);
  /// Returns the plan of the looked-up configuration, which prepare() would compile. Compiles
  /// nothing.
  Result<LaunchPlan> plan(const Problem& problem);
  /// Prepares problems with `jobs` threads (0: one per core), so that nothing is compiled later.
  std::vector<Precompiled> precompile(std::span<const Problem> problems, unsigned jobs);
  /// Returns all prepared operations in unspecified order.
  std::vector<const PreparedOperation*> prepared() const;
  const KernelStore& kernels() const { return *kernels_; }

 private:
  Runtime(std::shared_ptr<Device> device, std::shared_ptr<KernelStore> kernels,
          std::unique_ptr<Stream> probe, LookupFiles databases, LookupOptions options);
  static Result<std::unique_ptr<Runtime>> make(std::shared_ptr<Device> device,
                                               std::shared_ptr<KernelStore> kernels,
                                               const LookupFiles& databases,
                                               const LookupOptions& lookup);
  /// Throws Error like Lookup::find.
  Answer look_up(const Problem& problem);
  /// Logs what the look-up could not read since the last call.
  void log_unreadable();
  /// Returns how to find compiled kernels in the databases; empty if they carry none for the
  /// device.
  KernelStore::Binaries binaries();
  void note_without_binary(const KernelSource& source);
  Result<std::unique_ptr<PreparedOperation>> make(const Problem& problem);
  Result<CompiledPlan> compile(const Problem& problem, const Config& config);

  std::shared_ptr<Device> device_;
  /// Records launches to check whether the device accepts them. Runs nothing.
  std::unique_ptr<Stream> probe_;
  LookupFiles databases_;
  LookupOptions lookup_options_;
  Lookup lookup_;
  struct Rule {
    UseRule rule;
    bool matched = false, decided = false;
  };
  std::vector<Rule> rules_;
  std::unordered_map<Problem, Answer, ProblemHash> forced_;  ///< answers by rules
  std::vector<Problem> chains_;                              ///< that alternatives were chosen for
  std::shared_ptr<KernelStore> kernels_;
  std::unordered_map<Problem, std::unique_ptr<PreparedOperation>, ProblemHash> prepared_;
  Telemetry telemetry_;
  Deadline patience_ = RuntimeOptions{}.patience;
  std::function<Result<void>()> before_step_;
  bool rounded_weights_ = false;
  bool overlap_ = true;
  std::vector<std::string> targets_;  ///< binary_targets() of the device
  std::optional<bool> has_binaries_;  ///< whether the databases carry kernels for them
  std::atomic<bool> told_without_binary_{false};
  std::size_t unreadable_ = 0;  ///< number of unreadable look-up entries that were logged
};

}  // namespace greta::runtime
