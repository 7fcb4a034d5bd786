#include "tuner/session/vendor_rounds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "runtime/device/text/hash.hpp"
#include "tuner/measure/sampler.hpp"
#include "tuner/measure/stopwatch.hpp"
#include "tuner/session/search_plan.hpp"

namespace greta::tuner {
namespace {

constexpr double share_of_budget = 0.1;
constexpr double least_vendor_s = 1, most_vendor_s = 10;
constexpr int rounds_wanted = 24, fewest_vendor_rounds = 4;
constexpr double vendor_confidence = 0.95;

/// Returns an algorithm's text without its slices: "tile 8x8, 2 slices in f32, cluster 1x1x1".
std::string without_slices(std::string text) {
  const auto word = text.find(" slice");
  if (word == std::string::npos) return text;
  const auto begin = text.rfind(',', word) + 1;
  return text.erase(begin, std::min(text.find(',', word), text.size()) - begin);
}

/// Compares the vendor's library with a session's winner.
class VendorRounds {
 public:
  VendorRounds(SessionWork& work, const Variant& variant)
      : work_(work),
        result_(work.result),
        variant_(variant),
        library_(vendor_library(work.operation, result_.device)) {}

  void run();

 private:
  std::vector<std::vector<Config>> rankings() const;
  std::optional<Config> fastest(double allowed_s);
  /// Evaluates a configuration, unless the session has done so before.
  const Trial& tried(const Config& config);
  void rank(double allowed_s);
  std::vector<Config> to_slice();
  void slice(double allowed_s);
  Rounds time(const Config& config, double allowed_s);
  void store_peer();
  void store_winner(const Config& config, const Rounds& rounds);

