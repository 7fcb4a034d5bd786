#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/pipeline/compute/arena.hpp"
#include "runtime/pipeline/compute/operations.hpp"
#include "runtime/pipeline/compute/queue.hpp"
#include "runtime/pipeline/compute/runtime.hpp"

namespace greta::runtime {

/// An operation or a copy in a pipeline.
struct RecordedOperation {
  std::string label;                            ///< e.g. "layer 3 attention", from Pipeline::label
  const PreparedOperation* prepared = nullptr;  ///< null: a copy
  std::vector<Tensor> operands;                 ///< of a copy: to, from
};

/// An operation that was recorded and not yet prepared.
struct RecordedProblem {
  std::string label;  ///< from Pipeline::label
  Problem problem;
};

/// The alternative that was recorded for a chain of operations.
struct ChosenChain {
  Problem chain;
  Answer answer;  ///< its configuration's variant is the alternative
  /// Alternatives in place of which others are recorded here.
  std::map<std::string, std::string> instead{};

  bool operator==(const ChosenChain& other) const {
    return chain == other.chain && answer.config.variant == other.answer.config.variant;
  }
};

/// Device time of one operation.
struct OperationTime {
  double start_us = 0;  ///< since the start of the first operation
  double us = 0;
};

/// One line of PipelineGraph::explain().
struct Explanation {
  std::string label;
  std::string problem;  ///< key; "copy" for a copy
  std::string config;   ///< empty for a copy
  std::string origin;   ///< see Answer::origin_text()
  std::optional<double> expected_regret;
  std::optional<double> speedup;  ///< certified, over the default; std::nullopt for a default
  std::string remark;             ///< why another configuration was replaced
  std::size_t launches = 0;       ///< of kernels
};

/// Sizes of a graph's device memory in bytes.
struct PipelineMemory {
  std::size_t arena = 0;        ///< of temporaries, which share memory by liveness
  std::size_t temporaries = 0;  ///< size of the temporaries without sharing
  std::size_t workspace = 0;    ///< of the kernels, shared by all
};

/// A sequence of operations with its memory, replayed by Queue::replay(). Keeps the memory that it
/// uses alive. Replays share the arena, so only one may be in flight, except in order on one queue.
/// A graph must not be destroyed while a replay is in flight.
class PipelineGraph {
 public:
  ~PipelineGraph();
  PipelineGraph(const PipelineGraph&) = delete;
  PipelineGraph& operator=(const PipelineGraph&) = delete;

  const std::vector<RecordedOperation>& operations() const { return operations_; }
  const PipelineMemory& memory() const { return memory_; }
  /// Returns the alternatives of its chains, in order of first appearance. A chain has two if the
  /// norm that it begins with is computed already in some places.
  const std::vector<ChosenChain>& chains() const { return chains_; }
  /// Returns for each operation what runs, where it came from, and its speedup.
  std::vector<Explanation> explain() const;
  /// Runs the operations one by one with timestamps between them, waits, and returns when each ran.
  Result<std::vector<OperationTime>> time(Queue& queue) const;

 private:
  friend class Pipeline;
  friend class Queue;

  PipelineGraph() = default;
  /// Records all operations, whose launches may overlap.
  Result<void> record(Stream& stream) const;
  /// Records one operation. With `overlap`, its launches may overlap the operation before it.
  Result<void> record(Stream& stream, std::size_t operation, bool overlap) const;

  std::vector<RecordedOperation> operations_;
  std::vector<ChosenChain> chains_;
  std::vector<std::vector<std::uint64_t>> addresses_;  ///< of the operands
  /// Which operands nothing in the graph writes. Empty if operations may not overlap.
  std::vector<std::vector<bool>> constant_;
  LaunchOrder within_ = LaunchOrder::in_turn;  ///< of an operation's launches after its first one
  std::shared_ptr<Buffer> arena_, workspace_;
  std::uint64_t boundary_ = 0;  ///< address up to which the workspace is zero between operations
  PipelineMemory memory_;
  std::unique_ptr<Graph> graph_;  ///< null: operations are launched one by one
  std::shared_ptr<std::uint64_t> replays_;
};

struct PipelineOptions {
  bool graph = true;  ///< false: replays launch operations one by one, for comparison
  /// Lets launches of an operation overlap those before it, if the runtime does
  /// (RuntimeOptions::overlap).
  bool overlap = true;
  unsigned jobs = 0;  ///< number of threads that compile missing kernels; 0: one per core
};

/// Records operations into a graph. Between replays only the contents of memory change: positions,
/// lengths and ids are on the device, and copies from host-visible (staging) tensors are part of
/// the graph. A failed call leaves the recording unchanged. Nothing is compiled or allocated before
/// finish(), so a pipeline of placeholders can be used to compute memory requirements.
class Pipeline final : public Operations {
 public:
  explicit Pipeline(Runtime& runtime);

