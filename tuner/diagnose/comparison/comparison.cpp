#include "tuner/diagnose/comparison/comparison.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <numeric>
#include <utility>

#include "tuner/diagnose/changes/shared_file.hpp"
#include "tuner/diagnose/changes/trying_process.hpp"
#include "tuner/diagnose/comparison/case_sources.hpp"
#include "tuner/diagnose/comparison/reduction.hpp"

namespace greta::tuner {
namespace {

using Clock = std::chrono::steady_clock;

bool is_correct(ChangeOutcome outcome) {
  return outcome >= ChangeOutcome::correct_here;
}

std::vector<FileEdit> edits_to(const FailedCase& failed, const KnownGood& good) {
  std::vector<FileEdit> edits;
  for (const auto& [name, text] : good.files) {
    const auto own = failed.files.find(name);
    if (own == failed.files.end()) continue;  // a further file, which another one may include
    for (TextEdit& edit : line_edits(own->second, text)) edits.push_back({name, std::move(edit)});
  }
  return edits;
}

/// Returns the files with edits, and those that only the known-good version has.
SourceFiles version_with(const FailedCase& failed, const KnownGood& good,
                         const std::vector<FileEdit>& edits) {
  SourceFiles files = failed.files;
  files.insert(good.files.begin(), good.files.end());
  for (auto first = edits.begin(); first != edits.end();) {
    std::vector<TextEdit> of_file;
    const std::string& name = first->file;
    for (; first != edits.end() && first->file == name; ++first) of_file.push_back(first->edit);
    files[name] = with_edits(failed.files.at(name), of_file);
  }
  return files;
}

/// Returns the lines of a text that an edit changes; none if it only adds some.
std::pair<std::size_t, std::size_t> changed_lines(const std::string& text, const TextEdit& edit) {
  const auto begins_line = [&](std::size_t at) { return at == 0 || text[at - 1] == '\n'; };
  const std::size_t begin = edit.start == 0 ? 0 : text.rfind('\n', edit.start - 1) + 1;
  const bool whole = begins_line(edit.start) && begins_line(edit.end()) &&
                     (edit.by.empty() || edit.by.ends_with('\n'));
  if (whole) return {begin, edit.end()};
  return {begin, std::min(text.find('\n', edit.end()), text.size() - 1) + 1};
}

/// Returns what is told of edits: those of the same or neighbouring lines together.
std::vector<GuiltyLines> told(const SourceFiles& files, const std::vector<FileEdit>& edits) {
  std::vector<GuiltyLines> list;
  for (std::size_t i = 0; i < edits.size();) {
    const std::string& text = files.at(edits[i].file);
    auto [begin, end] = changed_lines(text, edits[i].edit);
    std::vector<TextEdit> here;
    const std::size_t first = i;
    for (; i < edits.size() && edits[i].file == edits[first].file; ++i) {
      const auto [next_begin, next_end] = changed_lines(text, edits[i].edit);
      if (next_begin > end) break;
      end = std::max(end, next_end);
      here.push_back(edits[i].edit);
      here.back().start -= begin;
    }
    const std::string own = text.substr(begin, end - begin);
    const auto before =
        std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(begin), '\n');
    list.push_back(
        {edits[first].file, static_cast<std::size_t>(before) + 1, own, with_edits(own, here)});
  }
  return list;
}

/// Tries versions in a process of its own. What it reports is kept, so that the next process goes
/// on after a version that ends or blocks it.
class Comparing {
 public:
  Comparing(const Catalog& catalog, const FailedCase& failed, const KnownGood& good)
      : catalog_(catalog),
        failed_(failed),
        good_(good),
        lines_(edits_to(failed, good)),
        runs_(shows_race(failed) ? runs_of_race : 1),
        why_(most_why),
        refusal_(most_why) {}