  SessionWork& work_;
  SessionResult& result_;
  const Variant& variant_;
  std::string library_;
  std::vector<std::pair<double, Config>> times_;  ///< of what is right, in microseconds
  Stopwatch watch_;
};

/// Returns the value of a parameter that not all libraries have; 0 where it is missing.
int value_of(const Config& config, std::string_view parameter) {
  return config.has(parameter) ? config[parameter] : 0;
}

/// Returns the configurations by the library's rankings, with its own slices of K: with the most
/// memory first.
std::vector<std::vector<Config>> VendorRounds::rankings() const {
  const Instance instance(work_.operation, result_.problem, result_.device);
  const Space space({variant_.space(instance.shape(), result_.device)});
  std::map<int, std::vector<Config>, std::greater<>> by_memory;
  for (std::uint64_t i = 0; i < space.count(); ++i) {
    Config config = space.at(i);
    if (value_of(config, "SPLITK") > 0) continue;
    by_memory[value_of(config, "WORKSPACE_MIB")].push_back(std::move(config));
  }
  std::vector<std::vector<Config>> lists;
  for (auto& [memory, configs] : by_memory) {
    std::sort(configs.begin(), configs.end(),
              [](const Config& a, const Config& b) { return a["RANK"] < b["RANK"]; });
    lists.push_back(std::move(configs));
  }
  return lists;
}

const Trial& VendorRounds::tried(const Config& config) {
  const Trial* trial = find_trial(result_.trials, config, result_.problem.key());
  if (trial == nullptr) trial = &work_.evaluate(result_.problem, config, limits_of(work_));
  if (trial->ok()) times_.emplace_back(trial->measurement.median_us, config);
  return *trial;
}

/// Evaluates the rankings in turns, the best algorithms first. A ranking ends with the first rank
/// that the library does not have.
void VendorRounds::rank(double allowed_s) {
  auto lists = rankings();
  for (std::size_t rank = 0; !lists.empty(); ++rank) {
    for (auto list = lists.begin(); list != lists.end();) {
      if (work_.stopped() || (!times_.empty() && watch_.seconds() > allowed_s)) return;
      const bool ended =
          rank >= list->size() || tried((*list)[rank]).failure == Status::constraints;
      list = ended ? lists.erase(list) : list + 1;
    }
  }
}

/// Returns the fastest algorithms that have memory for slices of K. Rankings with different amounts
/// of memory have some in common, of which each is returned once.
std::vector<Config> VendorRounds::to_slice() {
  constexpr std::size_t most_sliced = 4;
  std::stable_sort(times_.begin(), times_.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Config> configs;
  std::set<std::string> known;
  for (const auto& [us, config] : times_) {
    if (configs.size() == most_sliced || value_of(config, "WORKSPACE_MIB") == 0) continue;
    const Trial& trial = *find_trial(result_.trials, config, result_.problem.key());
    const std::string algorithm = without_slices(algorithm_text(trial.kernels));
    if (algorithm.empty() || known.insert(algorithm).second) configs.push_back(config);
  }
  return configs;
}

/// Evaluates the fastest algorithms with other numbers of slices of K than the library's own. What
/// the library refuses is a trial, too: it tells why.
void VendorRounds::slice(double allowed_s) {
  const Instance instance(work_.operation, result_.problem, result_.device);
  const auto parameters = variant_.space(instance.shape(), result_.device).parameters;
  const auto splits = std::find_if(parameters.begin(), parameters.end(),
                                   [](const Parameter& one) { return one.name == "SPLITK"; });
  if (splits == parameters.end()) return;
  bool any = false;
  for (Config config : to_slice()) {
    for (const int slices : splits->values) {
      if (slices == 0) continue;
      if (work_.stopped() || (any && watch_.seconds() > allowed_s)) return;
      config.value("SPLITK") = slices;
      tried(config);
      any = true;
    }
  }
}

/// Returns the fastest configuration: of the rankings, which take most of the time, and of other
/// slices.
std::optional<Config> VendorRounds::fastest(double allowed_s) {
  constexpr double share_of_rankings = 0.7;
  rank(share_of_rankings * allowed_s);
  slice(allowed_s);
  const auto best = std::min_element(
      times_.begin(), times_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return best == times_.end() ? std::nullopt : std::optional(best->second);
}

Rounds VendorRounds::time(const Config& config, double allowed_s) {
  const Lap lap(result_.time.measure);
  const auto seed = Hash().add(work_.options.seed).add("vendor").low();
  return work_.pool.lead().time_rounds(result_.problem,
                                       {result_.default_config, result_.winner->config, config},
                                       rounds_wanted, allowed_s, seed, limits_of(work_));
}

void VendorRounds::run() {
  work_.observer.on_phase("timing " + library_);
  const double allowed_s =
      std::clamp(share_of_budget * work_.planned_s(), least_vendor_s, most_vendor_s) / 2;
  const auto config = fastest(allowed_s);
  if (!config || work_.stopped()) return;
  const Rounds rounds = time(*config, allowed_s);
  if (rounds.us.size() < 3 || rounds.us.back().size() < fewest_vendor_rounds) {
    result_.notes.push_back(
        fmt::format("not compared with {}: {}", library_,
                    rounds.failure ? rounds.failure->message : "the device's speed drifted"));
    return;
  }
  VendorResult& vendor = result_.vendor.emplace();
  vendor.library = library_;
  vendor.config = *config;
  vendor.us = median(rounds.us[2]);
  vendor.ratio = ratio_interval(rounds.us[2], rounds.us[1], vendor_confidence);
  vendor.confidence = vendor_confidence;
  vendor.rounds = static_cast<int>(rounds.us[2].size());
  store_peer();
  if (work_.options.allow_vendor && vendor.ratio.high < 1) store_winner(*config, rounds);
}

void VendorRounds::store_peer() {
  Peer peer;
  peer.problem = result_.problem;
  const auto blank = result_.vendor->library.find(' ');
  peer.library = result_.vendor->library.substr(0, blank);
  peer.circumstances = fmt::format("{}; {}; {}", result_.vendor->library, result_.device.name,
                                   result_.device.driver);
  peer.solution = result_.vendor->config.text();
  const Trial* const trial =
      find_trial(result_.trials, result_.vendor->config, result_.problem.key());
  if (const auto algorithm = algorithm_text(trial->kernels); !algorithm.empty())
    peer.solution += fmt::format(" ({})", algorithm);
  peer.us = result_.vendor->us;
  peer.imported_utc = work_.options.started_utc;
  work_.store([&] { work_.db.put_peer(peer); });
}

void VendorRounds::store_winner(const Config& config, const Rounds& rounds) {
  Trial check = work_.pool.lead().verify(result_.problem, config,
                                         Hash().add(work_.options.seed).add("final check").low(),
                                         limits_of(work_));
  if (!check.ok()) {
    result_.notes.push_back(
        fmt::format("{} failed the last check, on new inputs: {}", config.text(), check.message));
    return;
  }
  const Interval speedup = ratio_interval(rounds.us[0], rounds.us[2], vendor_confidence);
  Winner winner;
  winner.config = config;
  winner.card = work_.pool.device().card.uuid;
  Measurement& measurement = winner.measurement;
  measurement.samples_us = rounds.us[2];
  summarise(measurement);
  measurement.cold = winner.cold = work_.options.cold;
  measurement.batch = rounds.batch[2];
  measurement.dropped = rounds.dropped;
  measurement.flush_bytes = rounds.flush_bytes;
  measurement.clocks = rounds.clocks;
  measurement.card_state = rounds.card_state;
  winner.default_samples_us = rounds.us[0];
  winner.default_us = median(rounds.us[0]);
  winner.speedup = speedup.estimate;
  winner.speedup_low = speedup.low;
  winner.speedup_high = speedup.high;
  winner.confidence = vendor_confidence;
  winner.rounds = static_cast<int>(rounds.us[2].size());
  winner.verdict = check.verdict;
  // A session of its own, because its kernels have another compiler: the library.
  SessionRecord about =
      session_record(work_.operation, result_.device, result_.problem, work_.options);
  about.provenance.compiler = library_;
  about.strategy = std::string(vendor_variant);
  about.run = 0;
  const Trial trial = *find_trial(result_.trials, config, result_.problem.key());
  work_.store([&] {
    const auto session = work_.db.begin_session(about);
    work_.db.add_trial(session, trial);
    result_.vendor->stored = work_.db.set_winner(session, winner);
    work_.db.end_session(session, "done");
  });
}

}  // namespace

// LocalEvaluator adds it to the kernel's name: "gemm/vendor (algorithm 66, …)".
std::string algorithm_text(const std::vector<KernelFigures>& kernels) {
  for (const auto& [name, statistics] : kernels) {
    const auto begin = name.find(" (");
    if (begin == std::string::npos || !name.ends_with(')')) continue;
    return name.substr(begin + 2, name.size() - begin - 3);
  }
  return "";
}

void compare_with_vendor(SessionWork& work) {
  const DeviceInfo& device = work.result.device;
  if (!work.result.winner || vendor_library(work.operation, device).empty() || work.stopped()) {
    return;
  }
  if (device.is_cpu() && !work.options.allow_vendor) return;
  VendorRounds(work, work.operation.variant(vendor_variant)).run();
}

}  // namespace greta::tuner
