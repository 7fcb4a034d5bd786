#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tuner/profile/profile.hpp"

namespace greta::tuner {

/// How much of a resource a run took.
struct Usage {
  std::string resource;  ///< "memory bandwidth"
  double share = 0;      ///< of its peak, from 0 to about 1
  std::string text;      ///< "2980 of 3020 GB/s"
};

/// Returns what a run took of each resource that its counters, its time and the device's peaks
/// tell, the most used first.
std::vector<Usage> usages(const Profile& profile, const ProfiledWay& way);

/// Names what limits a way, in one line without a full stop: a resource that is used to two thirds
/// of its peak or more, else uneven work, else latency with what the subgroups wait for. Without
/// counters, what the roofline tells. Empty for a way that failed.
///
///   limited by shared-memory bandwidth: 91 of 128 bytes a clock, 12 % of them for bank conflicts
std::string limiter(const Profile& profile, const ProfiledWay& way);

}  // namespace greta::tuner
