// Queues, pipelines and graphs of greta.h.
#include <chrono>

#include "runtime/device/interop.hpp"
#include "runtime/pipeline/c/handles.hpp"

using namespace greta::runtime;     // NOLINT
using namespace greta::runtime::c;  // NOLINT

namespace {

/// Returns e.g. "layer 0 sum | add dtype=… | flat THREADS=… | default".
std::string line_of(const Explanation& line) {
  std::string text = fmt::format("{} | {}", line.label, line.problem);
  if (!line.config.empty()) text += fmt::format(" | {} | {}", line.config, line.origin);
  if (line.speedup) text += fmt::format(" | {:.3g}x the default's speed", *line.speedup);
  if (line.expected_regret) text += fmt::format(" | expected regret {:.3g}", *line.expected_regret);
  if (!line.remark.empty()) text += " | instead of " + line.remark;
  return text + "\n";
}

/// Makes the handle of a queue that was opened.
Result<void> give(const greta_runtime& runtime, Result<std::unique_ptr<Queue>> opened,
                  greta_queue** queue) {
  if (!opened) return opened.failure();
  auto made = std::make_unique<greta_queue>();
  made->runtime = runtime.runtime;
  made->queue = *std::move(opened);
  made->operations = {runtime.runtime, made->queue.get()};
  *queue = made.release();
  return {};
}

}  // namespace

greta_status greta_queue_open(greta_runtime* runtime, greta_queue** queue) {
  return guarded([&]() -> Result<void> {
    need(queue, "queue");
    need(runtime, "runtime");
    return give(*runtime, runtime->runtime->queue(), queue);
  });
}

greta_status greta_queue_open_on(greta_runtime* runtime, void* stream, greta_queue** queue) {
  return guarded([&]() -> Result<void> {
    need(queue, "queue");
    need(runtime, "runtime");
    return give(*runtime, runtime->runtime->queue_on(stream), queue);
  });
}

greta_status greta_queue_stream(const greta_queue* queue, void** stream) {
  return guarded([&]() -> Result<void> {
    need(queue, "queue");
    need(stream, "stream");
    const auto other = interop(queue->runtime->device());
    if (!other) return other.failure();
    const auto native = (*other)->native(queue->queue->stream());
    if (!native) return native.failure();
    *stream = *native;
    return {};
  });
}

void greta_queue_close(greta_queue* queue) {
  delete queue;
}

greta_operations* greta_queue_operations(greta_queue* queue) {
  return queue == nullptr ? nullptr : &queue->operations;
}

greta_status greta_queue_submit(greta_queue* queue) {
  return guarded([&] { return need(queue, "queue").queue->submit(); });
}

greta_status greta_queue_run(greta_queue* queue, const greta_prepared* prepared,
                             const std::uint64_t* addresses, std::size_t count) {
  return guarded([&]() -> Result<void> {
    need(queue, "queue");
    if (need(prepared, "prepared").runtime != queue->runtime.get()) {
      refuse("prepared belongs to another runtime");
    }
    if (count > 0) need(addresses, "addresses");
    auto done = queue->queue->run(*prepared->operation, {addresses, count});
    return done ? queue->queue->submit() : done;
  });
}

greta_status greta_queue_synchronize(greta_queue* queue, double seconds) {
  return guarded([&]() -> Result<void> {
    need(queue, "queue");
    constexpr double day = 86400;
    if (!(seconds > 0 && seconds <= day))
      refuse(fmt::format("seconds is {}: 0 to {}", seconds, day));
    const auto deadline =
        std::chrono::duration_cast<Deadline>(std::chrono::duration<double>(seconds));
    if (auto done = queue->queue->synchronize(deadline); !done) return done;
    queue->replayed.clear();
    return {};
  });
}

greta_status greta_queue_replay(greta_queue* queue, const greta_graph* graph) {
  return guarded([&]() -> Result<void> {
    need(queue, "queue");
    need(graph, "graph");
    check_runtime(queue->runtime, graph->runtime, "the graph");
    auto& kept = queue->replayed;
    if (std::find(kept.begin(), kept.end(), graph->graph) == kept.end()) {
      kept.push_back(graph->graph);
    }
    return queue->queue->replay(*graph->graph);
  });
}

greta_status greta_pipeline_begin(greta_runtime* runtime, greta_pipeline** pipeline) {
  return guarded([&]() -> Result<void> {
    need(runtime, "runtime");
    need(pipeline, "pipeline");
    auto made = std::make_unique<greta_pipeline>();
    made->runtime = runtime->runtime;
    made->pipeline = std::make_unique<Pipeline>(*runtime->runtime);
    made->operations = {runtime->runtime, made->pipeline.get()};
    *pipeline = made.release();
    return {};
  });
}

void greta_pipeline_release(greta_pipeline* pipeline) {
  delete pipeline;
}

greta_operations* greta_pipeline_operations(greta_pipeline* pipeline) {
  return pipeline == nullptr ? nullptr : &pipeline->operations;
}

greta_status greta_pipeline_temporary(greta_pipeline* pipeline, greta_dtype dtype,
                                      const std::int64_t* shape, std::size_t rank,
                                      greta_tensor** tensor) {
  return guarded([&]() -> Result<void> {
    need(pipeline, "pipeline");
    need(tensor, "tensor");
    const DType type = dtype_of(dtype);
    const Shape extents = shape_of(shape, rank);
    *tensor = handle(pipeline->runtime, pipeline->pipeline->temporary(type, extents));
    return {};
  });
}

greta_status greta_pipeline_keep(greta_pipeline* pipeline, const greta_tensor* tensor) {
  return guarded([&]() -> Result<void> {
    need(pipeline, "pipeline");
    check_runtime(pipeline->runtime, need(tensor, "tensor").runtime, "the tensor");
    pipeline->pipeline->keep(tensor->tensor);
    return {};
  });
}

greta_status greta_pipeline_label(greta_pipeline* pipeline, const char* label) {
  return guarded([&]() -> Result<void> {
    need(pipeline, "pipeline").pipeline->label(&need(label, "label"));
    return {};
  });
}

greta_status greta_pipeline_finish(greta_pipeline* pipeline, std::int32_t as_graph,
                                   greta_graph** graph) {
  return guarded([&]() -> Result<void> {
    need(pipeline, "pipeline");
    need(graph, "graph");
    PipelineOptions options;
    options.graph = as_graph != 0;
    auto made = std::make_unique<greta_graph>();
    made->runtime = pipeline->runtime;
    auto finished = pipeline->pipeline->finish(options);
    if (!finished) return finished.failure();
    made->graph = *std::move(finished);
    *graph = made.release();
    return {};
  });
}

void greta_graph_release(greta_graph* graph) {
  delete graph;
}

greta_status greta_graph_explain(greta_graph* graph, const char** text) {
  return guarded([&]() -> Result<void> {
    need(graph, "graph");
    need(text, "text");
    std::string lines;
    for (const Explanation& line : graph->graph->explain()) lines += line_of(line);
    graph->text = std::move(lines);
    *text = graph->text.c_str();
    return {};
  });
}

greta_status greta_graph_memory(const greta_graph* graph, std::size_t* temporaries,
                                std::size_t* workspace) {
  return guarded([&]() -> Result<void> {
    const PipelineMemory& memory = need(graph, "graph").graph->memory();
    if (temporaries != nullptr) *temporaries = memory.arena;
    if (workspace != nullptr) *workspace = memory.workspace;
    return {};
  });
}