  /// Returns a tensor that is live from the first operation that writes it to the last that uses
  /// it, within a replay. It shares its memory with tensors that are live at other times.
  Tensor temporary(DType dtype, const Shape& shape);
  /// Sets the label of the operations that follow.
  void label(std::string text) { label_ = std::move(text); }
  const std::string& label() const { return label_; }
  /// Keeps a temporary's contents until the end of a replay, so that it can be read afterwards.
  /// Throws Error for a tensor that is not a temporary of this pipeline.
  void keep(const Tensor& temporary);

  /// Returns the alternative for a chain, as Runtime::choose().
  Result<Answer> look_up(const Problem& chain);
  /// Returns the alternative to record for a chain, which the functions of chains.hpp do, and
  /// remembers it for PipelineGraph::chains(). `instead` has alternatives to record in place of
  /// others, which differ from them in what is computed already.
  Result<Answer> choose(const Problem& chain,
                        const std::map<std::string, std::string>& instead = {});
  /// Returns the alternatives that choose() returned so far.
  const std::vector<ChosenChain>& chains() const { return chains_; }

  Result<void> copy(const Tensor& to, const Tensor& from) override;
  Result<void> run(const Problem& problem, std::span<const Tensor> operands) override;
  const Catalog& catalog() const override;

  /// Returns the distinct problems recorded so far, in order of first appearance.
  std::vector<Problem> problems() const;
  /// Returns all operations recorded so far, in order, without copies.
  std::vector<RecordedProblem> recorded() const;
  /// Returns the memory that finish() would allocate. Fails if a temporary is read before it is
  /// written, or if a problem has no valid configuration.
  Result<PipelineMemory> memory();

  /// Compiles missing kernels, plans memory and creates the graph. Temporaries have addresses from
  /// then on. Fails like memory(), and for kernels that do not compile, operands without memory,
  /// and insufficient device memory. The pipeline is empty afterwards.
  Result<std::unique_ptr<PipelineGraph>> finish(const PipelineOptions& options = {});

 private:
  /// An operation or a copy.
  struct Step {
    std::string label;
    std::optional<Problem> problem;  ///< std::nullopt: a copy
    std::vector<TensorSpec> specs;   ///< of the operands
    std::vector<Tensor> operands;

    std::string name() const;
    bool writes(std::size_t operand) const;
    std::string operand_name(std::size_t operand) const;
  };
  using Lifetimes = std::unordered_map<Storage*, Lifetime>;
  /// The temporaries in use and their places in the arena.
  struct Places {
    std::vector<Storage*> storages;
    ArenaPlan plan;
    std::size_t bytes = 0;  ///< total size
  };

  Result<void> check_storage(std::span<const Tensor> operands) const;
  Result<Lifetimes> lifetimes() const;
  Result<Places> places() const;
  /// Compiles the operations.
  Result<void> prepare(PipelineGraph& graph, unsigned jobs);
  /// Allocates the arena, assigns addresses to temporaries, and allocates the workspace.
  Result<void> place(PipelineGraph& graph);
  Result<void> add_workspace(PipelineGraph& graph);
  Result<void> add_addresses(PipelineGraph& graph) const;
  /// Finds the operands that nothing writes. Pools and views of one buffer count as one.
  void find_constants(PipelineGraph& graph) const;

  Runtime& runtime_;
  std::uint64_t number_;  ///< unique number of this recording
  std::string label_;
  std::vector<Step> steps_;
  std::vector<ChosenChain> chains_;
  std::vector<std::shared_ptr<Storage>> temporaries_;
  std::vector<std::shared_ptr<Storage>> kept_;
};

}  // namespace greta::runtime
