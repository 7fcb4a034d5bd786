#include "tuner/report/baseline_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "runtime/device/text/printable.hpp"
#include "tuner/measure/statistics.hpp"
#include "tuner/report/format.hpp"
#include "tuner/report/table.hpp"

namespace greta::tuner {
namespace {

std::string distinct_values(const std::vector<MeasuredResult>& results,
                            std::string Subject::*member) {
  std::set<std::string> values;
  for (const auto& result : results) values.insert(result.subject.*member);
  return fmt::format("{}", fmt::join(values, ", "));
}

std::string percent_text(double ratio) {
  return std::isfinite(ratio) && ratio > 0 ? fmt::format("{:+.1f} %", 100 * (ratio - 1)) : "?";
}

std::string interval_text(const ResultChange& row) {
  if (row.broke) return std::string(to_string(row.fresh.failure->status));
  if (row.change.low <= 0) return "too few samples";
  return fmt::format("{} to {}", percent_text(row.change.low), percent_text(row.change.high));
}

// The cells of a row, in the order of a table's compared_columns.
using ComparedCells = std::vector<std::string>;

const std::vector<Table::Column> compared_columns{{"finding"},
                                                  {"before", Table::Align::right},
                                                  {"now", Table::Align::right},
                                                  {"change", Table::Align::right},
                                                  {"interval"},
                                                  {"benchmark"}};

// How a report names a row.
using Name = std::string (*)(const Subject&);

/// Returns the median time of a side: the processor time if the change is one of it.
double compared_us(const ResultChange& row, const MeasuredResult& side) {
  if (!row.by_processor) return side.us.median;
  std::vector<double> all;
  for (const auto& block : side.samples.cpu_us) all.insert(all.end(), block.begin(), block.end());
  return median(all);
}

ComparedCells compared_cells(const ResultChange& row, Name name) {
  const bool other = row.base.subject.config != row.fresh.subject.config;
  return {std::string(finding_text(row)),
          format_time(compared_us(row, row.base)),
          format_time(compared_us(row, row.fresh)),
          row.broke ? "" : percent_text(row.change.estimate),
          interval_text(row),
          name(row.fresh.subject) + (row.by_processor ? " (processor time)" : "") +
              (other ? " (another configuration)" : "") +
              (row.acceptance ? fmt::format(" (accepted until {}: {})", row.acceptance->until,
                                            row.acceptance->reason)
                              : "")};
}

std::vector<ComparedCells> cells_of_one_side(const BaselineComparison& comparison, Name name) {
  std::vector<ComparedCells> rows;
  for (const auto& row : comparison.only_base) {
    rows.push_back({"only before", format_time(row.us.median), "", "", "", name(row.subject)});
  }
  for (const auto& row : comparison.only_fresh) {
    rows.push_back({"only now", "", format_time(row.us.median), "", "", name(row.subject)});
  }
  return rows;
}

// Returns one line for each thing beside the code that differs.
std::vector<std::string> differences(const BaselineReport& report) {
  using Side = BaselineReport::Side;
  std::vector<std::string> lines;
  if (report.base.device != report.fresh.device) {
    lines.push_back(
        fmt::format("different devices: {} and {}", report.base.device, report.fresh.device));
  }
  for (const auto& [what, member] : {std::pair{"driver", &Side::driver},
                                     {"compiler", &Side::compiler},
                                     {"GRETA", &Side::greta_version}}) {
    const auto &before = report.base.*member, &after = report.fresh.*member;
    if (before != after) lines.push_back(fmt::format("{} changed: {} → {}", what, before, after));
  }
  return lines;
}

std::string summary_text(const BaselineReport& report) {
  const auto counts = counts_of(report.comparison);
  std::string text = fmt::format(
      "{}: {} slower by more than {:.3g} %, {} failing, {} faster, {} the same, {} inconclusive",
      format_count(static_cast<std::int64_t>(report.comparison.changes.size()), "row"),
      counts.slower, 100 * report.margin, counts.fails, counts.faster, counts.same,
      counts.inconclusive);
  if (!report.acceptances.empty()) text += fmt::format(", {} accepted", counts.accepted);
  return text;
}

// Returns a line for each acceptance that is not in use, or does not suffice.
std::vector<std::string> acceptance_lines(const BaselineReport& report) {
  std::vector<std::string> lines;
  for (const AcceptanceUse& use : report.acceptances) {
    if (auto line = acceptance_text(use); !line.empty()) lines.push_back(std::move(line));
  }
  return lines;
}

constexpr auto few_samples =
    "some rows have too few blocks of samples for a conclusion; --repeat takes more";

bool has_few_samples(const BaselineComparison& comparison) {
  return std::any_of(comparison.changes.begin(), comparison.changes.end(),
                     [](const ResultChange& row) { return row.change.low <= 0; });
}

// Returns a text on one line, of which Markdown and HTML interpret nothing.
std::string markdown_escaped(std::string_view text) {
  std::string escaped;
  for (const char c : device::one_line(text)) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '\\':
      case '`':
      case '*':
      case '_':
      case '[':
      case ']':
      case '|':
      case '~':
        escaped += '\\';
        [[fallthrough]];
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string markdown_table(const std::vector<ComparedCells>& rows) {
  std::string titles = "|", lines = "|", text;
  for (const auto& column : compared_columns) {
    titles += fmt::format(" {} |", column.title);
    lines += column.align == Table::Align::right ? "---:|" : "---|";
  }
  for (const auto& row : rows) {
    text += "|";
    for (const auto& cell : row) text += fmt::format(" {} |", markdown_escaped(cell));
    text += "\n";
  }
  return titles + "\n" + lines + "\n" + text;
}

}  // namespace

BaselineReport::Side side_of(const std::string& file, const std::vector<MeasuredResult>& results) {
  return {.file = file,
          .device = distinct_values(results, &Subject::device),
          .driver = distinct_values(results, &Subject::driver),
          .compiler = distinct_values(results, &Subject::compiler),
          .greta_version = distinct_values(results, &Subject::greta_version),
          .greta_revision = distinct_values(results, &Subject::greta_revision)};
}

std::string_view finding_text(const ResultChange& row) {
  if (row.broke) return "fails";
  return row.acceptance ? "accepted" : to_string(row.finding);
}

FindingCounts counts_of(const BaselineComparison& comparison) {
  FindingCounts counts;
  for (const auto& row : comparison.changes) {
    if (row.broke) {
      ++counts.fails;
    } else if (row.acceptance) {
      ++counts.accepted;
    } else {
      ++(row.finding == Finding::slower   ? counts.slower
         : row.finding == Finding::faster ? counts.faster
         : row.finding == Finding::same   ? counts.same
                                          : counts.inconclusive);
    }
  }
  return counts;
}

std::string baseline_text(const BaselineReport& report) {
  std::string text;
  for (const auto& line : differences(report)) text += device::one_line(line) + "\n";
  Table table(compared_columns);
  for (const auto& row : report.comparison.changes) table.add(compared_cells(row, subject_text));
  for (const auto& row : cells_of_one_side(report.comparison, subject_text)) table.add(row);
  text += table.text() + "\n" + summary_text(report) + "\n";
  for (const auto& line : acceptance_lines(report)) text += line + "\n";
  if (has_few_samples(report.comparison)) text += fmt::format("{}\n", few_samples);
  return text;
}

std::string baseline_markdown(const BaselineReport& report) {
  std::vector<ComparedCells> significant, others;
  for (const auto& row : report.comparison.changes) {
    const bool changed =
        row.broke || row.finding == Finding::slower || row.finding == Finding::faster;
    (changed ? significant : others).push_back(compared_cells(row, benchmark_name));
  }
  for (auto& row : cells_of_one_side(report.comparison, benchmark_name))
    significant.push_back(std::move(row));
  std::string text = fmt::format("**{}** on {}\n\n", markdown_escaped(summary_text(report)),
                                 markdown_escaped(report.fresh.device));
  for (const auto& line : differences(report)) text += "- " + markdown_escaped(line) + "\n";
  for (const auto& line : acceptance_lines(report)) text += "- " + markdown_escaped(line) + "\n";
  if (has_few_samples(report.comparison)) text += fmt::format("- {}\n", few_samples);
  if (text.ends_with("\n\n")) text.pop_back();
  if (!significant.empty()) text += "\n" + markdown_table(significant);
  if (!others.empty()) {
    const auto count = format_count(static_cast<std::int64_t>(others.size()), "row");
    text += fmt::format(
        "\n<details><summary>{} without a significant change</summary>\n\n{}\n</details>\n", count,
        markdown_table(others));
  }
  return text;
}

}  // namespace greta::tuner
