#pragma once

#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/pipeline/c/abi.hpp"
#include "runtime/pipeline/c/greta.h"
#include "runtime/pipeline/compute/pipeline.hpp"
#include "runtime/pipeline/compute/queue.hpp"
#include "runtime/pipeline/compute/runtime.hpp"

// The handles of greta.h. Each one keeps its runtime alive; members are destroyed before it.

struct greta_prepared {
  const greta::runtime::Runtime* runtime = nullptr;
  const greta::runtime::PreparedOperation* operation = nullptr;
};

struct greta_runtime {
  std::shared_ptr<greta::runtime::Runtime> runtime;
  std::string id, name;
  std::list<std::string> loaded{};  ///< results of greta_operation_load()
  std::string described{};          ///< result of greta_runtime_describe()
  std::string key{};                ///< result of greta_runtime_problem()
  std::string answer{};             ///< result of greta_runtime_lookup()
  std::string packing{};            ///< result of greta_runtime_packing()
  std::string rules{};              ///< result of greta_runtime_rules()
  /// Results of greta_runtime_prepare(), by operation.
  std::unordered_map<const greta::runtime::PreparedOperation*, greta_prepared> prepared{};
};

struct greta_tensor {
  std::shared_ptr<greta::runtime::Runtime> runtime;
  greta::runtime::Tensor tensor;
};

struct greta_operations {
  std::shared_ptr<greta::runtime::Runtime> runtime;
  greta::runtime::Operations* operations = nullptr;
};

struct greta_graph {
  std::shared_ptr<greta::runtime::Runtime> runtime;
  std::shared_ptr<greta::runtime::PipelineGraph> graph;
  std::string text;  ///< result of greta_graph_explain()
};

struct greta_queue {
  std::shared_ptr<greta::runtime::Runtime> runtime;
  std::vector<std::shared_ptr<greta::runtime::PipelineGraph>>
      replayed;  ///< since the last synchronisation
  std::unique_ptr<greta::runtime::Queue> queue;
  greta_operations operations;
};

struct greta_pipeline {
  std::shared_ptr<greta::runtime::Runtime> runtime;
  std::unique_ptr<greta::runtime::Pipeline> pipeline;
  greta_operations operations;
};

namespace greta::runtime::c {

/// Throws Error if the objects belong to different runtimes.
void check_runtime(const std::shared_ptr<Runtime>& own, const std::shared_ptr<Runtime>& other,
                   const char* what);

DType dtype_of(greta_dtype dtype);
Shape shape_of(const std::int64_t* shape, std::size_t rank);
/// Another library's memory, which is released with this object.
struct Released {
  greta_release release = nullptr;  ///< null: none yet
  void* context = nullptr;
  Released() = default;
  Released(const Released&) = delete;
  Released& operator=(const Released&) = delete;
  ~Released() {
    if (release != nullptr) release(context);
  }
};
/// Creates a handle.
greta_tensor* handle(const std::shared_ptr<Runtime>& runtime, Tensor tensor);

}  // namespace greta::runtime::c
