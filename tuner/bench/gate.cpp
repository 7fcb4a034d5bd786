#include "tuner/bench/gate.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <regex>

#include "runtime/device/text/printable.hpp"
#include "runtime/device/text/strings.hpp"
#include "tuner/bench/shift.hpp"

namespace greta::tuner {
namespace {

constexpr double gate_confidence = 0.95;
constexpr std::size_t most_gate_text = 1000;
constexpr std::array<std::string_view, 6> measure_names{"us",       "tflops", "gbps",
                                                        "roofline", "error",  "speed"};
constexpr std::string_view number_form = R"(([0-9]+(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?))";
constexpr std::string_view device_form = R"((?: +on +(\S.*\S|\S))?)";

// Upper limits, lower limits, and speeds, each with a device after it.
std::string limit_form() {
  return fmt::format(R"((?:(us|error) *(?:<=|≤)|(tflops|gbps|roofline) *(?:>=|≥)) *{} *(%?))",
                     number_form);
}
std::string speed_form() {
  return fmt::format(R"((?:>=|≥) *{} *(?:x|×) *(\S.*\.csv|\S+))", number_form);
}

double number_of(const std::string& text) {
  double value = 0;
  const auto end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  return read.ec == std::errc() && read.ptr == end && std::isfinite(value) ? value : 0;
}

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(' ');
  return first == std::string::npos ? ""
                                    : text.substr(first, text.find_last_not_of(' ') - first + 1);
}

Failure gate_failure(const std::string& text, const std::string& why) {
  constexpr std::size_t shown = 80;
  return Failure{
      Status::invalid_argument, fmt::format("\"{}\" {}", one_line(text.substr(0, shown)), why), {}};
}

// Reads a limit of a measure: its number is given as a share or in percent for shares.
Result<void> read_limit(const std::smatch& match, Gate& gate) {
  const std::string name = match[1].matched ? match[1].str() : match[2].str();
  const auto at = std::find(measure_names.begin(), measure_names.end(), name);
  gate.measure = static_cast<Gate::Measure>(at - measure_names.begin());
  gate.limit = number_of(match[3].str());
  const bool share =
      gate.measure == Gate::Measure::roofline || gate.measure == Gate::Measure::error;
  const bool percent = match[4].length() > 0;
  if (percent && !share) return gate_failure(gate.text, fmt::format("{} has no percent", name));
  if (percent) gate.limit /= 100;
  if (share && gate.limit > 1) {
    return gate_failure(gate.text, "must be a share of at most 1, or of at most 100 %");
  }
  gate.device = match[5].str();
  return {};
}

// Reads what a speed is compared with: "default", a variant, or "vulkan:FILE.csv".
Result<void> read_reference(const std::string& name, const std::vector<std::string>& variants,
                            const std::filesystem::path& folder, Gate& gate) {
  if (name == "default") {
    gate.reference = Gate::Reference::fallback;
    return {};
  }
  if (!name.ends_with(".csv")) {
    gate.reference = Gate::Reference::variant;
    gate.variant = name;
    if (std::find(variants.begin(), variants.end(), name) != variants.end()) return {};
    return gate_failure(gate.text,
                        fmt::format("compares with {}, which is none of default, {} and a CSV file",
                                    one_line(name), fmt::join(variants, ", ")));
  }
  gate.reference = Gate::Reference::file;
  std::string file = name;
  for (const Api api : {Api::vulkan, Api::hip, Api::hip_host}) {
    const std::string prefix = std::string(to_string(api)) + ":";
    if (!name.starts_with(prefix)) continue;
    gate.backend = to_string(api);
    file = name.substr(prefix.size());
  }
  gate.file = folder / file;
  return {};
}

std::vector<double> medians_of_blocks(const Samples& samples) {
  std::vector<double> medians;
  for (const auto& block : samples.blocks_us) {
    if (!block.empty()) medians.push_back(median(block));
  }
  return medians;
}

bool is_known(const Interval& interval) {
  return interval.low > 0 && std::isfinite(interval.high);
}

// Returns an amount of work divided by the time; nothing if the amount is unknown.
std::optional<Interval> rate_of(double amount, const Interval& us) {
  if (amount <= 0) return std::nullopt;
  return Interval{amount / us.high, amount / us.low, amount / us.estimate};
}

// Returns what the gate limits; the text of an error if it is unknown.
Result<Interval> measured_by(const Gate& gate, const MeasuredResult& measured,
                             const MeasuredResult* reference) {
  const auto unknown = [](const std::string& why) { return Failure{Status::unavailable, why, {}}; };
  if (gate.measure == Gate::Measure::error) {
    const double ratio = measured.verdict.ratio();
    return Interval{ratio, ratio, ratio};
  }
  if (measured.us.median <= 0) return unknown("it has no time");
  const Interval us = time_interval(measured);
  std::optional<Interval> rate;
  switch (gate.measure) {
    case Gate::Measure::us:
      return us;
    case Gate::Measure::tflops:
      rate = rate_of(measured.work.flops / 1e6, us);
      break;
    case Gate::Measure::gbps:
      rate = rate_of(measured.work.bytes / 1e3, us);
      break;
    case Gate::Measure::roofline:
      rate = rate_of(measured.roofline * measured.us.median, us);
      break;
    default:
      break;
  }
  if (gate.measure != Gate::Measure::speed) {
    if (rate) return *rate;
    return unknown(gate.measure == Gate::Measure::roofline ? "no peaks of the device are known"
                                                           : "its work is unknown");
  }
  if (reference == nullptr) return unknown("there is nothing to compare with");
  if (reference->failure) return unknown("what it is compared with fails");
  if (reference->us.median <= 0) return unknown("what it is compared with has no time");
  if (reference == &measured) return Interval{1, 1, 1};
  return gate.reference == Gate::Reference::file
             ? separate_ratio(*reference, measured)
             : paired_ratio(reference->samples, measured.samples);
}

std::string amount_text(const Gate& gate, double amount) {
  switch (gate.measure) {
    case Gate::Measure::us:
      return fmt::format("{:.4g} µs", amount);
    case Gate::Measure::tflops:
      return fmt::format("{:.3g} TFLOPS", amount);
    case Gate::Measure::gbps:
      return fmt::format("{:.3g} GB/s", amount);
    case Gate::Measure::roofline:
      return fmt::format("{:.3g} % of the roofline", 100 * amount);
    case Gate::Measure::error:
      return fmt::format("{:.3g} % of its bound", 100 * amount);
    case Gate::Measure::speed:
      break;
  }
  return fmt::format("{:.3g}x", amount);
}

}  // namespace

