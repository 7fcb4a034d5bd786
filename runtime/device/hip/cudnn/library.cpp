#include <fmt/format.h>

#include <cfloat>
#include <cstring>
#include <mutex>
#include <thread>

#include "runtime/device/hip/attention_library.hpp"
#include "runtime/device/hip/cudnn/attention_graph.hpp"
#include "runtime/device/refusal.hpp"
#include "runtime/device/system/dynamic_library.hpp"

namespace greta::device::hip {

namespace cudnn {
namespace {

/// Owns a handle of the current device.
class OwnedHandle {
 public:
  OwnedHandle(const Functions& functions, const Descriptors& descriptors) : functions_(functions) {
    descriptors.check(functions_.create(&handle_), "cudnnCreate");
  }
  ~OwnedHandle() { functions_.destroy(handle_); }
  OwnedHandle(const OwnedHandle&) = delete;
  OwnedHandle& operator=(const OwnedHandle&) = delete;
  Handle get() const { return handle_; }

 private:
  const Functions& functions_;
  Handle handle_ = nullptr;
};

class PreparedAttention final : public PreparedCall {
 public:
  PreparedAttention(const Functions& functions, const hip::Functions& hip,
                    const AttentionCall& call)
      : functions_(functions),
        hip_(hip),
        call_(call),
        descriptors_(functions, Status::constraints),
        handle_(functions, descriptors_),
        graph_(descriptors_, call_, handle_.get()),
        query_lengths_(nullptr, hip.hipFree),
        window_(static_cast<std::int32_t>(call.window)) {
    choose_plan();
    fill_query_lengths();
  }

  void launch(std::span<const std::byte> arguments, hipStream_t stream) const override;
  std::string algorithm() const override { return algorithm_; }

 private:
  void choose_plan();
  void describe(Descriptor config);
  void fill_query_lengths();
  void* address(Operand operand, const AttentionArguments& at) const;

