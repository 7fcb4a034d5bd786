#include "db/lookup/known_winners.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "db/distance.hpp"
#include "db/regret.hpp"
#include "kernels/model/problem_rules.hpp"
#include "runtime/device/text/printable.hpp"

namespace greta::db {
namespace {

/// The number of nearest winners that are tried; reading one takes a fraction of a millisecond.
constexpr std::size_t most_tried = 64;

/// Whether kernels of one device may be suitable for the other.
bool same_architecture(const DeviceInfo& a, const DeviceInfo& b) {
  return a.backend == b.backend && a.language == b.language && !a.architecture.empty() &&
         a.architecture == b.architecture;
}

}  // namespace

struct KnownWinners::Candidate {
  std::size_t winner = 0;  ///< index in the family
  bool elsewhere = false;  ///< whether it is on another device
  bool other_shape = false;
  double distance = 0;
};

KnownWinners::KnownWinners(const DeviceInfo& device, const LookupFiles& files,
                           const LookupOptions& options)
    : catalog_(options.catalog), cold_(options.cold) {
  devices_.push_back({device.fingerprint(), true});
  if (files.own) add_layer(*files.own, DatabaseLevel::own, device);
  for (const auto& file : files.application) add_layer(file, DatabaseLevel::application, device);
  if (!files.shipped.empty()) add_shipped(files.shipped, device);
}

void KnownWinners::add_layer(const std::filesystem::path& file, DatabaseLevel level,
                             const DeviceInfo& device) {
  layers_.push_back({WinnerSource(file), level});
  read_index(layers_.size() - 1, device);
}

// What GRETA ships must not prevent anybody from running: a file that can't be read is left out.
void KnownWinners::add_shipped(const std::filesystem::path& folder, const DeviceInfo& device) {
  std::vector<std::filesystem::path> files;
  try {
    files = shipped_files(folder, device.architecture);
  } catch (const Error& error) {
    return note(error.what());
  }
  for (const auto& file : files) {
    try {
      add_layer(file, DatabaseLevel::shipped, device);
    } catch (const Error& error) {
      note(fmt::format("a shipped database is not used: {}", error.what()));
    }
  }
}

void KnownWinners::note(std::string why) {
  why = one_line(why);
  if (std::find(unreadable_.begin(), unreadable_.end(), why) == unreadable_.end()) {
    unreadable_.push_back(std::move(why));
  }
}

/// Calls `read` with each database. An error of a shipped one is noted.
template <typename Read>
void KnownWinners::read_each(Read read) {
  for (const Layer& layer : layers_) {
    try {
      read(layer.source);
    } catch (const Error& error) {
      if (layer.level != DatabaseLevel::shipped) throw;
      note(error.what());
    }
  }
}

void KnownWinners::read_index(std::size_t layer, const DeviceInfo& device) {
  std::map<const DeviceInfo*, std::optional<std::uint16_t>> numbers;
  const auto number_of = [&](const DeviceInfo& other) -> std::optional<std::uint16_t> {
    const auto fingerprint = other.fingerprint();
    const auto known = std::find_if(devices_.begin(), devices_.end(), [&](const Device& one) {
      return one.fingerprint == fingerprint;
    });
    if (known != devices_.end()) return static_cast<std::uint16_t>(known - devices_.begin());
    if (!same_architecture(device, other) || devices_.size() > UINT16_MAX) return std::nullopt;
    devices_.push_back({fingerprint, false});
    return static_cast<std::uint16_t>(devices_.size() - 1);
  };
  const std::string file = layers_[layer].source.file().string();
  std::size_t without_device = 0;
  const DeviceInfo* last = nullptr;
  std::optional<std::uint16_t> number;
  const auto wanted = [&](const DeviceInfo& other) {
    return other.fingerprint() == devices_.front().fingerprint || same_architecture(device, other);
  };
  layers_[layer].source.for_each(cold_, wanted, [&](const WinnerPlace& place) {
    if (place.device == nullptr) {
      ++without_device;
      return;
    }
    if (place.device != last) {
      const auto [found, is_new] = numbers.try_emplace(place.device);
      if (is_new) found->second = number_of(*place.device);
      number = found->second;
      last = place.device;
    }
    if (!number || index_.add(place.problem, {static_cast<std::uint16_t>(layer), *number})) return;
    note(fmt::format("{}: a winner of \"{}\", which is not a problem's key", file, place.problem));
  });
  if (without_device == 0) return;
  note(fmt::format("{}: {} winners of devices that can't be read", file, without_device));
}

std::vector<KnownWinners::Candidate> KnownWinners::nearest(
    const Problem& problem, const Problem& representative,
    const WinnerIndex::Family& family) const {
  std::vector<std::int64_t> wanted;
  for (const auto& [name, extent] : problem.dims) wanted.push_back(extent);
  std::vector<Candidate> all(family.places.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto extents = family.extents_of(i);
    all[i].winner = i;
    all[i].elsewhere = !devices_[family.places[i].device].is_this_one;
    all[i].other_shape = !std::equal(extents.begin(), extents.end(), wanted.begin(), wanted.end());
    if (all[i].other_shape) all[i].distance = shape_distance(representative, extents);
  }
  const auto before = [&](const Candidate& a, const Candidate& b) {
    const auto first = std::tie(a.elsewhere, a.other_shape, a.distance);
    const auto second = std::tie(b.elsewhere, b.other_shape, b.distance);
    if (first != second) return first < second;
    const auto x = family.extents_of(a.winner), y = family.extents_of(b.winner);
    if (!std::equal(x.begin(), x.end(), y.begin())) {
      return std::lexicographical_compare(x.begin(), x.end(), y.begin(), y.end());
    }
    const auto &p = family.places[a.winner], &q = family.places[b.winner];
    return std::tie(p.layer, devices_[p.device].fingerprint, a.winner) <
           std::tie(q.layer, devices_[q.device].fingerprint, b.winner);
  };
  std::erase_if(all, [](const Candidate& one) { return one.distance > most_shape_distance; });
  const auto end = all.begin() + static_cast<std::ptrdiff_t>(std::min(all.size(), most_tried));
  std::partial_sort(all.begin(), end, all.end(), before);
  all.erase(end, all.end());
  return all;
}

std::optional<StoredWinner> KnownWinners::read(const Problem& problem, WinnerIndex::Place place,
                                               const DeviceInfo& present) {
  const WinnerSource& source = layers_[place.layer].source;
  try {
    auto found = source.find(devices_[place.device].fingerprint, problem.key(), cold_, present);
    if (found) return found;
    note(fmt::format("{}: the winner of {} is damaged, as greta-db verify says",
                     source.file().string(), problem.key()));
  } catch (const Error& error) {
    note(error.what());
  }
  return std::nullopt;
}

std::optional<Config> KnownWinners::fastest(const Problem& problem, const DeviceInfo& device,
                                            const Wanted& wanted) {
  const Instance instance(catalog_.at(problem.op), problem, device);
  std::optional<Config> found;
  read_each([&](const WinnerSource& source) {
    if (found) return;
    const auto recorded =
        source.fastest_configs(devices_.front().fingerprint, problem.key(), cold_);
    for (const Config& stored : recorded) {
      auto today = instance.migrate(stored);
      if (!today || !wanted(today->config) || instance.rejects(today->config)) continue;
      found = std::move(today->config);
      return;
    }
  });
  return found;
}

std::optional<KnownWinners::Found> KnownWinners::find(const Operation& operation,
                                                      const Asked& asked, const DeviceInfo& device,
                                                      const Wanted& wanted) {
  auto found = find_family(operation, asked, asked, device, wanted);
  const Problem stricter = without_permissions(operation, asked.problem);
  if (found || stricter == asked.problem) return found;
  found = find_family(operation, asked, {stricter, bucket(operation, stricter)}, device, wanted);
  if (found) found->forbids_more = true;
  return found;
}

std::optional<KnownWinners::Found> KnownWinners::find_family(const Operation& operation,
                                                             const Asked& asked, const Asked& like,
                                                             const DeviceInfo& device,
                                                             const Wanted& wanted) {
  auto found = find_like(asked, like, device, wanted);
  const auto rank = [](const Found& one) {
    return std::pair(one.origin == LookupOrigin::same_architecture, one.other_shape);
  };
  const auto search_like = [&](const Problem& problem) {
    if (problem == like.problem) return;
    auto other = find_like(asked, {problem, bucket(operation, problem)}, device, wanted);
    if (!found || (other && rank(*other) < rank(*found))) found = std::move(other);
  };
  search_like(of_packed_rows(operation, like.problem));
  if (operation.unfused) {
    Problem before = like.problem, next = operation.unfused(before);
    for (; !(next == before); next = operation.unfused(before)) {
      search_like(next);
      before = next;
    }
  }
  return found;
}

std::optional<KnownWinners::Found> KnownWinners::find_like(const Asked& asked, const Asked& other,
                                                           const DeviceInfo& device,
                                                           const Wanted& wanted) {
  const auto* family = index_.find(other.problem);
  if (family == nullptr) return std::nullopt;
  const Operation& operation = catalog_.at(asked.problem.op);
  const bool same_family = other.problem.attributes == asked.problem.attributes;
  const DeviceInfo alone = device.without_libraries();
  for (const Candidate& candidate : nearest(other.problem, other.representative, *family)) {
    const auto place = family->places[candidate.winner];
    const bool exact = same_family && !candidate.elsewhere && !candidate.other_shape;
    auto winner = read(family->problem_of(candidate.winner), place, exact ? device : alone);
    // A rank in the library's list means another algorithm for another shape, or none.
    if (!winner || (!exact && is_of_vendor(winner->winner))) continue;
    // The bucket's own shape is no other one.
    const bool same_shape =
        !candidate.other_shape || winner->problem.dims == asked.representative.dims;
    const bool own = exact || (same_shape && !winner->winner.is_default);
    const Config stored =
        own ? winner->winner.config
            : carried_over(catalog_, winner->winner, asked.representative, device);
    auto usable = catalog_.usable(asked.problem, device, stored);
    if (!usable && usable.failure().status == Status::invalid_argument) {
      note(fmt::format("{}: the winner of {} is not used: {}",
                       layers_[place.layer].source.file().string(), winner->problem.key(),
                       usable.failure().message));
    }
    if (!usable || (wanted && !wanted(usable->config))) continue;
    if (!exact && !catalog_.valid(asked.representative, device, usable->config))
      continue;  // the whole bucket shares the answer
    if (!own && loads_narrower(catalog_, *winner, usable->config, asked.representative, device)) {
      continue;
    }
    const auto origin = exact                 ? LookupOrigin::exact
                        : candidate.elsewhere ? LookupOrigin::same_architecture
                                              : LookupOrigin::nearest_shape;
    const Layer& layer = layers_[place.layer];
    const bool little =
        !own && !winner->winner.is_default && implies_default(operation, winner->winner);
    return Found{.winner = *std::move(winner),
                 .usable = *std::move(usable),
                 .origin = origin,
                 .other_shape = candidate.other_shape,
                 .implies_default = little,
                 .level = layer.level,
                 .database = layer.source.file()};
  }
  return std::nullopt;
}

std::vector<RecordedCost> KnownWinners::recorded_costs(const std::string& op) {
  std::vector<RecordedCost> all;
  read_each([&](const WinnerSource& source) {
    auto costs = source.recorded_costs(devices_.front().fingerprint, op, cold_);
    std::move(costs.begin(), costs.end(), std::back_inserter(all));
  });
  return all;
}

std::vector<UnsafePart> KnownWinners::unsafe(const DeviceInfo& device) {
  std::vector<UnsafePart> all;
  read_each([&](const WinnerSource& source) {
    auto parts = source.unsafe(device);
    std::move(parts.begin(), parts.end(), std::back_inserter(all));
  });
  return all;
}

std::optional<CarriedBinary> KnownWinners::binary(const std::string& content,
                                                  const std::vector<std::string>& targets) {
  for (const std::string& target : targets) {
    for (const Layer& layer : layers_) {
      try {
        if (auto found = layer.source.binary(content, target)) return found;
      } catch (const Error& error) {
        note(error.what());
      }
    }
  }
  return std::nullopt;
}

bool KnownWinners::has_binaries(const std::vector<std::string>& targets) {
  bool found = false;
  read_each([&](const WinnerSource& source) {
    for (const std::string& target : targets) found = found || source.has_binaries(target);
  });
  return found;
}

std::optional<CarriedKernel> KnownWinners::kernel(const std::string& name) {
  std::optional<CarriedKernel> found;
  read_each([&](const WinnerSource& source) {
    if (!found) found = source.kernel(name);
  });
  return found;
}

}  // namespace greta::db