bool Gate::concerns(const DeviceInfo& info) const {
  const std::string wanted = lowercase(device);
  return wanted.empty() || wanted == info.id() || wanted == to_string(info.backend) ||
         (wanted.find(':') == std::string::npos &&
          lowercase(info.name + "\n" + info.architecture).find(wanted) != std::string::npos);
}

Result<Gate> parse_gate(const std::string& text, const std::vector<std::string>& variants,
                        const std::filesystem::path& folder) {
  constexpr auto forms =
      "is none of the limits us <= 40, tflops >= 1.2, gbps >= 500, roofline >= 60 %, error <= 50 "
      "%, >= "
      "1.1x default, >= 2x VARIANT or >= 10x vulkan:FILE.csv, each with or without \"on DEVICE\"";
  Gate gate;
  const std::string own = trimmed(text);
  gate.text = one_line(own);
  static const std::regex limit(limit_form() + std::string(device_form));
  static const std::regex speed(speed_form() + std::string(device_form));
  std::smatch match;
  if (text.size() > most_gate_text) return gate_failure(text, forms);
  Result<void> read;
  if (std::regex_match(own, match, limit)) {
    read = read_limit(match, gate);
  } else if (std::regex_match(own, match, speed)) {
    gate.measure = Gate::Measure::speed;
    gate.limit = number_of(match[1].str());
    gate.device = match[3].str();
    read = read_reference(match[2].str(), variants, folder, gate);
  } else {
    return gate_failure(gate.text, forms);
  }
  if (!read) return read.failure();
  if (gate.limit > 0) return gate;
  // Only an error may be 0.
  if (gate.measure == Gate::Measure::error) return gate;
  return gate_failure(gate.text, "has no number above 0");
}

std::string gate_pattern() {
  return fmt::format("^ *(?:{}|{}){} *$", limit_form(), speed_form(), device_form);
}