  const Functions& functions_;
  const hip::Functions& hip_;
  AttentionCall call_;
  Descriptors descriptors_;
  OwnedHandle handle_;
  AttentionGraph graph_;
  Descriptor plan_ = nullptr;
  std::string algorithm_;
  /// In device memory: every sequence has all queries.
  std::unique_ptr<void, hipError_t (*)(void*)> query_lengths_;
  std::int32_t window_;
  float hidden_ = -FLT_MAX;
  mutable std::mutex mutex_;  ///< launches set the handle's stream
};

void PreparedAttention::choose_plan() {
  const Descriptor ranking = descriptors_.make(Kind::engine_heuristics);
  descriptors_.set(ranking, Attribute::engineheur_operation_graph, graph_.descriptor());
  descriptors_.set(ranking, Attribute::engineheur_mode, Type::heur_mode, heur_mode_a);
  descriptors_.finalize(ranking);
  const auto configs = descriptors_.list(ranking, Attribute::engineheur_results,
                                         Kind::engine_config, std::int64_t{call_.rank} + 1);
  if (configs.size() <= call_.rank) {
    throw Refusal(Status::constraints,
                  configs.empty()
                      ? "cuDNN has no engine for this attention"
                      : fmt::format("cuDNN ranks {} engines for this attention", configs.size()));
  }
  plan_ = descriptors_.make(Kind::execution_plan);
  descriptors_.set_handle(plan_, Attribute::execution_plan_handle, handle_.get());
  descriptors_.set(plan_, Attribute::execution_plan_engine_config, configs.back());
  descriptors_.finalize(plan_);
  const auto needed = static_cast<std::uint64_t>(
      descriptors_.number(plan_, Attribute::execution_plan_workspace_size));
  if (needed > call_.workspace_bytes) {
    throw Refusal(Status::constraints,
                  fmt::format("cuDNN: the engine needs {} bytes of workspace", needed));
  }
  describe(configs.back());
}

// Knobs are the engine's settings, whose numbers are those of cudnnBackendKnobType_t.
void PreparedAttention::describe(Descriptor config) {
  constexpr std::int64_t most_knobs = 32;
  const auto engines = descriptors_.list(config, Attribute::enginecfg_engine, Kind::engine, 1);
  algorithm_ =
      fmt::format("engine {}", descriptors_.number(engines.at(0), Attribute::engine_global_index));
  for (const Descriptor knob : descriptors_.list(config, Attribute::enginecfg_knob_choices,
                                                 Kind::knob_choice, most_knobs)) {
    const auto type = static_cast<std::int32_t>(
        descriptors_.number(knob, Attribute::knob_choice_type, Type::knob_type));
    algorithm_ += fmt::format(", knob {} = {}", type,
                              descriptors_.number(knob, Attribute::knob_choice_value));
  }
}

void PreparedAttention::fill_query_lengths() {
  const auto check = [&](hipError_t error, const char* what) {
    if (error == hipSuccess) return;
    throw Refusal(
        error == hipErrorOutOfMemory ? Status::out_of_memory : Status::unavailable,
        fmt::format("cuDNN: {} of the queries' numbers fails with error {}", what, error));
  };
  void* memory = nullptr;
  check(hip_.hipMalloc(&memory, call_.batch * sizeof(std::int32_t)), "allocation");
  query_lengths_.reset(memory);
  check(hip_.hipMemsetD32Async(memory, static_cast<int>(call_.queries), call_.batch, nullptr),
        "setting");
  hipError_t state = hipErrorNotReady;
  while ((state = hip_.hipStreamQuery(nullptr)) == hipErrorNotReady) std::this_thread::yield();
  check(state, "setting");
}

void* PreparedAttention::address(Operand operand, const AttentionArguments& at) const {
  const auto pointer = [](std::uint64_t value) { return reinterpret_cast<void*>(value); };
  const auto host = [](const auto& value) {
    return const_cast<void*>(static_cast<const void*>(&value));
  };
  switch (operand) {
    case Operand::q:
      return pointer(at.q);
    case Operand::k:
      return pointer(at.k);
    case Operand::v:
      return pointer(at.v);
    case Operand::out:
      return pointer(at.out);
    case Operand::query_lengths:
      return query_lengths_.get();
    case Operand::lengths:
      return pointer(at.lengths);
    case Operand::sinks:
      return pointer(at.sinks);
    case Operand::lse:
      return pointer(at.lse);
    case Operand::scale:
      return host(call_.scale);
    case Operand::hidden:
      return host(hidden_);
    case Operand::window:
      return host(window_);
    case Operand::softcap:
      return host(call_.softcap);
  }
  return nullptr;
}

void PreparedAttention::launch(std::span<const std::byte> arguments, hipStream_t stream) const {
  AttentionArguments at;
  std::memcpy(&at, arguments.data(), sizeof at);
  std::vector<std::int64_t> numbers;
  std::vector<void*> addresses;
  for (const Operand operand : graph_.operands()) {
    numbers.push_back(static_cast<std::int64_t>(operand));
    addresses.push_back(address(operand, at));
  }
  Descriptors launch(functions_, Status::launch);
  const Descriptor pack = launch.make(Kind::variant_pack);
  launch.set(pack, Attribute::variant_pack_unique_ids, numbers);
  launch.set_pointers(pack, Attribute::variant_pack_data_pointers, addresses);
  const std::array<void*, 1> workspace{reinterpret_cast<void*>(at.workspace)};
  launch.set_pointers(pack, Attribute::variant_pack_workspace, workspace);
  launch.finalize(pack);
  const std::lock_guard lock(mutex_);
  launch.check(functions_.set_stream(handle_.get(), stream), "cudnnSetStream");
  launch.check(functions_.execute(handle_.get(), plan_, pack), "Execute");
}

class Library final : public AttentionLibrary {
 public:
  explicit Library(const Functions& functions) : functions_(functions) {
    const std::size_t version = functions.version();
    name_ = fmt::format("cuDNN {}.{}.{}", version / 10000, version % 10000 / 100, version % 100);
  }
  const std::string& name() const override { return name_; }
  std::unique_ptr<const PreparedCall> prepare(const AttentionCall& call,
                                              const hip::Functions& hip) const override {
    return std::make_unique<PreparedAttention>(functions_, hip, call);
  }

 private:
  Functions functions_;
  std::string name_;
};

Functions load(const DynamicLibrary& library) {
  Functions all;
  library.load(all.version, "cudnnGetVersion").value();
  library.load(all.create, "cudnnCreate").value();
  library.load(all.destroy, "cudnnDestroy").value();
  library.load(all.set_stream, "cudnnSetStream").value();
  library.load(all.last_error, "cudnnGetLastErrorString").value();
  library.load(all.make, "cudnnBackendCreateDescriptor").value();
  library.load(all.release, "cudnnBackendDestroyDescriptor").value();
  library.load(all.finalize, "cudnnBackendFinalize").value();
  library.load(all.set, "cudnnBackendSetAttribute").value();
  library.load(all.get, "cudnnBackendGetAttribute").value();
  library.load(all.execute, "cudnnBackendExecute").value();
  return all;
}

}  // namespace
}  // namespace cudnn

Result<std::shared_ptr<const AttentionLibrary>> open_cudnn() {
  try {
    const auto library = DynamicLibrary::open({"libcudnn.so.9", "libcudnn.so"}).value();
    const cudnn::Functions functions = cudnn::load(library);
    library.keep_open();
    return std::shared_ptr<const AttentionLibrary>(std::make_shared<cudnn::Library>(functions));
  } catch (const std::exception&) {
    return current_failure();
  }
}

}  // namespace greta::device::hip
