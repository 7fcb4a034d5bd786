#include "tuner/diagnose/diagnosis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>

#include "tuner/compile/case_files.hpp"
#include "tuner/diagnose/causes/causes.hpp"
#include "tuner/diagnose/changes/change_search.hpp"
#include "tuner/diagnose/changes/change_trials.hpp"
#include "tuner/diagnose/changes/unset_variables.hpp"
#include "tuner/diagnose/comparison/known_good.hpp"
#include "tuner/diagnose/error_map.hpp"
#include "tuner/diagnose/facts.hpp"
#include "tuner/diagnose/where.hpp"

namespace greta::tuner {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_causes = 5;
constexpr double sure_score = 0.5;

std::string percent(double share) {
  return fmt::format("{:.3g} %", 100 * share);
}

/// Returns the facts in favour of a cause.
std::string facts_of(const Cause& cause) {
  std::string text = fmt::format("explains {} of the wrong elements", percent(cause.explained));
  if (cause.residual < 1) text += fmt::format(", residual {:.2g} of the errors", cause.residual);
  if (cause.precision < 0.995)
    text += fmt::format(
        "; of the elements that it would change, {} are wrong: a part of the kernel "
        "does it",
        percent(cause.precision));
  return text;
}

/// Offers all hypotheses. Those that need no reference come first.
void offer_all(Judge& judge) {
  offer_responses(judge);
  offer_runs(judge);
  offer_places(judge);
  offer_rounding(judge);
  offer_row_factors(judge);
  offer_attributes(judge);
  offer_read_map(judge);
  offer_attention(judge);
  offer_operands(judge);
  offer_slices(judge);
  offer_precision(judge);
  offer_conversions(judge);
  offer_lane_factors(judge);
  offer_lane_sums(judge);
  offer_addresses(judge);
}

Diagnosis examined(const Evidence& evidence, double seconds) {
  Judge judge(evidence, seconds);
  offer_all(judge);
  Diagnosis made;
  made.causes = judge.ranked();
  if (made.causes.size() > most_causes) made.causes.resize(most_causes);
  made.places = places(evidence);
  made.facts = facts_of_errors(evidence);
  for (const ExaminedOutput& output : evidence.outputs()) {
    if (!output.fails()) continue;
    made.maps.emplace_back(output.spec.name, error_map(output));
  }
  made.tried = judge.tried();
  made.hurried = judge.hurried();
  return made;
}

/// Returns a text as one line, without longer gaps.
std::string in_a_line(const std::string& text) {
  std::string line;
  for (const char c : text) {
    const bool gap = c == ' ' || c == '\n' || c == '\t';
    if (!gap || (!line.empty() && line.back() != ' ')) line += gap ? ' ' : c;
  }
  if (line.ends_with(' ')) line.pop_back();
  return line;
}

std::optional<Result<ChangeSearch>> searched_change(const Catalog& catalog,
                                                    const FailedCase& failed, double seconds) {
  if (seconds <= 0) return std::nullopt;
  return search_change(catalog, failed, seconds);
}

/// Returns responses to impulses, which take a part of the time in which changes may be tried.
std::vector<Response> measured(const Catalog& catalog, const FailedCase& failed, double seconds) {
  constexpr double share = 0.2;
  const bool runs = seconds > 0 && !failed.sources.empty() && !failed.kernel.launches.empty();
  return runs ? measured_responses(catalog, failed, share * seconds) : std::vector<Response>();
}

/// Whether a cause states the value of each wrong element, and no other one.
bool predicts_all(const Cause& cause) {
  constexpr double almost_all = 0.99, little = 0.05;
  return cause.explained >= almost_all && cause.precision >= almost_all && cause.residual < little;
}

/// Adds a cause before the others, of which the last ones are left out if there are many.
void put_first(Cause cause, Diagnosis& made) {
  made.causes.insert(made.causes.begin(), std::move(cause));
  if (made.causes.size() > most_causes) made.causes.resize(most_causes);
}

/// Adds a change of the source that gives correct results, as the first cause. If a
/// hypothesis predicts the results, it says what the kernel does there.
void add_change(const Result<ChangeSearch>& search, Diagnosis& made) {
  if (!search) {
    made.search = "no change of the source was tried: " + search.failure().message;
    return;
  }
  made.search = fmt::format("{} of {} single changes of the source tried, {} of which compile",
                            search->tried, search->changes, search->compiled);
  if (!search->found) {
    made.search += "; none gives correct results";
    return;
  }
  const FoundChange& found = *search->found;
  const std::string what =
      found.before.empty() ? fmt::format("`{}` is missing", in_a_line(found.after))
      : found.after.empty() || found.after == ";"
          ? fmt::format("without `{}`", in_a_line(found.before))
          : fmt::format("`{}` in place of `{}`", in_a_line(found.after), in_a_line(found.before));
  std::string evidence = fmt::format("with `{}`, all results are correct{}", in_a_line(found.text),
                                     found.with_others ? ", also with other operands" : "");
  if (found.others > 0)
    evidence += fmt::format("; so they are with {} other change{}", found.others,
                            found.others > 1 ? "s" : "");
  Cause cause{.kind = found.kind,
              .words = fmt::format("line {} of {}: {}", found.line, found.kernel, what),
              .explained = 1,
              .residual = 0,
              .score = 2,
              .evidence = std::move(evidence)};
  if (!made.causes.empty() && predicts_all(made.causes.front())) {
    cause.kind = made.causes.front().kind;
    cause.words = fmt::format("{}; {}", made.causes.front().words, cause.words);
    made.causes.erase(made.causes.begin());
  }
  put_first(std::move(cause), made);
}

/// Returns the start of a text of several lines, in one line.
std::string start_of(const std::string& text) {
  constexpr std::size_t most = 200;
  const std::string line = in_a_line(text);
  return line.size() > most ? line.substr(0, most) + "…" : line;
}

std::string said(const GuiltyLines& one) {
  const std::string own = start_of(one.text), good = start_of(one.known_good);
  return fmt::format("{}:{}: {}", one.file, one.line,
                     own.empty() ? fmt::format("`{}` of the known-good version is missing", good)
                     : good.empty()
                         ? fmt::format("`{}`, which the known-good version lacks", own)
                         : fmt::format("`{}`, where the known-good version has `{}`", own, good));
}

/// Adds the lines that are wrong by a comparison with a known-good version, as the first cause.
/// Hypotheses stay as they are: they may take the effect of an edit for another fault.
void add_guilty(const SourceComparison& comparison, Diagnosis& made) {
  constexpr std::size_t most_said = 3;
  const auto& guilty = comparison.guilty;
  std::string words;
  for (std::size_t i = 0; i < std::min(guilty.size(), most_said); ++i)
    words += (i > 0 ? "; and " : "") + said(guilty[i]);
  if (guilty.size() > most_said)
    words += fmt::format("; and {} more places", guilty.size() - most_said);
  Cause cause{
      .kind = "edit",
      .words = std::move(words),
      .explained = 1,
      .residual = 0,
      .score = 2,
      .evidence = fmt::format("with the text of {}, all results are correct{}{}", comparison.with,
                              comparison.with_others ? ", also with other operands" : "",
                              comparison.smallest ? "" : "; there was no time for fewer edits")};
  put_first(std::move(cause), made);
}

/// Adds variables that the source reads and never sets, as the first causes: no kernel does that.
void add_unset_variables(const FailedCase& failed, Diagnosis& made) {
  for (std::size_t i = 0; i < failed.sources.size(); ++i) {
    const KernelSource source = read_kept_source(failed.sources[i], failed.kernel.language).value();
    for (const UnsetVariable& one : unset_variables(source.text, source.entry)) {
      Cause cause{.kind = "missing statement",
                  .words = fmt::format("line {} of {}: nothing sets `{}`, which {}",
                                       one.declared + 1,  // the comment on the launch is first
                                       kept_source_file(i, failed.kernel.language), one.name,
                                       one.read > 0 ? fmt::format("line {} reads", one.read + 1)
                                                    : "a function returns"),
                  .explained = 1,
                  .residual = 1,
                  .score = 1.5,
                  .evidence = "the variable is declared without a value"};
      put_first(std::move(cause), made);
    }
  }
}

/// Compares a case with a known-good version, if there is one. Throws Error if a given one is not
/// of the kernel.
std::optional<SourceComparison> compared(const Catalog& catalog, const FailedCase& failed,
                                         const DiagnosisOptions& options) {
  constexpr double most_seconds = 300;
  if (!options.compares) return std::nullopt;
  const KnownGood good = options.known_good.empty()
                             ? failed.known_good
                             : known_good_at(failed, options.known_good).value();
  if (good.name.empty()) return std::nullopt;
  return compare_sources(catalog, failed, good, most_seconds);
}

Diagnosis diagnose_into(const Catalog& catalog, const fs::path& folder,
                        const DiagnosisOptions& options) {
  FailedCase failed = read_failed_case(catalog, folder).value();
  // These start processes, which must not inherit drivers that references use.
  auto comparison = compared(catalog, failed, options);
  const bool is_compared = comparison && !comparison->guilty.empty();
  const double change_seconds = is_compared ? 0 : options.change_seconds;
  const auto begin = std::chrono::steady_clock::now();
  failed.responses = measured(catalog, failed, change_seconds);
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
  const auto search = searched_change(catalog, failed, change_seconds - spent.count());
  const Problem problem = catalog.read(failed.kernel.problem).value();
  const Evidence evidence(catalog.at(problem.op), problem, failed);
  Diagnosis made = examined(evidence, options.seconds);
  made.problem = failed.kernel.problem;
  made.config = failed.kernel.config;
  made.device = failed.device;
  made.message = failed.message;
  if (!is_compared && (!search || !*search || !(*search)->found)) add_unset_variables(failed, made);
  if (search) add_change(*search, made);
  if (is_compared) add_guilty(*comparison, made);
  made.comparison = std::move(comparison);
  for (const ExaminedOutput& output : evidence.outputs()) {
    if (!output.fails()) continue;
    const std::string name = output.spec.name + ".errors.png";
    write_error_image(evidence, output, folder / name);
    made.images.push_back(name);
  }
  const std::string text = diagnosis_text(made);
  write_bytes(folder / "diagnosis.txt", text.data(), text.size());
  return made;
}

std::string comparison_text(const SourceComparison& one) {
  return fmt::format("compared with {}: {} difference{}, {} version{} tried{}", one.with,
                     one.differences, one.differences == 1 ? "" : "s", one.trials,
                     one.trials == 1 ? "" : "s", one.why.empty() ? "" : "; " + one.why);
}

nlohmann::ordered_json comparison_json(const std::optional<SourceComparison>& one) {
  if (!one) return nullptr;
  auto guilty = nlohmann::ordered_json::array();
  for (const GuiltyLines& lines : one->guilty) {
    guilty.push_back({{"file", lines.file},
                      {"line", lines.line},
                      {"text", lines.text},
                      {"known_good", lines.known_good}});
  }
  return {{"with", one->with}, {"differences", one->differences}, {"trials", one->trials},
          {"guilty", guilty},  {"with_others", one->with_others}, {"smallest", one->smallest},
          {"why", one->why}};
}

}  // namespace

