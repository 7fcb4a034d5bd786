#include "tests/device/hip/fake/fake_stream.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "tests/device/hip/fake/fake_memory.hpp"
#include "tests/layers.hpp"

namespace greta::test {

namespace {

constexpr int commands_at_once = 16;  // executed before a query is answered

struct Event {
  double ns = 0;    ///< device clock when it was last reached
  int pending = 0;  ///< recordings not reached yet
  Stream* stream = nullptr;
};

/// The work of hipGraphLaunch. Launches in flight share the graph.
struct Executable {
  std::shared_ptr<const Graph> graph;
};

std::map<int, double> clocks;  ///< by device, in ns

/// Executes up to `most` commands. A failure is sticky, and the device then executes nothing more.
void advance(const Call& call, Stream& stream, int most) {
  for (; most > 0 && !stream.commands.empty() && !fake.busy; --most) {
    if (fake.sticking.contains(current_device)) return;
    const Command command = std::move(stream.commands.front());
    stream.commands.pop_front();
    clocks[current_device] += command(call);
  }
}

void finish(const Call& call, Stream& stream) {
  while (!stream.commands.empty() && !fake.busy && !fake.sticking.contains(current_device)) {
    advance(call, stream, commands_at_once);
  }
}

int answer(const Call& call, bool done) {
  const auto sticking = fake.sticking.find(current_device);
  if (call.error() != success) return call.error();
  if (sticking != fake.sticking.end()) return sticking->second;
  return done && !fake.busy ? success : not_ready;
}

bool is_stream(const Call& call, const Stream* stream) {
  return is_object(call, stream, "hipStreamDestroy");
}

template <typename Type>
int make(const Call& call, Type** to, const char* ended_by) {
  if (call.error() != success) return call.error();
  *to = new Type;
  add_object(*to, ended_by);
  return success;
}

template <typename Type>
int end(const Call& call, Type* object, const char* ended_by) {
  if (call.error() != success) return call.error();
  if (!remove_object(call, object, ended_by)) return invalid_handle;
  delete object;
  return success;
}

}  // namespace

void add_command(Stream& stream, Command command) {
  if (stream.capturing) {
    stream.capturing->commands.push_back(std::move(command));
  } else {
    stream.commands.push_back(std::move(command));
  }
}

bool finish_all(const Call& call) {
  for (const auto& [object, of] : objects) {
    if (of.device != current_device || of.ended_by != "hipStreamDestroy") continue;
    Stream& stream = *static_cast<Stream*>(const_cast<void*>(object));
    finish(call, stream);
    if (fake.busy && !stream.commands.empty()) {
      call.misused("waits for work that never ends");
      return false;
    }
  }
  return true;
}

void forget_streams(int device) {
  clocks.erase(device);
}

}  // namespace greta::test

using namespace greta::test;

