#include "tuner/replay/space_recorder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "db/json.hpp"
#include "runtime/device/system/input_file.hpp"
#include "runtime/device/system/output_file.hpp"
#include "runtime/device/version.hpp"
#include "tuner/replay/gzip.hpp"
#include "tuner/replay/space_recording.hpp"
#include "tuner/search/permutation.hpp"

namespace greta::tuner {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t most_bytes = std::uint64_t{1} << 30;

bool same_space(const RecordingHeader& a, const RecordingHeader& b) {
  const auto same = [](const Alternative& x, const Alternative& y) {
    return x.variant == y.variant &&
           std::equal(x.parameters.begin(), x.parameters.end(), y.parameters.begin(),
                      y.parameters.end(), [](const Parameter& p, const Parameter& q) {
                        return p.name == q.name && p.values == q.values;
                      });
  };
  return std::equal(a.alternatives.begin(), a.alternatives.end(), b.alternatives.begin(),
                    b.alternatives.end(), same);
}

/// Returns what kernels were built or run with then and are not now; empty if nothing is known.
std::string other_circumstance(const RecordingHeader& then, const RecordingHeader& now) {
  for (const char* const what : {"driver", "compiler"}) {
    const auto before = then.device.value(what, ""), here = now.device.value(what, "");
    if (then.device.contains(what) && before != here)
      return fmt::format("{}: {}, and here {}", what, before, here);
  }
  if (then.template_key && then.template_key != now.template_key) {
    return fmt::format("template of the kernels: {}, and here {}", *then.template_key,
                       *now.template_key);
  }
  return {};
}

/// The file that lines are appended to, and what it contains.
class Journal {
 public:
  explicit Journal(fs::path file) : file_(std::move(file)), part_(file_) {
    if (compressed()) part_.replace_extension(".part");
  }

  /// Reads what earlier runs recorded, or begins the file with the header.
  Result<void> open(const RecordingHeader& header) {
    std::string text;
    for (const fs::path& file : {file_, part_}) {  // the unfinished file has more
      if (!fs::exists(file)) continue;
      if (auto read = contents(file, text); !read) return read;
      if (auto same = check(file, text, header); !same) return same;
    }
    if (text.find('\n') == std::string::npos) text = header.line();
    text.resize(text.rfind('\n') + 1);  // a kill may have cut the last line
    lines_ = std::move(text);
    return replace(part_, lines_);
  }

  RecordedSpace recorded() const { return read_space_recording(lines_); }

  Result<void> append(const std::string& line) {
    if (!out_.is_open()) out_.open(part_, std::ios::binary | std::ios::app);
    if (!(out_ << line).flush()) return failed(part_, "can't be written");
    lines_ += line;
    return {};
  }

  /// Writes the compressed file and removes the other one.
  Result<void> finish() {
    out_.close();
    if (!compressed()) return {};
    if (auto written = replace(file_, compress(lines_)); !written) return written;
    std::error_code ignored;
    fs::remove(part_, ignored);
    return {};
  }

 private:
  bool compressed() const { return file_.extension() == ".gz"; }

  static Failure failed(const fs::path& file, const std::string& why) {
    return bad_field("record", file.string(), why);
  }

  static Result<void> contents(const fs::path& from, std::string& text) {
    auto read = read_file(from, most_bytes);
    if (!read) return bad_field("record", "", read.failure().message);
    text = *std::move(read);
    if (!is_gzip(text)) return {};
    auto plain = decompress(text, most_bytes);
    if (!plain) return failed(from, plain.failure().message);
    text = *std::move(plain);
    return {};
  }

  /// Refuses what this recording can't go on with. A kill may have cut the first line.
  static Result<void> check(const fs::path& file, const std::string& text,
                            const RecordingHeader& header) {
    if (text.find('\n') == std::string::npos && header.line().starts_with(text)) return {};
    if (!is_space_recording(text)) return failed(file, "is not a recording of GRETA");
    try {
      const RecordingHeader there = read_recording_header(text);
      const auto refuse = [&](const std::string& what) {
        return failed(file, "is a recording of another " + what);
      };
      if (there.problem != header.problem) return refuse("problem: " + there.problem);
      if (there.device.at("name") != header.device.at("name")) return refuse("device");
      if (there.seed != header.seed) return refuse(fmt::format("seed: {}", there.seed));
      if (there.cold != header.cold) return refuse("kind: cold and warm times differ");
      if (there.space_count != header.space_count || !same_space(there, header)) {
        return refuse("space");
      }
      if (const auto other = other_circumstance(there, header); !other.empty())
        return refuse(other);
      read_space_recording(text);
    } catch (const nlohmann::json::exception&) {
      return failed(file, "is damaged: a field is missing or of another type");
    } catch (const std::exception& error) {
      return failed(file, std::string("is damaged: ") + error.what());
    }
    return {};
  }

  static Result<void> replace(const fs::path& file, const std::string& bytes) {
    const auto written = replace_file(file, bytes);
    return written ? written : bad_field("record", "", written.failure().message);
  }

  fs::path file_;
  fs::path part_;  ///< equal to file_ unless that is compressed
  std::string lines_;
  std::ofstream out_;
};

RecordingHeader header_of(const EvaluatorPool& pool, const Problem& problem, const Space& space,
                          const RecordOptions& options) {
  RecordingHeader header;
  header.version = version();
  header.device = to_json(pool.device());
  header.problem = problem.key();
  header.template_key = pool.catalog().at(problem.op).key();
  header.cold = options.limits.cold;
  header.seed = options.seed;
  header.space_count = space.count();
  for (const Alternative& alternative : space.alternatives()) {
    header.alternatives.push_back({alternative.variant, alternative.parameters, {}});
  }
  return header;
}

}  // namespace

Result<RecordProgress> record_space(EvaluatorPool& pool, const Problem& problem, const Space& space,
                                    const RecordOptions& options,
                                    const std::function<void(const RecordProgress&)>& show,
                                    const std::atomic<bool>& stop) {
  Journal journal(options.file);
  if (auto opened = journal.open(header_of(pool, problem, space, options)); !opened) {
    return opened.failure();
  }
  RecordProgress progress;
  progress.wanted = std::min(options.points.value_or(space.count()), space.count());
  std::set<std::uint64_t> known;
  for (const RecordedRow& row : journal.recorded().rows) {
    if (const auto index = space.index(row.choice); index && known.insert(*index).second) {
      ++progress.recorded;
      progress.failed += row.failure ? 1 : 0;
    }
  }
  progress.wanted = std::max(progress.wanted, progress.recorded);
  TrialLimits limits = options.limits;
  limits.best_us = 0;
  const Permutation order(space.count(), options.seed);
  std::uint64_t place = 0;
  const auto queue = [&] {
    while (pool.free() > 0 && place < space.count() &&
           progress.recorded + pool.in_flight() < progress.wanted) {
      const std::uint64_t index = order[place++];
      if (!known.contains(index)) pool.evaluate(problem, space.at(index), limits);
    }
    return pool.in_flight() > 0;
  };
  try {
    while (!stop && queue()) {
      const Trial trial = pool.next().trial;
      if (trial.failure == Status::interrupted) continue;
      if (auto written = journal.append(recording_line(trial)); !written) return written.failure();
      ++progress.recorded;
      progress.failed += trial.ok() ? 0 : 1;
      show(progress);
    }
  } catch (const Error& error) {
    if (error.status() != Status::interrupted) throw;
  }
  if (!progress.complete()) return progress;
  if (auto finished = journal.finish(); !finished) return finished.failure();
  return progress;
}

}  // namespace greta::tuner
