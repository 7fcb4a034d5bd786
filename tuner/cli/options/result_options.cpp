#include "tuner/cli/options/result_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "kernels/catalog.hpp"
#include "runtime/device/text/spelling.hpp"
#include "runtime/device/text/strings.hpp"
#include "tuner/cli/program/damage_report.hpp"
#include "tuner/cli/program/databases.hpp"
#include "tuner/cli/program/known_operations.hpp"
#include "tuner/cli/program/tool.hpp"

namespace greta::tuner::cli {
namespace {

[[noreturn]] void refuse_value(const std::string& option, const std::string& value,
                               const std::string& why) {
  throw CommandError(exit_usage, fmt::format("{} {}: {}", option, value, why));
}

std::optional<DType> read_dtype(const std::string& option, const std::string& text) {
  if (text.empty()) return std::nullopt;
  const auto dtype = dtype_from_string(text);
  if (!dtype) refuse_value(option, text, "must be " + converted_types_text());
  return dtype;
}

/// Parses "m=4096 n=4096" with the names of a problem key.
std::vector<std::pair<std::string, std::int64_t>> read_dims(const std::string& text) {
  if (text.empty()) return {};
  const auto problem = Problem::parse("any dtype=f32 out=f32 " + text);
  if (!problem || !problem->attributes.empty()) {
    refuse_value("--dims", text, "must be dimensions as \"m=4096 n=4096\"");
  }
  return problem->dims;
}

std::optional<bool> one_of(const std::string& yes, bool is_yes, const std::string& no, bool is_no) {
  if (is_yes && is_no) throw CommandError(exit_usage, fmt::format("{}: not with {}", yes, no));
  if (!is_yes && !is_no) return std::nullopt;
  return is_yes;
}

/// Throws unless some operation has the variant.
void check_variant_exists(const Catalog& catalog, const std::string& variant) {
  if (variant.empty()) return;
  std::vector<std::string> names;
  for (const Operation& operation : catalog) {
    for (const Variant& one : operation.variants) {
      if (one.name == variant) return;
      if (std::find(names.begin(), names.end(), one.name) == names.end()) names.push_back(one.name);
    }
  }
  refuse_value("--variant", variant, must_be_one_of(variant, names));
}

}  // namespace

void add_result_options(CLI::App& command, ResultOptions& options) {
  command.add_option("--db", options.db, "Database of trials and winners")->capture_default_str();
  add_kernels_option(command);
  const auto add = [&](const std::string& name, std::string& value, const std::string& help) {
    command.add_option(name, value, help)->group("Which results");
  };
  add("--op", options.op, "Only this operation");
  add("--dtype", options.dtype, "Only inputs of this type: " + converted_types_text());
  add("--out-dtype", options.out_dtype, "Only outputs of this type");
  add("--dims", options.dims, "Only problems with these dimensions: \"m=4096 n=4096\"");
  add("--variant", options.variant, "Only winners of this variant");
  add("--device", options.device,
      "Only devices with this id (vulkan:0), or part of a name or architecture (gfx942)");
  add("--driver", options.driver, "Only results of a driver with this in its name or version");
  const auto flag = [&](const std::string& name, bool& value, const std::string& help) {
    command.add_flag(name, value, help)->group("Which results");
  };
  flag("--cold", options.cold, "Only results with cold caches");
  flag("--warm", options.warm, "Only results with warm caches");
  flag("--stale", options.stale, "Only results whose driver, compiler or templates changed");
  flag("--fresh", options.fresh, "Only results that are not stale");
}

ResultFilter read_filter(const ResultOptions& options) {
  if (!options.op.empty() && known_operations().find(options.op) == nullptr) {
    std::vector<std::string> names;
    for (const Operation& entry : known_operations()) names.push_back(entry.name);
    refuse_value("--op", options.op,
                 must_be_one_of(options.op, names) + "; --kernels DIR adds those of a folder");
  }
  check_variant_exists(known_operations(), options.variant);
  ResultFilter filter;
  filter.op = options.op;
  filter.dtype = read_dtype("--dtype", options.dtype);
  filter.out_dtype = read_dtype("--out-dtype", options.out_dtype);
  filter.dims = read_dims(options.dims);
  filter.variant = options.variant;
  filter.device = options.device;
  filter.driver = options.driver;
  filter.cold = one_of("--cold", options.cold, "--warm", options.warm);
  filter.stale = one_of("--stale", options.stale, "--fresh", options.fresh);
  return filter;
}

void check_device_is_known(const TunedDb& db, const ResultFilter& filter) {
  if (filter.device.empty()) return;
  std::set<std::string> names;
  for (const auto& result : db.results()) {
    if (answers_to(result.device, result.device_id, filter.device)) return;
    names.insert(fmt::format("{} {}", result.device_id, result.device.name));
  }
  const std::string reason =
      names.empty() ? "no winner of any device is known"
                    : fmt::format("must be one of, or a part of, {}", fmt::join(names, ", "));
  if (tell_damage(db)) {
    throw CommandError(exit_failed, fmt::format("--device {}: {}", filter.device, reason));
  }
  refuse_value("--device", filter.device, reason);
}

std::string nothing_selected(const TunedDb& db, const ResultOptions& options) {
  std::string filters;
  const auto add = [&](const std::string& option, const std::string& value) {
    if (!value.empty())
      filters += fmt::format("{}{} {}", filters.empty() ? "" : " ", option, value);
  };
  const auto flag = [&](const std::string& option, bool given) {
    if (given) filters += (filters.empty() ? "" : " ") + option;
  };
  add("--op", options.op);
  add("--dtype", options.dtype);
  add("--out-dtype", options.out_dtype);
  add("--dims", options.dims);
  add("--variant", options.variant);
  add("--device", options.device);
  add("--driver", options.driver);
  flag("--cold", options.cold);
  flag("--warm", options.warm);
  flag("--stale", options.stale);
  flag("--fresh", options.fresh);
  std::map<std::string, std::size_t> counts;
  std::set<std::string> variants, drivers;
  for (const auto& result : db.results()) {
    ++counts[result.problem.op];
    variants.insert(result.winner.config.variant);
    drivers.insert(result.provenance.driver);
  }
  if (filters.empty() || counts.empty()) return {};
  std::string there;
  for (const auto& [op, count] : counts)
    there += fmt::format("{}{} of {}", there.empty() ? "" : ", ", count, op);
  return fmt::format("no result meets {}; there are {}, of the variants {} and the drivers {}",
                     filters, there, fmt::join(variants, ", "), fmt::join(drivers, ", "));
}

TunedDb open_existing(const std::filesystem::path& file) {
  if (!std::filesystem::exists(file)) refuse_value("--db", file.string(), "there is no such file");
  return open_database(file, TunedDb::Mode::read_write);
}

std::vector<std::pair<StoredSession, DeviceInfo>> select_sessions(const TunedDb& db,
                                                                  const ResultFilter& filter) {
  std::map<std::string, DeviceInfo> devices;
  for (const auto& device : db.devices()) devices.emplace(device.info.fingerprint(), device.info);
  std::vector<std::pair<StoredSession, DeviceInfo>> selected;
  for (const auto& session : db.sessions()) {
    const auto device = devices.find(session.device_fingerprint);
    if (device == devices.end()) throw Error("there is no device " + session.device_fingerprint);
    if (filter.matches(session, device->second)) selected.emplace_back(session, device->second);
  }
  return selected;
}

std::vector<StoredWinner> select_results(const TunedDb& db, const ResultFilter& filter,
                                         StalenessJudge& judge) {
  check_device_is_known(db, filter);
  auto results = db.results();
  std::erase_if(results,
                [&](const StoredWinner& result) { return !filter.matches(result, judge); });
  return results;
}

}  // namespace greta::tuner::cli