std::string_view to_string(GateOutcome outcome) {
  switch (outcome) {
    case GateOutcome::met:
      return "met";
    case GateOutcome::missed:
      return "missed";
    case GateOutcome::inconclusive:
      return "inconclusive";
    case GateOutcome::not_measured:
      return "not measured";
  }
  return "unknown";
}

Interval time_interval(const MeasuredResult& result) {
  const auto medians = medians_of_blocks(result.samples);
  if (medians.size() > 1) {
    return ratio_interval(medians, std::vector<double>(medians.size(), 1.0), gate_confidence);
  }
  const TimeSummary& us = result.us;
  const bool known = us.low > 0 && us.high > 0;
  return {known ? us.low : us.median, known ? us.high : us.median, us.median};
}

Interval paired_ratio(const Samples& one, const Samples& other) {
  const std::size_t count = std::min(one.blocks_us.size(), other.blocks_us.size());
  std::vector<double> a, b;
  for (std::size_t i = 0; i < count; ++i) {
    a.push_back(median(one.blocks_us[i]));
    b.push_back(median(other.blocks_us[i]));
  }
  return ratio_interval(a, b, gate_confidence);
}

Interval separate_ratio(const MeasuredResult& one, const MeasuredResult& other) {
  auto numerators = medians_of_blocks(one.samples), denominators = medians_of_blocks(other.samples);
  for (auto* medians : {&numerators, &denominators}) {
    for (double& us : *medians) us = std::log(us);
  }
  const Interval shift = shift_interval(denominators, numerators, gate_confidence);
  if (is_known(shift)) return shift;
  const Interval a = time_interval(one), b = time_interval(other);
  return {a.low / b.high, a.high / b.low, a.estimate / b.estimate};
}

GateResult judge(const Gate& gate, const std::string& benchmark, const MeasuredResult& measured,
                 const MeasuredResult* reference) {
  GateResult result{.gate = gate, .benchmark = benchmark};
  if (measured.failure) {
    const bool is_interrupted = measured.failure->status == Status::unavailable;
    result.why = is_interrupted ? fmt::format("{} after {} blocks", measured.failure->message,
                                              measured.samples.blocks_us.size())
                                : fmt::format("it fails: {}", to_string(measured.failure->status));
    return result;
  }
  const auto found = measured_by(gate, measured, reference);
  if (!found) {
    result.why = found.failure().message;
    return result;
  }
  result.measured = *found;
  const auto [low, high, estimate] = *found;
  const bool met = gate.is_upper() ? high <= gate.limit : low >= gate.limit;
  const bool missed = gate.is_upper() ? low > gate.limit : high < gate.limit;
  result.outcome = met      ? GateOutcome::met
                   : missed ? GateOutcome::missed
                            : GateOutcome::inconclusive;
  return result;
}

std::optional<MeasuredResult> baseline_of(const Gate& gate, const Problem& problem,
                                          CacheState cache,
                                          const std::vector<MeasuredResult>& rows) {
  const MeasuredResult* fastest = nullptr;
  for (const MeasuredResult& row : rows) {
    const Subject& subject = row.subject;
    const bool fits = !row.failure && row.us.median > 0 && subject.typed &&
                      subject.problem == problem && subject.cache == cache &&
                      subject.origin != ResultOrigin::stand_in &&
                      (gate.backend.empty() || gate.backend == subject.backend);
    if (fits && (fastest == nullptr || row.us.median < fastest->us.median)) fastest = &row;
  }
  return fastest ? std::optional(*fastest) : std::nullopt;
}

std::string measured_text(const GateResult& result) {
  if (result.outcome == GateOutcome::not_measured) return result.why;
  const Interval& measured = result.measured;
  const std::string estimate = amount_text(result.gate, measured.estimate);
  if (measured.low == measured.high) return estimate;
  if (!is_known(measured)) return estimate + " (too few blocks for an interval)";
  const double unit = result.gate.measure == Gate::Measure::roofline ? 100 : 1;
  return fmt::format("{} ({:.4g} to {:.4g})", estimate, unit * measured.low, unit * measured.high);
}

std::string gate_text(const GateResult& result) {
  return fmt::format("{}: {}, {}", result.gate.text, to_string(result.outcome),
                     measured_text(result));
}

}  // namespace greta::tuner
