#include "tuner/diagnose/facts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

namespace greta::tuner {
namespace {

constexpr double least_fact_share = 0.25;
constexpr std::size_t fewest_wrong = 4;
constexpr std::int64_t most_modulus = 64;

/// The wrong elements of one output.
class WrongElements {
 public:
  WrongElements(const Evidence& evidence, const ExaminedOutput& output)
      : evidence_(evidence), output_(output) {
    for (std::size_t i = 0; i < output.got.size(); ++i)
      if (output.wrong[i] != 0) wrong_.push_back(i);
  }

  std::vector<std::string> facts() {
    if (wrong_.size() < fewest_wrong) return {};
    add_values();
    add_ratios();
    add_operands();
    add_columns();
    std::stable_sort(found_.begin(), found_.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    std::vector<std::string> lines;
    for (const auto& [share, words] : found_)
      lines.push_back(fmt::format("{}: {:.3g} % of the wrong elements {}", output_.spec.name,
                                  100 * share, words));
    return lines;
  }

 private:
  double got(std::size_t i) const { return output_.got[i]; }
  double want(std::size_t i) const { return output_.want[i].value; }
  /// Returns whether a value is what was computed, but for the bound on the expected one.
  bool is_got(std::size_t i, double value) const {
    if (!std::isfinite(got(i)) || !std::isfinite(want(i))) return false;
    return agrees(got(i), value, 4 * output_.want[i].bound + 1e-6 * std::abs(value));
  }

  template <typename Is>
  void add(std::string words, const Is& is) {
    const auto count = static_cast<double>(std::count_if(wrong_.begin(), wrong_.end(), is));
    add_share(count / static_cast<double>(wrong_.size()), std::move(words));
  }
  void add_share(double share, std::string words) {
    if (share >= least_fact_share) found_.emplace_back(share, std::move(words));
  }

  void add_values() {
    add("are NaN", [&](std::size_t i) { return std::isnan(got(i)); });
    add("are infinite", [&](std::size_t i) { return std::isinf(got(i)); });
    add("are 0", [&](std::size_t i) { return got(i) == 0; });
    add("have the opposite sign and the proper size",
        [&](std::size_t i) { return want(i) != 0 && is_got(i, -want(i)); });
    add("are too large in size",
        [&](std::size_t i) { return std::abs(got(i)) > std::abs(want(i)); });
    add("are too small in size",
        [&](std::size_t i) { return std::abs(got(i)) < std::abs(want(i)); });
  }

  /// Ratios that are powers of two, and relative errors that are: bits that are lost or set.
  void add_ratios() {
    std::map<int, std::size_t> powers, bits;
    for (const std::size_t i : wrong_) {
      if (!std::isfinite(got(i)) || !std::isfinite(want(i)) || want(i) == 0 || got(i) == 0)
        continue;
      const double power = std::round(std::log2(std::abs(got(i) / want(i))));
      if (power != 0 && is_got(i, std::copysign(std::exp2(power) * want(i), got(i))))
        ++powers[static_cast<int>(power)];
      const double error = std::abs(got(i) - want(i));
      const double bit = std::round(std::log2(error));
      if (std::abs(error - std::exp2(bit)) <= 2 * output_.want[i].bound &&
          error < std::abs(want(i)) && error > 8 * output_.want[i].bound)
        ++bits[static_cast<int>(bit) - std::ilogb(want(i))];
    }
    add_most(powers, "are 2^{} times what is expected");
    add_most(bits, "are wrong by 2^{} of the power of two below what is expected: by one bit");
  }
  void add_most(const std::map<int, std::size_t>& counts, fmt::format_string<const int&> words) {
    const auto most =
        std::max_element(counts.begin(), counts.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    if (most == counts.end()) return;
    add_share(static_cast<double>(most->second) / static_cast<double>(wrong_.size()),
              fmt::format(words, most->first));
  }

  /// Elements that are, or are wrong by, a multiple of an operand's element at the same place.
  void add_operands() {
    for (const HostTensor& input : evidence_.inputs()) {
      if (input.spec.cols != output_.spec.cols ||
          (input.spec.rows != output_.spec.rows && input.spec.rows != 1))
        continue;
      const auto at = [&](std::size_t i) { return input.at(i % input.spec.elements()); };
      add(fmt::format("are the element of {} at the same place", input.spec.name),
          [&](std::size_t i) { return at(i) != 0 && is_got(i, at(i)); });
      for (const double times : {1.0, -1.0, 2.0, -2.0, 0.5, -0.5}) {
        add(fmt::format("are {:g} times the element of {} at the same place too large", times,
                        input.spec.name),
            [&](std::size_t i) {
              const bool seen = std::abs(times * at(i)) > 8 * output_.want[i].bound;
              return seen && is_got(i, want(i) + times * at(i));
            });
      }
    }
  }

  /// Columns of the same lane, or of the same element of vectors.
  void add_columns() {
    for (std::int64_t modulus = 2; modulus <= std::min(most_modulus, output_.spec.cols / 2);
         modulus *= 2) {
      std::set<std::int64_t> columns;
      for (const std::size_t i : wrong_)
        columns.insert(static_cast<std::int64_t>(i) % output_.spec.cols % modulus);
      if (2 * static_cast<std::int64_t>(columns.size()) > modulus) continue;
      std::string list;
      for (const std::int64_t column : columns)
        list += fmt::format("{}{}", list.empty() ? "" : ", ", column);
      return add_share(1, fmt::format("lie in columns {} modulo {}", list, modulus));
    }
  }

  const Evidence& evidence_;
  const ExaminedOutput& output_;
  std::vector<std::size_t> wrong_;
  std::vector<std::pair<double, std::string>> found_;
};

}  // namespace

std::vector<std::string> facts_of_errors(const Evidence& evidence) {
  std::vector<std::string> lines;
  for (const ExaminedOutput& output : evidence.outputs()) {
    if (!is_floating(output.spec.dtype)) continue;
    const auto found = WrongElements(evidence, output).facts();
    lines.insert(lines.end(), found.begin(), found.end());
  }
  return lines;
}

}  // namespace greta::tuner
