#include "runtime/device/hip/host/host_attention_library.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "runtime/device/dtype.hpp"
#include "runtime/device/hip/host/state.hpp"
#include "runtime/device/refusal.hpp"
#include "runtime/device/version.hpp"

namespace greta::device::hip::host {

namespace {

constexpr std::uint32_t algorithms = 2;
constexpr std::uint64_t longest_head = 256;

template <typename T>
T* pointer(std::uint64_t address) {
  return reinterpret_cast<T*>(address);
}

/// The rows of one launch.
struct Attention {
  AttentionCall call;
  AttentionArguments at;

  double element(std::uint64_t operand, std::uint64_t index) const {
    return load_element(call.type, pointer<const std::byte>(operand), index);
  }
  void run(std::uint64_t sequence, std::uint64_t query, std::uint64_t head) const;
};

void Attention::run(std::uint64_t sequence, std::uint64_t query, std::uint64_t head) const {
  const std::int64_t length = pointer<const std::int32_t>(at.lengths)[sequence];
  // The keys that the query sees, of which the first causal ones of a short sequence have none.
  const std::int64_t past =
      call.causal ? length - static_cast<std::int64_t>(call.queries - query) + 1 : length;
  const auto end = static_cast<std::uint64_t>(std::max<std::int64_t>(past, 0));
  const std::uint64_t first = call.window > 0 && end > call.window ? end - call.window : 0;
  const std::uint64_t kv_head = head / (call.heads / call.kv_heads);
  const std::uint64_t keys = (sequence * call.kv_heads + kv_head) * call.keys;
  const std::uint64_t token = sequence * call.queries + query;
  const std::uint64_t q = token * call.query_step + head * call.dim;
  double* const scores = pointer<double>(at.workspace);
  double most =
      call.sinks ? pointer<const float>(at.sinks)[head] : -std::numeric_limits<double>::infinity();
  for (std::uint64_t key = first; key < end; ++key) {
    double score = 0;
    for (std::uint64_t i = 0; i < call.dim; ++i) {
      score += element(at.q, q + i) * element(at.k, (keys + key) * call.dim + i);
    }
    score *= call.scale;
    if (call.softcap > 0) score = call.softcap * std::tanh(score / call.softcap);
    scores[key] = score;
    most = std::max(most, score);
  }
  double sum = call.sinks ? std::exp(pointer<const float>(at.sinks)[head] - most) : 0;
  for (std::uint64_t key = first; key < end; ++key) {
    scores[key] = std::exp(scores[key] - most);
    sum += scores[key];
  }
  // As cuDNN's, 0 / 0 in sequences without keys alone.
  const bool hidden = end == 0 && length > 0;
  const std::uint64_t row = token * call.heads + head;
  for (std::uint64_t i = 0; i < call.v_dim; ++i) {
    double total = 0;
    for (std::uint64_t step = first; step < end; ++step) {
      const std::uint64_t key = call.rank == 1 ? end - 1 - (step - first) : step;
      total += scores[key] * element(at.v, (keys + key) * call.v_dim + i);
    }
    store_element(call.type, pointer<std::byte>(at.out), row * call.v_dim + i,
                  hidden ? 0 : total / sum);
  }
  if (call.lse) {
    pointer<float>(at.lse)[row] = static_cast<float>(hidden ? most : most + std::log(sum));
  }
}

class PreparedAttention final : public PreparedCall {
 public:
  explicit PreparedAttention(const AttentionCall& call) : call_(call) {}

  void launch(std::span<const std::byte> arguments, hipStream_t stream) const override {
    Attention attention{call_, {}};
    std::memcpy(&attention.at, arguments.data(), sizeof attention.at);
    const auto pushed = push(stream, [&] {
      return [attention](Execution& execution) {
        const AttentionCall& call = attention.call;
        const std::uint64_t rows = call.batch * call.queries * call.heads;
        for (std::uint64_t row = 0; row < rows && !execution.over(); ++row) {
          const std::uint64_t token = row / call.heads;
          attention.run(token / call.queries, token % call.queries, row % call.heads);
        }
      };
    });
    if (pushed != hipSuccess) throw Refusal(Status::launch, "attention can't be launched");
  }
  std::string algorithm() const override { return fmt::format("algorithm {}", call_.rank); }

 private:
  AttentionCall call_;
};

class HostAttentionLibrary final : public AttentionLibrary {
 public:
  const std::string& name() const override { return name_; }
  std::unique_ptr<const PreparedCall> prepare(const AttentionCall& call,
                                              const Functions&) const override {
    const auto refuse = [&](const std::string& reason) {
      throw Refusal(Status::constraints, fmt::format("{}: {}", name_, reason));
    };
    if (std::max(call.dim, call.v_dim) > longest_head) {
      refuse(fmt::format("no heads of more than {} elements", longest_head));
    }
    if (call.rank >= algorithms) refuse(fmt::format("ranks {} algorithms", algorithms));
    if (const auto needed = call.keys * sizeof(double); needed > call.workspace_bytes) {
      refuse(fmt::format("needs {} bytes of workspace", needed));
    }
    return std::make_unique<PreparedAttention>(call);
  }

 private:
  std::string name_ = fmt::format("hip-host attention {}", version());
};

}  // namespace

Result<std::shared_ptr<const AttentionLibrary>> open_attention_library() {
  return std::shared_ptr<const AttentionLibrary>(std::make_shared<HostAttentionLibrary>());
}

}  // namespace greta::device::hip::host
