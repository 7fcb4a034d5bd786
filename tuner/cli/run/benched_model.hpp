#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/pipeline/llama/device_weights.hpp"
#include "runtime/pipeline/llama/packing.hpp"
#include "tuner/cli/model/model_options.hpp"
#include "tuner/cli/run/matrix.hpp"
#include "tuner/report/csv.hpp"

namespace greta::tuner::cli {

/// Options of greta-run bench.
struct ModelBenchOptions {
  RuntimeChoice runtime;
  ArchitectureChoice model;
  int rounds = 5;
  std::uint64_t seed = 1;
  bool explain = false;
  MatrixChoice matrix;
};

/// An architecture with random weights, and the ways to run it that are compared: with the winners
/// of databases or with forced configurations beside default ones, and as graphs or not.
class BenchedModel {
 public:
  virtual ~BenchedModel() = default;
  BenchedModel(const BenchedModel&) = delete;
  BenchedModel& operator=(const BenchedModel&) = delete;

  /// Receives a pass that is a graph: its kernels, and which one it is.
  using ExplainVisit =
      std::function<void(const std::string& kernels, const std::string& pass,
                         const PipelineGraph& graph, const std::vector<OperationTime>& times)>;

  /// Times all ways.
  virtual void measure() = 0;
  virtual std::string text() = 0;
  /// Visits the passes that are graphs, with the times of their operations.
  virtual void explain(const ExplainVisit& visit) = 0;
  virtual std::vector<MeasuredResult> results() = 0;
  std::string device_id() const { return untuned_->device().info().id(); }
  /// Returns how the model's matrices are packed (--packing).
  const std::vector<MatrixPacking>& packing() const { return packing_; }
  /// Reports rules that decided about nothing.
  void tell_unused() const;

 protected:
  using Visit = std::function<void(Runtime& runtime, const std::string& kernels, bool graph)>;

  /// Opens the device and creates the weights. Throws CommandError and Error.
  BenchedModel(const ModelBenchOptions& options, LlamaConfig config);
  /// Visits the ways. `kernels` is "tuned", "forced" (by rules of --use) or "default".
  void for_each_way(const Visit& visit);
  MeasuredResult result_of(const std::string& kernels, bool graph, const std::string& name,
                           const std::vector<double>& samples,
                           std::vector<std::pair<std::string, std::int64_t>> dims) const;
  std::string memory_text(std::uint64_t weights, std::uint64_t cache, std::uint64_t passes) const;

  ModelBenchOptions options_;
  LlamaConfig config_;
  std::string date_;
  std::vector<MatrixPacking> packing_;
  std::unique_ptr<Runtime> untuned_, tuned_;
  std::optional<LlamaDeviceWeights> weights_;

 private:
  std::string beside_default() const;
};

/// Returns the bench of sequences of different lengths.
std::unique_ptr<BenchedModel> mix_bench(const ModelBenchOptions& options,
                                        const LlamaConfig& config);

/// Returns a median divided by `parts`, with half the width of its 95 % interval.
std::string time_cell(const std::vector<double>& samples, double parts = 1);
/// Returns half the width of the median's 95 % interval: " ± 0.5 %". Empty for one sample.
std::string spread_text(const std::vector<double>& samples);

}  // namespace greta::tuner::cli
