#include "tuner/diagnose/changes/build_runs.hpp"

#include <algorithm>
#include <utility>

#include "runtime/device/backend.hpp"
#include "tuner/diagnose/changes/absent_pages.hpp"
#include "tuner/diagnose/changes/shared_file.hpp"

namespace greta::tuner {

namespace {

using Clock = std::chrono::steady_clock;

/// What kernels read to choose a change. The devices are this processor, and the address is the
/// same in all processes of a search, so that a driver finds a kernel in its cache when the next
/// process loads it.
std::uint32_t number_in_force = 0;

}  // namespace

void BuiltCase::write(const SharedFile& file) const {
  file.put(device.data(), device.size());
  file.put(architecture.data(), architecture.size());
  for (const auto& code : unchanged) file.put(code.data(), code.size());
}

void BuiltCase::write_runs(const SharedFile& file) const {
  const std::int64_t time = run_time.count();
  file.put(&time, sizeof time);
  reduction.write(file);
}

void BuiltCase::read(SharedFile& file, std::size_t kernels) {
  file.rewind();
  const auto id = file.get<char>(), target = file.get<char>();
  device.assign(id.begin(), id.end());
  architecture.assign(target.begin(), target.end());
  unchanged.clear();
  for (std::size_t i = 0; i < kernels; ++i) unchanged.push_back(file.get<std::byte>());
  try {
    if (file.has_more()) run_time = std::chrono::milliseconds(file.get<std::int64_t>().at(0));
    if (file.has_more()) reduction.read(file);
  } catch (const Error&) {  // its process ended
    reduction = {};
  }
}

BuildRuns::BuildRuns(const FailedCase& failed, const BuiltCase& built,
                     const std::vector<KernelBuild>& builds)
    : run_(failed.kernel), reduction_(built.reduction) {
  run_.architecture = built.architecture;
  run_.code_objects = built.unchanged;
  device_ = open_device(built.device, OpenOptions{}).value();
  for (const auto& [kernel, build] : builds) {
    run_.code_objects[kernel] = build.code_object;
    if (build.as_constant) {
      constants_.push_back(kernel);
    } else if (!put_address_of_number(run_.code_objects[kernel],
                                      reinterpret_cast<std::uintptr_t>(&number_in_force))) {
      throw Error("no place for the number of a change");
    }
  }
  for (const CaseLaunch& launch : run_.launches) grids_.push_back(launch.grid);
  for (const CaseBuffer& buffer : run_.buffers) expected_.push_back(buffer.expected);
  loaded_ = std::make_unique<LoadedCase>(*device_, run_);
  reduce();
}

void BuildRuns::reduce() {
  if (reduction_.exists()) reduction_.apply(run_);
}

void BuildRuns::run_all() {
  for (std::size_t i = 0; i < grids_.size(); ++i) run_.launches[i].grid = grids_[i];
  for (std::size_t i = 0; i < expected_.size(); ++i) run_.buffers[i].expected = expected_[i];
}

bool BuildRuns::fails_unchanged(Deadline deadline) {
  const bool sets_handlers = run_.language == Language::hip;  // in its first run
  if (!sets_handlers) AbsentPages::supply();
  const bool fails = result_of(0, deadline) == ChangeOutcome::wrong;
  if (sets_handlers) AbsentPages::supply();
  if (auto contents = fails ? loaded_->last_contents() : Failure{}; contents)
    judge_.emplace(run_, *std::move(contents), reduction_.determined);
  return fails;
}

void BuildRuns::measure() {
  constexpr std::chrono::milliseconds least{400}, most{10000};
  constexpr int more_than_unchanged = 10;
  const auto begin = Clock::now();
  static_cast<void>(result_of(0, most));
  const auto taken = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin);
  time = std::clamp(taken * more_than_unchanged, least, most);
}

ChangeOutcome BuildRuns::outcome_of(std::uint32_t number) {
  constexpr int runs = 3;  // as races may be correct by chance
  constexpr std::chrono::seconds most_time_of_all{15};
  ChangeOutcome outcome = result_of(number, time);
  if (outcome != ChangeOutcome::correct_here) return outcome;
  run_all();
  for (int i = 0; i < runs && outcome == ChangeOutcome::correct_here; ++i)
    outcome = result_of(number, most_time_of_all);
  reduce();
  return outcome;
}

ChangeEffect BuildRuns::last_effect() {
  if (!judge_) return {};
  const auto contents = loaded_->last_contents();
  return contents ? judge_->effect_of(*contents) : ChangeEffect{};
}

ChangeOutcome BuildRuns::result_of(std::uint32_t number, Deadline deadline) {
  number_in_force = number;
  for (const std::size_t kernel : constants_) {
    if (!choose_change(run_.code_objects[kernel], number)) return ChangeOutcome::untried;
  }
  if (!constants_.empty()) loaded_->reload();
  const ChangeOutcome outcome = outcome_of_run(loaded_->run(deadline));
  if (outcome == ChangeOutcome::hangs) return outcome;
  return AbsentPages::take_away() ? ChangeOutcome::wrong : outcome;
}

}  // namespace greta::tuner
