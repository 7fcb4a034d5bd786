#include "tuner/bench/benchmark_names.hpp"

namespace greta::tuner {

std::vector<std::string> names_of(const std::vector<Named>& list) {
  std::vector<std::string> names;
  for (const auto& entry : list) names.push_back(entry.name);
  return names;
}

const std::vector<Named>& platform_names() {
  static const std::vector<Named> list{
      {"cpu_copy", "the host's memory copied by all its cores"},
      {"cpu_latency", "a dependent read of the host's memory, far beyond its caches"},
      {"copy", "the device's memory copied by a kernel, far beyond its caches"},
      {"copy_command", "the same by the API's copy command"},
      {"read", "the device's memory read by a kernel, far beyond its caches"},
      {"write", "the same, written"},
      {"triad", "the same, of a = b + s c: two arrays read and one written"},
      {"fill", "the same, written by the API's fill command"},
      {"cache_bandwidth", "working sets read again and again, from 16 KiB to beyond the caches"},
      {"cache_latency", "a dependent read of the same working sets"},
      {"latency", "a dependent read of the device's memory, far beyond its caches"},
      {"cached_latency", "the same within 16 KiB"},
      {"empty_launch", "device time of a kernel that does nothing"},
      {"synchronise", "submitting an empty kernel and waiting for it, host time"},
      {"synchronise_graph", "the same for a graph of an empty kernel"},
      {"upload", "blocking copies from the host to the device: 4 B, 64 KiB and 16 MiB"},
      {"download", "blocking copies from the device to the host: 4 B, 64 KiB and 16 MiB"},
      {"upload_stream", "copies from the host's staging memory to the device in a stream"},
      {"download_stream", "copies from the device to the host's staging memory in a stream"},
      {"both_ways", "both at the same time, in two streams"},
      {"upload_and_compute", "the upload beside arithmetic that takes as long as it alone"},
      {"both_ways_and_compute", "both ways beside that arithmetic"},
      {"peer_write", "copies to each other card of the same API, without the host where they can"},
      {"peer_read", "the same from each other card"},
      {"peer_both_ways", "both cards of each pair write to the other at the same time"},
      {"peer_latency", "a copy of 4 B to each other card and waiting for it, host time"},
  };
  return list;
}

const std::vector<Named>& runtime_names() {
  static const std::vector<Named> list{
      {"allocate", "memory from the pool and back, 256 B and 1 MiB"},
      {"allocate_new", "96 MiB from the driver and back"},
      {"record_launch", "the host's side of recording one launch"},
      {"dispatch", "one launch of 256 in a submission, empty kernels"},
      {"graph_replay", "one launch of 256 in a graph that is replayed, empty kernels"},
      {"event_pair", "device time between two events with nothing between them"},
      {"event_error", "host time of a long submission less the time between its events"},
      {"telemetry_off", "a counter and a span while telemetry is off"},
      {"telemetry_on", "the same with a sink that counts"},
  };
  return list;
}

const std::vector<Named>& check_names() {
  static const std::vector<Named> list{
      {"fill", "memory can be allocated, filled, copied and read back"},
      {"ultrasafe", "the simplest kernel, one thread per output, gives correct results"},
      {"default", "every operation's default configuration gives correct results in f32"},
      {"f16",
       "every operation's default configuration gives correct results in types shorter than f32"},
      {"matrix", "GEMM on each of the device's matrix operations gives correct results"},
  };
  return list;
}

}  // namespace greta::tuner
