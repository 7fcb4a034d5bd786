#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "db/lookup/lookup.hpp"
#include "runtime/device/backend.hpp"
#include "runtime/pipeline/compute/prepared.hpp"
#include "runtime/pipeline/compute/telemetry.hpp"
#include "runtime/pipeline/compute/tensor.hpp"

namespace greta::runtime {

class Queue;

struct RuntimeOptions {
  std::string device = "auto";  ///< as select_device()
  OpenOptions open{};
  LookupFiles databases{};  ///< none: every operation runs its default configuration
  LookupOptions lookup{};   ///< which of their results are used
  Deadline patience = std::chrono::seconds(60);  ///< how long Queue::synchronize() waits
};

/// What became of one problem of Runtime::precompile.
struct Precompiled {
  std::string problem;             ///< key
  std::size_t kernels = 0;         ///< that it launches
  std::size_t from_cache = 0;      ///< of these, the disk cache had
  std::optional<Failure> failure;  ///< why it can't run
};

/// A device with what is known of it: memory, look-up, and operations that were prepared. Belongs
/// to one thread at a time, and outlives what it made.
class Runtime {
 public:
  /// Opens a device and databases. Fails as open_device() and Lookup::open() do.
  static Result<std::unique_ptr<Runtime>> open(const RuntimeOptions& options);
  /// A runtime of a device that is open already.
  static Result<std::unique_ptr<Runtime>> of(std::unique_ptr<Device> device,
                                             const LookupFiles& databases = {},
                                             const LookupOptions& lookup = {});
  /// A runtime of the same open device with other databases: tensors of the one serve the other.
  static Result<std::unique_ptr<Runtime>> beside(const Runtime& other, const LookupFiles& databases,
                                                 const LookupOptions& lookup = {});
  ~Runtime();

  Device& device() { return *device_; }
  const Lookup& lookup() const { return lookup_; }
  /// The operations that can be run: LookupOptions::catalog.
  const Catalog& catalog() const { return lookup_.catalog(); }
  /// Counts what runs, where it is switched on.
  Telemetry& telemetry() { return telemetry_; }
  Deadline patience() const { return patience_; }

  /// Fresh memory; its contents are anything.
  Result<Tensor> allocate(DType dtype, const Shape& shape, Memory memory = Memory::device);
  /// allocate(), which throws its failure.
  TensorMaker maker();
  /// Blocking copies from and to packed elements of the host; the tensor is contiguous, and the
  /// bytes are exactly its. Work in flight is not waited for: see Device::upload.
  Result<void> upload(const Tensor& to, std::span<const std::byte> from);
  Result<void> download(const Tensor& from, std::span<std::byte> to);

  /// A queue of operations that run at once, in order. Queues run beside each other.
  Result<std::unique_ptr<Queue>> queue();

  /// The problem made ready: looked up, rendered and compiled the first time, then at hand. A
  /// problem that is not recorded runs what its bucket does (lookup/bucket.hpp). Where
  /// the configuration that was looked up does not compile or launch on this driver, that is said
  /// once, and the default is used. Valid as long as the runtime.
  Result<const PreparedOperation*> prepare(const Problem& problem);
  /// What prepare() would compile for a problem, as it was looked up. Compiles nothing.
  Result<LaunchPlan> plan(const Problem& problem);
  /// Prepares many problems with `jobs` threads, 0: as many as there are cores, so that nothing
  /// compiles later.
  std::vector<Precompiled> precompile(std::span<const Problem> problems, unsigned jobs);
  /// Everything that was prepared, in no order.
  std::vector<const PreparedOperation*> prepared() const;
  const KernelStore& kernels() const { return *kernels_; }

 private:
  Runtime(std::shared_ptr<Device> device, std::shared_ptr<KernelStore> kernels,
          std::unique_ptr<Stream> probe, Lookup lookup);
  static Result<std::unique_ptr<Runtime>> make(std::shared_ptr<Device> device,
                                               std::shared_ptr<KernelStore> kernels,
                                               const LookupFiles& databases,
                                               const LookupOptions& lookup);
  /// The answer for a problem where it is known exactly, else that for its bucket, so that problems
  /// of a bucket share their kernels. Throws Error as Lookup::find does.
  Answer look_up(const Problem& problem);
  Result<std::unique_ptr<PreparedOperation>> make(const Problem& problem);
  Result<CompiledPlan> compile(const Problem& problem, const Config& config);

  std::shared_ptr<Device> device_;
  std::unique_ptr<Stream> probe_;  ///< records launches to see whether they are taken; runs nothing
  Lookup lookup_;
  std::shared_ptr<KernelStore> kernels_;
  std::unordered_map<Problem, std::unique_ptr<PreparedOperation>, ProblemHash> prepared_;
  Telemetry telemetry_;
  Deadline patience_ = RuntimeOptions{}.patience;
  std::size_t unreadable_ = 0;  ///< lines of the look-up that were logged
};

}  // namespace greta::runtime
