#include "tuner/profile/limiter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "tuner/profile/figures.hpp"
#include "tuner/report/format.hpp"

namespace greta::tuner {
namespace {

constexpr double busy = 2.0 / 3;  // from this share of a peak on, a resource is the limit
constexpr double uneven = 0.75;   // below this balance of the compute units, the work is uneven
constexpr double telling = 0.05;  // smaller shares are not worth a word
constexpr std::size_t most_stalls = 2;

/// Returns "2700 of 3000 GB/s".
std::string of_bandwidth(double gbps, double peak) {
  const auto number = [](double value) {
    return value < 100 ? fmt::format("{:.3g}", value) : fmt::format("{:.0f}", value);
  };
  return fmt::format("{} of {} GB/s", number(gbps), number(peak));
}

class Usages {
 public:
  Usages(const Profile& profile, const ProfiledWay& way, const Counters& counters)
      : profile_(profile), way_(way), counters_(counters) {}

  std::vector<Usage> all() {
    add_memory();
    add_shared();
    add_share(figure_l2_share, "L2 bandwidth", counted_over_measured());
    add_share(figure_l1_share, "the data path of L1 and shared memory");
    add_share(figure_matrix_share, "the matrix units");
    add_share(figure_fma_share, "the FMA units");
    add_share(figure_alu_share, "the integer units");
    add_share(figure_memory_unit_share, "the load/store units");
    add_share(figure_issue_share, "the rate of instructions");
    std::stable_sort(list_.begin(), list_.end(),
                     [](const Usage& a, const Usage& b) { return a.share > b.share; });
    return std::move(list_);
  }

 private:
  /// A counted run lasts longer than a timed one by the time around its launch, and shares of the
  /// elapsed time are smaller by that much.
  double counted_over_measured() const {
    const auto counted = counters_.figure(figure_counted_time);
    const double us = way_.us.estimate;
    return counted && us > 0 && *counted > us ? *counted / us : 1;
  }

  void add_memory() {
    const auto read = counters_.figure(figure_memory_read);
    const auto written = counters_.figure(figure_memory_write);
    if (!read || way_.us.estimate <= 0 || profile_.copy_gbps <= 0) return;
    const double gbps = (*read + written.value_or(0)) / way_.us.estimate / 1e3;
    std::string text = of_bandwidth(gbps, profile_.copy_gbps);
    if (!written) text += " by reads alone";
    list_.push_back({"memory bandwidth", gbps / profile_.copy_gbps, std::move(text)});
  }

  void add_shared() {
    const auto rate = counters_.figure(figure_shared_rate);
    const auto peak = counters_.figure(figure_shared_peak);
    if (!rate || !peak || *peak <= 0) return;
    std::string text = fmt::format("{:.0f} of {:.0f} bytes a clock", *rate, *peak);
    const auto conflicts = counters_.figure(figure_shared_conflicts);
    if (conflicts && *conflicts >= telling) {
      text += fmt::format(", {} of them for bank conflicts", format_share(*conflicts));
    }
    list_.push_back({"shared-memory bandwidth", *rate / *peak, text});
  }

  void add_share(std::string_view name, const char* resource, double factor = 1) {
    const auto share = counters_.figure(name);
    if (!share) return;
    const double used = std::min(1.0, *share * factor);
    list_.push_back({resource, used, fmt::format("{} of the peak", format_share(used))});
  }

  const Profile& profile_;
  const ProfiledWay& way_;
  const Counters& counters_;
  std::vector<Usage> list_;
};

/// Returns "they wait for loads … 61 % of the time, for … 12 %", or nothing.
std::string waits(const Counters& counters) {
  std::string text;
  std::size_t told = 0;
  for (const Stall& stall : stalls(counters)) {
    if (told == most_stalls || stall.share < telling) break;
    text += fmt::format("{}for {} ({} of their time)", told == 0 ? "" : ", ", stall.reason->words,
                        format_share(stall.share));
    ++told;
  }
  const char* const who = counters.source.starts_with("CUPTI") ? "warps" : "subgroups";
  return text.empty() ? text : fmt::format("; {} wait {}", who, text);
}

std::string latency(const Counters& counters, const std::vector<Usage>& used) {
  std::string text = "limited by latency";
  if (!used.empty()) {
    text += fmt::format(": nothing is busier than {} at {}", used.front().resource,
                        format_share(used.front().share));
  }
  const auto occupancy = counters.figure(figure_occupancy);
  if (occupancy) text += fmt::format("; occupancy {}", format_share(*occupancy));
  return text + waits(counters);
}

/// What time and least work tell.
std::string by_roofline(const Profile& profile, const ProfiledWay& way) {
  const double us = way.us.estimate;
  if (us <= 0 || profile.roofline_us <= 0) return {};
  const double memory_us = profile.work.bytes / profile.copy_gbps / 1e3;
  const double arithmetic_us =
      profile.arithmetic_gflops > 0 ? profile.work.flops / profile.arithmetic_gflops / 1e3 : 0;
  const bool memory = memory_us >= arithmetic_us;
  const std::string rate = memory ? of_bandwidth(profile.work.bytes / us / 1e3, profile.copy_gbps)
                                  : fmt::format("{} of {}", format_rate(profile.work.flops, us),
                                                format_rate(profile.arithmetic_gflops * 1e3, 1));
  const char* const roof = memory ? "memory bandwidth" : "arithmetic";
  if (profile.roofline_us / us >= busy) {
    return fmt::format("near the roofline of {}: {}", roof, rate);
  }
  return fmt::format("at {} of the roofline of {}: {}; only counters show what else limits it",
                     format_share(profile.roofline_us / us), roof, rate);
}

}  // namespace

std::vector<Usage> usages(const Profile& profile, const ProfiledWay& way) {
  if (!way.counters) return {};
  return Usages(profile, way, *way.counters).all();
}

std::string limiter(const Profile& profile, const ProfiledWay& way) {
  if (!way.trial.ok()) return {};
  if (!way.counters) return by_roofline(profile, way);
  const auto used = usages(profile, way);
  if (!used.empty() && used.front().share >= busy) {
    return fmt::format("limited by {}: {}", used.front().resource, used.front().text);
  }
  const auto balance = way.counters->figure(figure_balance);
  if (balance && *balance < uneven) {
    return fmt::format(
        "limited by uneven work: the compute units are busy {} of the time of the longest",
        format_share(*balance));
  }
  return latency(*way.counters, used);
}

}  // namespace greta::tuner