  SourceComparison run(Clock::time_point end) {
    TryingProcess process(0, 1);
    bool complete = false;
    ReducedEdits found;
    while (!complete && Clock::now() < end && why_.data()[0] == '\0') {
      if (!process.runs() && (!process.may_start() || !start(process))) break;
      pollfd wait{process.descriptor(), POLLIN, 0};
      if (poll(&wait, 1, look_ms) > 0) {
        const auto report = process.read_report();
        if (report && report->change != Report::none) outcomes_.push_back(report->outcome);
        std::tie(found, complete) = replayed();
        // The unchanged source may end its process, which is how it fails.
        if (!report && !complete && process.stop_and_skip())
          outcomes_.push_back(outcomes_.empty() ? ChangeOutcome::wrong : ChangeOutcome::hangs);
      } else if (process.silent(most_silence()) && process.stop_and_skip()) {
        outcomes_.push_back(ChangeOutcome::hangs);
      }
    }
    process.stop();
    std::tie(found, complete) = replayed();
    SourceComparison made{
        .with = good_.name, .differences = lines_.size(), .trials = outcomes_.size()};
    made.guilty = told(failed_.files, found.edits);
    made.with_others = found.with_others;
    made.smallest = complete;
    if (made.guilty.empty()) made.why = why_not(found, complete, process.may_start());
    return made;
  }

 private:
  static constexpr int runs_of_race = 20;
  static constexpr std::size_t most_why = 1000;
  static constexpr std::chrono::seconds most_time_of_run{20};

  /// Of one version, which is compiled, and run on the case's operands and on three others.
  std::chrono::seconds most_silence() const {
    constexpr std::chrono::seconds compilation{60};
    return compilation + (runs_ + 3) * most_time_of_run;
  }

  bool start(TryingProcess& process) {
    return process.start([this](std::size_t, std::size_t, int descriptor) { try_all(descriptor); });
  }

  /// What a process does.
  void try_all(int descriptor) {
    const auto tell = [&](const Report& report) {
      return write(descriptor, &report, sizeof report) == sizeof report;
    };
    try {
      ChangeTrials trials(catalog_, failed_, most_time_of_run);
      const CaseSources sources(failed_, device_for_changes(failed_.kernel).value());
      if (!tell({})) return;
      std::size_t count = 0;
      reduced_edits(failed_.files, lines_, [&](const std::vector<FileEdit>& edits) {
        if (count < outcomes_.size()) return outcomes_[count++];
        const ChangeOutcome outcome = outcome_of(trials, sources, edits);
        const bool told = tell({static_cast<std::uint32_t>(count++), outcome});
        if (!told || outcome == ChangeOutcome::hangs) _exit(0);
        return outcome;
      });
    } catch (const std::exception& error) {
      std::strncpy(why_.data(), error.what(), most_why - 1);
    }
  }

  ChangeOutcome outcome_of(ChangeTrials& trials, const CaseSources& sources,
                           const std::vector<FileEdit>& edits) const {
    if (edits.empty()) {
      constexpr int least_runs = 6;
      return trials.outcome_unchanged(std::max(runs_, least_runs));
    }
    try {
      return trials.outcome_of(sources.texts(version_with(failed_, good_, edits)), runs_);
    } catch (const Error& error) {  // as an edit that includes a file which there is not
      std::strncpy(refusal_.data(), error.what(), most_why - 1);
      return ChangeOutcome::refused;
    }
  }

  /// Returns what is known by the outcomes so far, and whether nothing more is to be tried.
  std::pair<ReducedEdits, bool> replayed() const {
    std::size_t count = 0;
    ReducedEdits found = reduced_edits(failed_.files, lines_, [&](const std::vector<FileEdit>&) {
      const std::size_t i = count++;
      return i < outcomes_.size() ? outcomes_[i] : ChangeOutcome::untried;
    });
    return {std::move(found), count <= outcomes_.size()};
  }

