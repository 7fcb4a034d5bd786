#include "tuner/diagnose/changes/change_trials.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "runtime/device/text/hash.hpp"

namespace greta::tuner {
namespace {

constexpr int confirmed_runs = 3;  // with correct results, as races may be correct by chance

std::string hash_of(std::size_t kernel, const std::vector<std::byte>& code_object) {
  const std::string_view bytes(reinterpret_cast<const char*>(code_object.data()),
                               code_object.size());
  return Hash().add(std::uint64_t{kernel}).add(bytes).hex();
}

}  // namespace

ChangeOutcome outcome_of_run(const Result<std::string>& wrong) {
  if (wrong) return wrong->empty() ? ChangeOutcome::correct_here : ChangeOutcome::wrong;
  const Status status = wrong.failure().status;
  const bool refused = status == Status::invalid_argument || status == Status::compile ||
                       status == Status::unavailable;
  return refused ? ChangeOutcome::wrong : ChangeOutcome::hangs;
}

Result<KernelSource> read_kept_source(const std::string& kept, Language language) {
  constexpr std::string_view entry = ", entry ", workgroup = ", workgroup ",
                             subgroup = ", subgroup size ", options = ", options";
  const std::string head = kept.substr(0, kept.find('\n'));
  const auto at_entry = head.find(entry), at_workgroup = head.find(workgroup),
             at_subgroup = head.find(subgroup), at_options = head.rfind(options);
  if (!head.starts_with("// ") || at_entry == std::string::npos ||
      at_workgroup == std::string::npos || at_subgroup == std::string::npos ||
      at_options == std::string::npos) {
    return Failure{Status::invalid_argument,
                   "a kernel's source does not begin with a comment on its launch",
                   {}};
  }
  KernelSource source;
  source.language = language;
  source.name = head.substr(3, at_entry - 3);
  source.entry = head.substr(at_entry + entry.size(), at_workgroup - at_entry - entry.size());
  char cross = 0;
  std::istringstream block(head.substr(at_workgroup + workgroup.size()));
  block >> source.block[0] >> cross >> source.block[1] >> cross >> source.block[2];
  std::istringstream(head.substr(at_subgroup + subgroup.size())) >> source.required_subgroup_size;
  std::istringstream words(head.substr(at_options + options.size()));
  for (std::string word; words >> word;) source.options.push_back(word);
  source.text = kept.substr(std::min(head.size() + 1, kept.size()));
  return source;
}

Result<DeviceInfo> device_for_changes(const KernelCase& run) {
  for (const std::string& wanted : {run.architecture, "host-" + run.architecture}) {
    for (Backend* const backend : backends()) {
      for (const ProbedDevice& device : backend->probe().devices) {
        const DeviceInfo& info = device.info;
        if (device.usable && info.is_cpu() && info.language == run.language &&
            info.architecture == wanted)
          return info;
      }
    }
  }
  return Failure{Status::unavailable,
                 fmt::format("no CPU device here runs kernels of {}: changes may end or block a "
                             "driver, so that they are not tried on a GPU",
                             run.architecture),
                 {}};
}

std::string unchanged_is_correct() {
  return "the unchanged source gives correct results here";
}

std::string too_slow(Deadline most_time) {
  return fmt::format("one run of the unchanged source takes more than {} s here",
                     std::chrono::duration_cast<std::chrono::seconds>(most_time).count());
}

ChangeTrials::ChangeTrials(const Catalog& catalog, const FailedCase& failed, Deadline most_time,
                           std::vector<std::vector<std::byte>> unchanged)
    : catalog_(catalog), most_time_(most_time), run_(failed.kernel) {
  const DeviceInfo device = device_for_changes(run_).value();
  run_.architecture = device.architecture;
  run_.seed = failed.seed;
  for (const std::string& kept : failed.sources)
    sources_.push_back(read_kept_source(kept, run_.language).value());
  const OpenOptions options;
  compiler_ = create_probed_target(device, options).value();
  device_ = open_device(device.id(), options).value();
  for (std::size_t i = unchanged.size(); i < sources_.size(); ++i)
    unchanged.push_back(compiler_->compile(sources_[i]).value().code_object);
  for (std::size_t i = 0; i < unchanged.size(); ++i) known_.insert(hash_of(i, unchanged[i]));
  code_objects_ = std::move(unchanged);
  run_.code_objects = code_objects_;
}

ChangeOutcome ChangeTrials::outcome_unchanged(int most_runs) {
  ChangeOutcome outcome = ChangeOutcome::correct_here;
  for (int i = 0; i < most_runs && outcome == ChangeOutcome::correct_here; ++i)
    outcome = outcome_with(run_);
  return outcome;
}

CaseReduction ChangeTrials::reduction() const {
  constexpr Deadline most_time = std::chrono::seconds(10);
  return reduced_case(*device_, run_, most_time);
}

ChangeOutcome ChangeTrials::outcome_with(const KernelCase& run) {
  return outcome_of_run(run_case(*device_, run, most_time_));
}

Result<std::vector<std::vector<std::byte>>> ChangeTrials::contents_with(
    const std::vector<std::vector<std::byte>>& operands) {
  constexpr Deadline most_time = std::chrono::seconds(10);
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (!operands[i].empty()) run_.buffers.at(i).data = operands[i];
  }
  if (!loaded_) loaded_ = std::make_unique<LoadedCase>(*device_, run_);
  return loaded_->contents(most_time);
}

