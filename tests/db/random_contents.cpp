#include "tests/db/random_contents.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "db/enum_text.hpp"
#include "db/json.hpp"
#include "tests/db/fixture.hpp"
#include "tests/layers.hpp"

namespace greta::test {
namespace {

std::string date(std::mt19937_64& random) {
  return "2026-11-0" + std::to_string(1 + random() % 3) + "T00:00:00Z";
}

DeviceInfo random_device(std::mt19937_64& random) {
  auto device = sample_device();
  device.name = random() % 2 ? "one model" : "another model";
  device.card.uuid = random() % 2 ? "a" : "b";
  device.driver = random() % 2 ? "driver 1" : "driver 2";
  return device;
}

std::vector<StoredCard> random_cards(std::mt19937_64& random) {
  std::vector<StoredCard> cards;
  for (const char* uuid : {"a", "b"}) {
    if (random() % 3 == 0) continue;
    const auto first = date(random), last = date(random);
    cards.push_back({{uuid, random() % 2 ? "0000:01:00.0" : "0000:41:00.0"},
                     std::min(first, last),
                     std::max(first, last)});
  }
  return cards;
}

StoredWinner random_result(std::mt19937_64& random, const DeviceInfo& device) {
  StoredWinner result;
  result.problem = sample_problem();
  result.problem.dims[0].second = static_cast<std::int64_t>(1 + random() % 2);
  result.device = device;
  result.provenance = {random() % 2 ? "0.1.0" : "0.2.0", random() % 2 ? "templates" : "others",
                       random() % 2 ? "driver 1" : "driver 2", "compiler", date(random)};
  result.winner = sample_winner();
  result.winner.card = random() % 3 ? device.card.uuid : "";
  result.winner.cold = result.winner.measurement.cold = random() % 2;
  result.winner.config.values[0].second = static_cast<int>(random() % 2);
  result.winner.measurement.median_us = 10.0 + static_cast<double>(random() % 3);
  if (random() % 8 == 0) result.winner.verdict.passed = false;
  if (random() % 8 == 0) result.winner.measurement.median_us = std::nan("");
  if (random() % 3 == 0) result.winner.measurement.samples_us.clear();
  if (random() % 3 == 0) {
    result.regret = Regret{"m=7", 1.0 + static_cast<double>(random() % 2), Regret::Source::trials};
  }
  return result;
}

}  // namespace

Contents random_contents(std::mt19937_64& random) {
  Contents contents;
  std::map<std::string, DeviceInfo> devices;
  for (int i = 0; i < 3; ++i) {
    const auto device = random_device(random);
    if (!devices.emplace(device.fingerprint(), device).second) continue;
    const auto first = date(random), last = date(random);
    contents.devices.push_back(
        {device, std::min(first, last), std::max(first, last), random_cards(random)});
    for (const auto& card : contents.devices.back().cards) {
      contents.ceilings.push_back(
          {device.fingerprint(),
           {"copy_gbps", static_cast<double>(random() % 3), 1,
            random() % 2 ? "driver 1" : "driver 2", date(random), card.card.uuid}});
    }
  }
  std::map<std::string, StoredWinner> results;  // one per key, as in a database
  for (auto left = random() % 12; left > 0; --left) {
    const auto device =
        std::next(devices.begin(), static_cast<std::ptrdiff_t>(random() % devices.size()));
    auto result = random_result(random, device->second);
    const auto key = result.problem.key() + result.provenance.driver +
                     result.provenance.template_key + device->first +
                     (result.winner.cold ? "cold" : "warm");
    results.insert_or_assign(key, std::move(result));
  }
  for (auto& [key, result] : results) contents.results.push_back(std::move(result));
  if (random() % 2) {
    contents.peers.push_back(
        {sample_problem(), "library", "versions", std::to_string(random() % 2), 5.0, date(random)});
  }
  for (const char* kernel : {"mine", "yours"}) {
    if (random() % 2) continue;
    const std::string bytes{"\0\xff<", 3};
    contents.kernels.push_back(
        {kernel, "k.jsonc", {{"k.jsonc", bytes + std::to_string(random() % 3)}}, date(random)});
  }
  for (const char* check : {"f16", "matrix"}) {
    if (random() % 2) continue;
    const std::string driver = random() % 2 ? "old" : "new";
    const std::string card = random() % 2 ? "a" : "b";
    contents.unsafe.push_back(
        {devices.begin()->first, {check, "timeout", "killed", driver, date(random), card}});
  }
  return contents;
}

std::string dump(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::vector<std::string> canonical(const Contents& contents) {
  std::vector<std::string> lines;
  for (const auto& device : contents.devices) {
    lines.push_back("device " + dump(to_json(device.info)) + device.first_seen_utc +
                    device.last_seen_utc);
    for (const auto& [card, first_seen, last_seen] : device.cards) {
      lines.push_back("card " + device.info.fingerprint() + card.uuid + card.pci_address +
                      first_seen + last_seen);
    }
  }
  for (const auto& result : contents.results) {
    const auto& origin = result.provenance;
    lines.push_back("result " + result.problem.key() + result.device.fingerprint() +
                    origin.greta_version + origin.template_key + origin.driver + origin.compiler +
                    origin.started_utc + dump(to_json(result.winner)) +
                    (result.regret
                         ? result.regret->neighbour + json_number(result.regret->ratio).dump() +
                               std::string(to_string(result.regret->source))
                         : "none"));
  }
  for (const auto& [device, ceiling] : contents.ceilings) {
    lines.push_back("ceiling " + device + ceiling.kind + std::to_string(ceiling.value) +
                    ceiling.driver + ceiling.measured_utc + ceiling.card);
  }
  for (const auto& peer : contents.peers) {
    lines.push_back("peer " + peer.problem.key() + peer.library + peer.circumstances +
                    peer.solution + std::to_string(peer.us) + peer.imported_utc);
  }
  for (const auto& kernel : contents.kernels) {
    std::string line = "kernel " + kernel.name + kernel.description + kernel.carried_utc;
    for (const auto& [name, content] : kernel.files) line += name + content;
    lines.push_back(std::move(line));
  }
  for (const auto& [device, part] : contents.unsafe) {
    lines.push_back("unsafe " + device + part.check + part.status + part.message + part.driver +
                    part.recorded_utc + part.card);
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

}  // namespace greta::test