  std::string why_not(const ReducedEdits& found, bool complete, bool starts) const {
    if (found.whole == ChangeOutcome::refused)
      return std::string("it is not used: ") +
             (refusal_.data()[0] != '\0' ? refusal_.data() : "it does not compile");
    if (found.whole == ChangeOutcome::hangs && found.unchanged != ChangeOutcome::hangs)
      return "it is not used: it ends or blocks its process";
    if (complete && found.whole == ChangeOutcome::wrong)
      return "it is not used: its results are wrong as well";
    std::string why = "there was no time";
    if (why_.data()[0] != '\0') {
      why = std::string("it was not run: ") + why_.data();
    } else if (!starts) {
      why = "it was not run: the case's kernel can't be compiled and run again";
    } else if (is_correct(found.unchanged)) {
      why = unchanged_is_correct();
    } else if (found.unchanged == ChangeOutcome::hangs) {
      why = "it was not run: " + too_slow(most_time_of_run);
    }
    return why + untried_places();
  }

  /// Returns where differences are that were not tried.
  std::string untried_places() const {
    constexpr std::size_t most_named = 5;
    std::string text;
    const auto places = told(failed_.files, lines_);
    for (std::size_t i = 0; i < std::min(places.size(), most_named); ++i)
      text += fmt::format("{}{}:{}", i == 0 ? "; it differs at " : ", ", places[i].file,
                          places[i].line);
    if (places.size() > most_named)
      text += fmt::format(" and {} more places", places.size() - most_named);
    return text;
  }

  const Catalog& catalog_;
  const FailedCase& failed_;
  const KnownGood& good_;
  std::vector<FileEdit> lines_;
  int runs_;
  SharedMemory why_;                     ///< why nothing can be tried
  SharedMemory refusal_;                 ///< why the last version is refused
  std::vector<ChangeOutcome> outcomes_;  ///< of the versions, in order
};

/// Ends a reduction that needs an outcome which is not known.
struct NotKnown {};

}  // namespace

ReducedEdits reduced_edits(
    const SourceFiles& files, const std::vector<FileEdit>& lines,
    const std::function<ChangeOutcome(const std::vector<FileEdit>& edits)>& outcome_of) {
  ReducedEdits found;
  found.unchanged = outcome_of({});
  // With its fault, the kernel may also not finish.
  const bool fails =
      found.unchanged == ChangeOutcome::wrong || found.unchanged == ChangeOutcome::hangs;
  if (!fails) return found;
  found.whole = outcome_of(lines);
  if (!is_correct(found.whole)) return found;
  found.edits = lines;
  found.with_others = found.whole == ChangeOutcome::correct;
  const auto reduce = [&](const std::vector<FileEdit>& all) {
    std::map<std::vector<std::size_t>, bool> known;
    std::vector<std::size_t> numbers(all.size());
    std::iota(numbers.begin(), numbers.end(), std::size_t{0});
    reduced(std::move(numbers), [&](const std::vector<std::size_t>& some) {
      const auto [at, is_new] = known.try_emplace(some, false);
      if (!is_new) return at->second;
      std::vector<FileEdit> edits;
      for (const std::size_t i : some) edits.push_back(all[i]);
      const ChangeOutcome outcome = outcome_of(edits);
      if (outcome == ChangeOutcome::untried) throw NotKnown{};
      at->second = is_correct(outcome);
      if (at->second) {
        found.edits = std::move(edits);
        found.with_others = outcome == ChangeOutcome::correct;
      }
      return at->second;
    });
  };
  try {
    reduce(lines);
    const std::size_t count = found.edits.size();
    std::vector<FileEdit> words;
    for (const FileEdit& one : found.edits) {
      for (TextEdit& edit : word_edits(files.at(one.file), one.edit))
        words.push_back({one.file, std::move(edit)});
    }
    if (words.size() > count) reduce(words);
  } catch (const NotKnown&) {
  }
  return found;
}

SourceComparison compare_sources(const Catalog& catalog, const FailedCase& failed,
                                 const KnownGood& known_good, double seconds) {
  if (failed.sources.empty() || failed.kernel.launches.empty())
    return {.with = known_good.name,
            .why = "it was not run: the case has no source that can be run again"};
  const auto time = std::chrono::duration<double>(seconds);
  return Comparing(catalog, failed, known_good)
      .run(Clock::now() + std::chrono::duration_cast<Clock::duration>(time));
}

}  // namespace greta::tuner