bool Diagnosis::is_precise() const {
  constexpr double precise_score = 0.9;
  return !causes.empty() && causes.front().score >= precise_score &&
         causes.front().kind != "race" && causes.front().kind != "uninitialised read";
}

bool Diagnosis::is_sure() const {
  return !causes.empty() && causes.front().score >= sure_score;
}

Result<Diagnosis> diagnose_folder(const Catalog& catalog, const fs::path& folder,
                                  const DiagnosisOptions& options) {
  try {
    return diagnose_into(catalog, folder, options);
  } catch (const Error& error) {
    return Failure{error.status(), error.what(), {}};
  }
}

std::string cause_line(const Diagnosis& diagnosis) {
  if (diagnosis.causes.empty()) return "no hypothesis explains the errors";
  const Cause& first = diagnosis.causes.front();
  return fmt::format("{}{}: {}", diagnosis.is_sure() ? "" : "possibly ", first.kind, first.words);
}

std::string diagnosis_text(const Diagnosis& diagnosis) {
  std::string text = fmt::format("{}\n  {}\n  {}\n  {}\n\n", diagnosis.problem, diagnosis.config,
                                 diagnosis.device, diagnosis.message);
  text += cause_line(diagnosis) + "\n";
  if (!diagnosis.causes.empty()) {
    const Cause& first = diagnosis.causes.front();
    text += "  " + facts_of(first) + "\n";
    if (!first.evidence.empty()) text += "  " + first.evidence + "\n";
  }
  if (diagnosis.causes.size() > 1) text += "\nalso possible\n";
  for (std::size_t i = 1; i < diagnosis.causes.size(); ++i) {
    const Cause& cause = diagnosis.causes[i];
    text += fmt::format("  {}: {} ({})\n", cause.kind, cause.words, facts_of(cause));
  }
  if (!diagnosis.facts.empty()) text += "\nmeasured\n";
  for (const std::string& line : diagnosis.facts) text += "  " + line + "\n";
  text += "\nwhere\n";
  for (const std::string& line : diagnosis.places) text += "  " + line + "\n";
  for (const auto& [name, map] : diagnosis.maps) {
    text += fmt::format(
        "\n{}: . correct, : some wrong, # wrong, N NaN, ~ differs between runs, _ "
        "not written\n{}",
        name, map);
  }
  for (const std::string& image : diagnosis.images) text += fmt::format("\nimage {}", image);
  text += fmt::format("\n{} hypotheses tried{}\n", diagnosis.tried,
                      diagnosis.hurried ? "; there was no time for all" : "");
  if (!diagnosis.search.empty()) text += diagnosis.search + "\n";
  if (diagnosis.comparison) text += comparison_text(*diagnosis.comparison) + "\n";
  return text;
}

nlohmann::ordered_json diagnosis_json(const Diagnosis& diagnosis) {
  auto causes = nlohmann::ordered_json::array();
  for (const Cause& cause : diagnosis.causes) {
    causes.push_back({{"kind", cause.kind},
                      {"words", cause.words},
                      {"evidence", cause.evidence},
                      {"explained", cause.explained},
                      {"precision", cause.precision},
                      {"residual", cause.residual},
                      {"score", cause.score}});
  }
  return {{"problem", diagnosis.problem},
          {"config", diagnosis.config},
          {"device", diagnosis.device},
          {"message", diagnosis.message},
          {"sure", diagnosis.is_sure()},
          {"causes", causes},
          {"places", diagnosis.places},
          {"facts", diagnosis.facts},
          {"images", diagnosis.images},
          {"hypotheses", diagnosis.tried},
          {"hurried", diagnosis.hurried},
          {"search", diagnosis.search},
          {"comparison", comparison_json(diagnosis.comparison)}};
}

}  // namespace greta::tuner
