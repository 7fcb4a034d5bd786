#include "tuner/diagnose/probe_runs.hpp"

#include <chrono>
#include <cstring>
#include <initializer_list>
#include <utility>

namespace greta::tuner {
namespace {

/// All probes of a case take at most this long, and hypotheses do without those that are left out.
constexpr std::chrono::seconds most_probe_time{10};
constexpr std::size_t most_probed_elements = std::size_t{1} << 22;

std::vector<HostTensor> packed_all(const std::vector<HostTensor>& outputs) {
  std::vector<HostTensor> all;
  for (const HostTensor& output : outputs) all.push_back(kernels::packed(output));
  return all;
}

/// Returns which elements of two packed tensors have different bits.
std::vector<bool> difference(const HostTensor& a, const HostTensor& b) {
  const std::size_t size = bytes_of(a.spec.dtype, std::size_t{1});
  std::vector<bool> marks(a.spec.elements());
  for (std::size_t i = 0; i < marks.size(); ++i)
    marks[i] = std::memcmp(&a.data[i * size], &b.data[i * size], size) != 0;
  return marks;
}

/// Builds the candidate with more compiler options.
Result<PreparedPlan> built_with(Device& device, const FailedCheck& failed, const Workload& load,
                                const std::vector<std::string>& options) {
  LaunchPlan plan = failed.plan;
  for (KernelSource& source : plan.sources)
    source.options.insert(source.options.end(), options.begin(), options.end());
  return PreparedPlan::create(device, plan, load.operands(),
                              [&](const KernelSource& source) { return device.compile(source); });
}

/// Runs builds of the candidate whose local variables begin with a pattern, and with 0. Only
/// hip-host's compilers do this. Clang 14 wants a second option for 0, which others refuse.
void run_with_set_registers(Device& device, Stream& stream, const FailedCheck& failed,
                            Workload& load, double run_s, CaseTime& time, FailedCase& made) {
  if (!device.info().id().starts_with("hip-host:") || !time.has_room()) return;
  const std::string zero = "-ftrivial-auto-var-init=zero";
  const auto pattern = built_with(device, failed, load, {"-ftrivial-auto-var-init=pattern"});
  Result<PreparedPlan> zeros = built_with(device, failed, load, {zero});
  if (!zeros) {
    zeros = built_with(
        device, failed, load,
        {zero, "-enable-trivial-auto-var-init-zero-knowing-it-will-be-removed-from-clang"});
  }
  if (!pattern || !zeros) return;
  for (const PreparedPlan* build :
       std::initializer_list<const PreparedPlan*>{&*pattern, &*pattern, &*zeros, &*zeros}) {
    auto& outputs = made.others.with_set_registers.emplace_back();
    const bool done = time.has_room() && time.timed([&] {
      return static_cast<bool>(load.outputs_of(device, stream, *build, run_s, {}, outputs));
    });
    if (done) continue;
    made.others.with_set_registers.clear();
    return;
  }
}

void run_after_another(Device& device, Stream& stream, const PreparedPlan& candidate,
                       Workload& load, double run_s, CaseTime& time, FailedCase& made) {
  if (!candidate.has_workspace() || !time.has_room(3)) return;
  std::vector<HostTensor> outputs;
  // What the first run leaves, the second one finds.
  for (const bool keeps : {false, true, true}) {
    if (!time.timed([&] {
          return load.outputs_of(device, stream, candidate, run_s, {.keeps_workspace = keeps},
                                 outputs);
        }))
      return;
  }
  made.others.after_another = std::move(outputs);
}

/// Runs the probes of all operands. Keeps all of an operand's or none, and none whose marks would
/// be too large.
void run_probes(Device& device, Stream& stream, const FailedCheck& failed,
                const Operation& operation, const PreparedPlan& candidate,
                const std::vector<HostTensor>& inputs, double run_s, CaseTime& time,
                FailedCase& made) {
  if (!time.has_room()) return;
  // NaN around operands would hide from where else an element is computed.
  auto load = Workload::create_with_finite_guards(device, operation, failed.on);
  if (!load) return;
  const auto prepared = candidate.with_launches(device, failed.plan, load->operands());
  if (!prepared) return;
  const auto outputs_with = [&](std::vector<HostTensor> changed) {
    return time.timed([&] {
      std::vector<HostTensor> outputs;
      const bool done =
          load->set_inputs(device, made.seed, made.style, {std::move(changed), nullptr}) &&
          load->outputs_of(device, stream, *prepared, run_s, {}, outputs);
      return done ? outputs : std::vector<HostTensor>();
    });
  };
  const auto end = CaseTime::Clock::now() + most_probe_time;
  made.others.with_finite_guards = outputs_with(inputs);
  const auto plain = packed_all(made.others.with_finite_guards);
  if (plain.empty()) return;
  const std::size_t most_probes = most_mark_bytes / mark_bytes(operation.tensors(failed.on));
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].spec.elements() > most_probed_elements) continue;
    std::vector<Probe> probes = probes_of(inputs[i].spec);
    if (made.probes.size() + probes.size() > most_probes) continue;
    for (Probe& probe : probes) {
      if (CaseTime::Clock::now() > end || !time.has_room()) return;
      auto changed = inputs;
      changed[i] = probed(inputs[i], probe);
      const auto after = packed_all(outputs_with(std::move(changed)));
      if (after.empty()) return;
      for (std::size_t o = 0; o < after.size(); ++o)
        probe.changed.push_back(difference(plain[o], after[o]));
    }
    made.probes.insert(made.probes.end(), probes.begin(), probes.end());
  }
}

}  // namespace

void add_other_runs(Device& device, Stream& stream, const FailedCheck& failed,
                    const Operation& operation, const PreparedPlan& candidate, Workload& load,
                    const std::vector<HostTensor>& inputs, double run_s, CaseTime& time,
                    FailedCase& made) {
  run_after_another(device, stream, candidate, load, run_s, time, made);
  run_with_set_registers(device, stream, failed, load, run_s, time, made);
  run_probes(device, stream, failed, operation, candidate, inputs, run_s, time, made);
}

}  // namespace greta::tuner