bool ChangeTrials::draw_others() {
  constexpr std::uint64_t draws = 3;
  for (std::uint64_t i = 1; i <= draws && !no_others_ && others_.size() < draws; ++i) {
    KernelCase others = run_;
    if (fill_case(catalog_, others, run_.seed + i)) {
      others_.push_back(std::move(others));
    } else {
      no_others_ = true;
    }
  }
  return !others_.empty();
}

std::vector<std::byte> ChangeTrials::code_of(std::size_t kernel, std::string text) {
  KernelSource source = sources_[kernel];
  source.text = std::move(text);
  auto compiled = compiler_->compile(source);
  return compiled ? std::move(compiled->code_object) : std::vector<std::byte>();
}

ChangeOutcome ChangeTrials::outcome_of(const KernelChange& change) {
  // The comment on the launch is not in the text of the source.
  const auto code_with = [&](std::size_t kernel, const SourceChange& one) {
    return code_of(kernel, one.applied_to(sources_[kernel].text));
  };
  auto code = code_with(change.kernel, change.change);
  if (code.empty()) return ChangeOutcome::refused;
  std::string hash = hash_of(change.kernel, code);
  run_.code_objects = code_objects_;
  run_.code_objects[change.kernel] = std::move(code);
  for (const auto& [kernel, other] : change.others) {
    code = code_with(kernel, other);
    if (code.empty()) continue;
    hash += hash_of(kernel, code);
    run_.code_objects[kernel] = std::move(code);
  }
  if (!known_.insert(hash).second) return ChangeOutcome::same;
  return confirmed(confirmed_runs);
}

ChangeOutcome ChangeTrials::outcome_of(const std::vector<std::string>& texts, int runs) {
  for (std::size_t i = 0; i < texts.size(); ++i) {
    run_.code_objects[i] = texts[i] == sources_[i].text ? code_objects_[i] : code_of(i, texts[i]);
    if (run_.code_objects[i].empty()) return ChangeOutcome::refused;
  }
  return confirmed(std::max(runs, confirmed_runs));
}

ChangeOutcome ChangeTrials::confirmed(int runs) {
  for (int i = 0; i < runs; ++i) {
    const ChangeOutcome outcome = outcome_with(run_);
    if (outcome != ChangeOutcome::correct_here) return outcome;
  }
  if (!draw_others()) return ChangeOutcome::correct_here;
  for (KernelCase& others : others_) {
    others.code_objects = run_.code_objects;
    const ChangeOutcome outcome = outcome_with(others);
    if (outcome != ChangeOutcome::correct_here) return outcome;
  }
  return ChangeOutcome::correct;
}

}  // namespace greta::tuner
