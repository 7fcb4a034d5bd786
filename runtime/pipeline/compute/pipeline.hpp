#pragma once

#include <cstdint>
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

/// One operation of a pipeline, or a copy.
struct RecordedOperation {
  std::string label;                            ///< "layer 3 attention", as Pipeline::label said
  const PreparedOperation* prepared = nullptr;  ///< null: a copy
  std::vector<Tensor> operands;                 ///< of a copy: to, from
};

/// When one operation ran, by the device's clock.
struct OperationTime {
  double start_us = 0;  ///< since the first operation's start
  double us = 0;
};

/// One line of PipelineGraph::explain().
struct Explanation {
  std::string label;
  std::string problem;  ///< key; "copy" for a copy
  std::string config;   ///< empty for a copy
  std::string origin;   ///< as to_string(LookupOrigin)
  std::optional<double> expected_regret;
  std::optional<double> speedup;  ///< over the default, as certified; nothing for a default
  std::string remark;             ///< why another configuration was replaced
};

/// Bytes of device memory that a graph holds for itself.
struct PipelineMemory {
  std::size_t arena = 0;        ///< of temporaries, sharing memory by liveness
  std::size_t temporaries = 0;  ///< what they would take without sharing
  std::size_t workspace = 0;    ///< of the kernels, shared by all of them
};

/// A sequence of operations with its memory, ready to be replayed by Queue::replay(). Holds the
/// memory that it uses. One replay at a time is in flight, in order on one queue: replays share the
/// arena. Destroyed only when none is.
class PipelineGraph {
 public:
  ~PipelineGraph();
  PipelineGraph(const PipelineGraph&) = delete;
  PipelineGraph& operator=(const PipelineGraph&) = delete;

  const std::vector<RecordedOperation>& operations() const { return operations_; }
  const PipelineMemory& memory() const { return memory_; }
  /// Operation by operation: what runs, where it came from, what it gains.
  std::vector<Explanation> explain() const;
  /// Runs the operations one by one with a timestamp between them, waits, and says when each ran.
  Result<std::vector<OperationTime>> time(Queue& queue) const;

 private:
  friend class Pipeline;
  friend class Queue;

  PipelineGraph() = default;
  /// Records everything, or one operation, in a stream.
  Result<void> record(Stream& stream) const;
  Result<void> record(Stream& stream, std::size_t operation) const;

  std::vector<RecordedOperation> operations_;
  std::vector<std::vector<std::uint64_t>> addresses_;  ///< of the operands
  std::shared_ptr<Buffer> arena_, workspace_;
  std::uint64_t boundary_ = 0;  ///< address up to which the workspace is zero between operations
  PipelineMemory memory_;
  std::unique_ptr<Graph> graph_;  ///< null: launched one by one
  std::shared_ptr<std::uint64_t> replays_;
};

struct PipelineOptions {
  bool graph = true;  ///< false: replays launch operation by operation, for comparison
  unsigned jobs = 0;  ///< threads that compile what is missing; 0: as many as there are cores
};

/// Records operations once into a graph that is replayed with only the contents of memory changed:
/// positions, lengths and ids live on the device, and copies from host-visible (staging) tensors
/// are part of the graph. A failure leaves what was recorded before as it was. Nothing is compiled
/// or allocated before finish(), so that a pipeline of placeholders tells what work takes.
class Pipeline final : public Operations {
 public:
  explicit Pipeline(Runtime& runtime);

  /// A tensor that lives from the first operation that writes it to the last that uses it, within a
  /// replay. Its memory is shared with others that live at other times.
  Tensor temporary(DType dtype, const Shape& shape);
  /// What the operations that come next are called.
  void label(std::string text) { label_ = std::move(text); }
  /// Keeps a temporary's contents until the end of a replay, to be read after it. Throws Error for
  /// what is no temporary of this pipeline.
  void keep(const Tensor& temporary);

  Result<void> copy(const Tensor& to, const Tensor& from) override;
  Result<void> run(const Problem& problem, std::span<const Tensor> operands) override;
  const Catalog& catalog() const override;

  /// The problems of what was recorded, each once, in the order in which they came.
  std::vector<Problem> problems() const;
  /// The memory that finish() would allocate. Fails for a temporary that is read before it is
  /// written, and where there is no configuration.
  Result<PipelineMemory> memory();

  /// Compiles what is missing, plans memory and makes the graph; temporaries have their place from
  /// then on. Fails as memory() does, for what does not compile, for operands without memory, and
  /// for memory that the device does not have. The pipeline is empty afterwards.
  Result<std::unique_ptr<PipelineGraph>> finish(const PipelineOptions& options = {});

 private:
  /// One operation, or a copy.
  struct Step {
    std::string label;
    std::optional<Problem> problem;  ///< nothing: a copy
    std::vector<TensorSpec> specs;   ///< of its operands
    std::vector<Tensor> operands;

    std::string name() const;
    bool writes(std::size_t operand) const;
    std::string operand_name(std::size_t operand) const;
  };
  using Lifetimes = std::unordered_map<Storage*, Lifetime>;
  /// Temporaries that are used, and where they lie in the arena.
  struct Places {
    std::vector<Storage*> storages;
    ArenaPlan plan;
    std::size_t bytes = 0;  ///< of all of them
  };

  Result<void> check_storage(std::span<const Tensor> operands) const;
  Result<Lifetimes> lifetimes() const;
  Result<Places> places() const;
  /// Makes the operations ready to run.
  Result<void> prepare(PipelineGraph& graph, unsigned jobs);
  /// Gives temporaries their places in an arena of the graph, and the graph its workspace.
  Result<void> place(PipelineGraph& graph);
  Result<void> add_workspace(PipelineGraph& graph);
  Result<void> add_addresses(PipelineGraph& graph) const;

  Runtime& runtime_;
  std::uint64_t number_;  ///< of this recording, of all there are
  std::string label_;
  std::vector<Step> steps_;
  std::vector<std::shared_ptr<Storage>> temporaries_;
  std::vector<std::shared_ptr<Storage>> kept_;
};

}  // namespace greta::runtime