extern "C" {

#ifdef FAKE_CUDA
int cuMemcpyAsync(void* to, const void* from, std::size_t bytes, Stream* stream) {
  const Call call("hipMemcpyAsync");
  constexpr bool from_program = false, to_program = false;
#else
int hipMemcpyAsync(void* to, const void* from, std::size_t bytes, int kind, Stream* stream) {
  const Call call("hipMemcpyAsync");
  // GRETA uses hipMemcpyDefault. Other programs also copy from and to their own memory.
  const bool from_program = kind == 1, to_program = kind == 2;
  if (kind != 4 && !from_program && !to_program) return call.misused("an unknown kind");
#endif
  if (call.error() != success) return call.error();
  if (!is_stream(call, stream)) return invalid_handle;
  const auto target_of = [=](const Call& asking) {
    return to_program ? static_cast<std::byte*>(to) : bytes_at(asking, to, bytes);
  };
  const auto origin_of = [=](const Call& asking) -> const std::byte* {
    return from_program ? static_cast<const std::byte*>(from) : bytes_at(asking, from, bytes);
  };
  if (target_of(call) == nullptr || origin_of(call) == nullptr) return invalid_value;
  add_command(*stream, [=](const Call& later) {
    std::byte* const target = target_of(later);
    const std::byte* const origin = origin_of(later);
    if (target != nullptr && origin != nullptr) std::copy_n(origin, bytes, target);
    return command_ns + byte_ns * static_cast<double>(bytes);
  });
  return success;
}
#ifndef FAKE_CUDA
int hipMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device,
                       std::size_t bytes, Stream* stream) {
  const Call call("hipMemcpyPeerAsync");
  if (to_device < 0 || to_device >= fake.devices || from_device < 0 ||
      from_device >= fake.devices) {
    return call.misused("of a device that is not there", invalid_device);
  }
  return hipMemcpyAsync(to, from, bytes, 4, stream);
}
#endif
int NAME(hipMemsetD32Async, cuMemsetD32Async)(void* to, int value, std::size_t count,
                                              Stream* stream) {
  const Call call("hipMemsetD32Async");
  if (call.error() != success) return call.error();
  if (!is_stream(call, stream)) return invalid_handle;
  if (bytes_at(call, to, 4 * count) == nullptr) return invalid_value;
  add_command(*stream, [=](const Call& later) {
    std::byte* const target = bytes_at(later, to, 4 * count);
    if (target != nullptr) std::fill_n(reinterpret_cast<int*>(target), count, value);
    return command_ns + byte_ns * 4 * static_cast<double>(count);
  });
  return success;
}

int NAME(hipStreamCreateWithFlags, cuStreamCreate)(Stream** stream, unsigned flags) {
  const Call call("hipStreamCreateWithFlags");
  if (flags != 1) return call.misused("not hipStreamNonBlocking");
  return make(call, stream, "hipStreamDestroy");
}
int NAME(hipStreamDestroy, cuStreamDestroy_v2)(Stream* stream) {
  const Call call("hipStreamDestroy");
  if (call.error() != success) return call.error();
  if (!is_stream(call, stream)) return invalid_handle;
  if (stream->capturing) call.misused("while it is captured");
  finish(call, *stream);
  if (!stream->commands.empty() && fake.busy) return call.misused("waits for what never ends");
  return end(call, stream, "hipStreamDestroy");
}
int NAME(hipStreamQuery, cuStreamQuery)(Stream* stream) {
  const Call call("hipStreamQuery");
  if (call.error() != success) return call.error();
  if (!is_stream(call, stream)) return invalid_handle;
  if (stream->capturing) return call.misused("while it is captured", capture_unsupported);
  const bool had_work = !stream->commands.empty();
  advance(call, *stream, commands_at_once);
  return answer(call, !had_work || stream->commands.empty());
}
/// For programs other than GRETA, which waits with a deadline.
int NAME(hipStreamSynchronize, cuStreamSynchronize)(Stream* stream) {
  const Call call("hipStreamSynchronize");
  if (call.error() != success) return call.error();
  if (!is_stream(call, stream)) return invalid_handle;
  if (stream->capturing) return call.misused("while it is captured", capture_unsupported);
  finish(call, *stream);
  if (!stream->commands.empty() && fake.busy) return call.misused("waits for what never ends");
  return answer(call, stream->commands.empty());
}
int NAME(hipStreamWaitEvent, cuStreamWaitEvent)(Stream* stream, Event* event, unsigned flags) {
  const Call call("hipStreamWaitEvent");
  if (call.error() != success) return call.error();
  if (flags != 0) return call.misused("flags that are not 0");
  if (!is_stream(call, stream) || !is_object(call, event, "hipEventDestroy")) return invalid_handle;
  if (event->pending == 0) return success;
  add_command(*stream, [event, origin = event->stream](const Call& later) {
    while (event->pending > 0 && objects.contains(origin) && !fake.busy &&
           !fake.sticking.contains(current_device)) {
      advance(later, *origin, 1);
    }
    return 0.0;
  });
  return success;
}
int NAME(hipStreamBeginCapture, cuStreamBeginCapture_v2)(Stream* stream, int mode) {
  const Call call("hipStreamBeginCapture");
  if (call.error() != success) return call.error();
  if (mode != 2) return call.misused("not hipStreamCaptureModeRelaxed");
  if (!is_stream(call, stream)) return invalid_handle;
  if (stream->capturing) return call.misused("twice");
  stream->capturing = std::make_unique<Graph>();
  return success;
}
int NAME(hipStreamEndCapture, cuStreamEndCapture)(Stream* stream, Graph** graph) {
  const Call call("hipStreamEndCapture");
  if (call.error() != success && objects.contains(stream)) stream->capturing.reset();
  if (call.error() != success) return call.error();
  if (!is_stream(call, stream)) return invalid_handle;
  if (!stream->capturing) return call.misused("of a stream that is not captured");
  *graph = stream->capturing.release();
  add_object(*graph, "hipGraphDestroy");
  return success;
}

#ifndef FAKE_WITHOUT_GRAPHS
int NAME(hipGraphInstantiateWithFlags, cuGraphInstantiateWithFlags)(Executable** executable,
                                                                    Graph* graph,
                                                                    unsigned long long flags) {
  const Call call("hipGraphInstantiateWithFlags");
  if (call.error() != success) return call.error();
  if (flags != 0) return call.misused("flags that are not 0");
  if (!is_object(call, graph, "hipGraphDestroy")) return invalid_handle;
  const int error = make(call, executable, "hipGraphExecDestroy");
  if (error == success) (*executable)->graph = std::make_shared<const Graph>(*graph);
  return error;
}
#endif
int NAME(hipGraphLaunch, cuGraphLaunch)(Executable* executable, Stream* stream) {
  const Call call("hipGraphLaunch");
  if (call.error() != success) return call.error();
  if (!is_object(call, executable, "hipGraphExecDestroy") || !is_stream(call, stream)) {
    return invalid_handle;
  }
  if (stream->capturing) return call.misused("into a graph", capture_unsupported);
  // Each command holds a reference to the graph, so that destroying it too early is detected.
  for (const auto& command : executable->graph->commands) {
    add_command(*stream, [graph = executable->graph, &command](const Call& later) {
      return command(later);
    });
  }
  return success;
}
int NAME(hipGraphExecDestroy, cuGraphExecDestroy)(Executable* executable) {
  const Call call("hipGraphExecDestroy");
  if (call.error() == success && objects.contains(executable) &&
      executable->graph.use_count() > 1) {
    call.misused("while it runs");
  }
  return end(call, executable, "hipGraphExecDestroy");
}
int NAME(hipGraphDestroy, cuGraphDestroy)(Graph* graph) {
  return end(Call("hipGraphDestroy"), graph, "hipGraphDestroy");
}

int NAME(hipEventCreateWithFlags, cuEventCreate)(Event** event, unsigned flags) {
  const Call call("hipEventCreateWithFlags");
  if (flags != 0) return call.misused("not hipEventDefault");
  return make(call, event, "hipEventDestroy");
}
int NAME(hipEventDestroy, cuEventDestroy_v2)(Event* event) {
  const Call call("hipEventDestroy");
  if (call.error() == success && objects.contains(event) && event->pending > 0) {
    return call.misused("while a stream is to record it");
  }
  return end(call, event, "hipEventDestroy");
}
int NAME(hipEventRecord, cuEventRecord)(Event* event, Stream* stream) {
  const Call call("hipEventRecord");
  if (call.error() != success) return call.error();
  if (!is_object(call, event, "hipEventDestroy") || !is_stream(call, stream)) return invalid_handle;
  if (stream->capturing) return call.misused("into a graph", capture_unsupported);
  ++event->pending;
  event->stream = stream;
  add_command(*stream, [event](const Call&) {
    --event->pending;
    event->ns = clocks[current_device];
    return 0.0;
  });
  return success;
}
int NAME(hipEventQuery, cuEventQuery)(Event* event) {
  const Call call("hipEventQuery");
  if (call.error() != success) return call.error();
  if (!is_object(call, event, "hipEventDestroy")) return invalid_handle;
  if (event->pending > 0 && is_stream(call, event->stream)) advance(call, *event->stream, 1);
  return answer(call, event->pending == 0);
}
int NAME(hipEventElapsedTime, cuEventElapsedTime)(float* milliseconds, Event* start, Event* stop) {
  const Call call("hipEventElapsedTime");
  if (call.error() != success) return call.error();
  for (const Event* const event : {start, stop}) {
    if (!is_object(call, event, "hipEventDestroy")) return invalid_handle;
    if (event->stream == nullptr) return call.misused("of an event that was never recorded");
    if (event->pending > 0) return not_ready;
  }
  *milliseconds = static_cast<float>((stop->ns - start->ns) / 1e6);
  return success;
}

}  // extern "C"
