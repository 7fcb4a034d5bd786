#include "tuner/diagnose/failed_case.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>

#include "kernels/described/kernel_file.hpp"
#include "runtime/device/system/input_file.hpp"
#include "runtime/device/text/hash.hpp"
#include "runtime/device/version.hpp"
#include "tuner/compile/case_files.hpp"

namespace greta::tuner {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr int failure_schema = 1;
constexpr auto description_folder = "description";
constexpr auto templates_folder = "templates";
constexpr auto known_good_folder = "known-good";
constexpr auto marks_file = "probes.bin";
constexpr std::uint64_t most_failure_bytes = std::uint64_t{16} << 20;
constexpr std::uint64_t most_output_bytes = std::uint64_t{1} << 30;

void write_text(const fs::path& file, const std::string& text) {
  write_bytes(file, text.data(), text.size());
}

/// Writes files into a folder in place of those that it has.
void write_files(const SourceFiles& files, const fs::path& folder) {
  std::error_code error;
  fs::remove_all(folder, error);
  for (const auto& [name, text] : files) {
    const fs::path to = folder / name;
    fs::create_directories(to.parent_path(), error);
    write_text(to, text);
  }
}

/// Returns all files of a folder, but not what links name; none if it does not exist. Throws Error.
SourceFiles files_in(const fs::path& folder) {
  SourceFiles files;
  std::error_code error;
  std::uint64_t left = std::uint64_t{256} << 20;  // bytes
  fs::recursive_directory_iterator entry(folder, error);
  for (; entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    if (entry->is_symlink(error) || !entry->is_regular_file(error)) continue;
    const std::string text = read_file(entry->path(), left).value();
    left -= text.size();
    files[entry->path().lexically_relative(folder).generic_string()] = text;
  }
  if (error && error != std::errc::no_such_file_or_directory)
    throw Error(Failure{Status::io, fmt::format("{}: {}", folder.string(), error.message()), {}});
  return files;
}

void write_known_good(const KnownGood& known_good, const fs::path& folder, ordered_json& json) {
  write_files(known_good.files, folder / known_good_folder);
  if (!known_good.name.empty()) json["known_good"] = known_good.name;
}

/// Writes the outputs of runs. Equal outputs share a file.
class OutputFiles {
 public:
  explicit OutputFiles(fs::path folder) : folder_(std::move(folder)) {}

  /// Returns the names of the files of a run's outputs.
  ordered_json write(const std::vector<HostTensor>& run) {
    ordered_json outputs = ordered_json::object();
    for (const HostTensor& output : run) {
      auto& known = files_[output.spec.name];
      auto same = std::find_if(known.begin(), known.end(),
                               [&](const auto& one) { return one.second->data == output.data; });
      if (same == known.end()) {
        const auto name = fmt::format("{}.run-{}.bin", output.spec.name, known.size());
        write_bytes(folder_ / name, output.data.data(), output.data.size());
        known.emplace_back(name, &output);
        same = std::prev(known.end());
      }
      outputs[output.spec.name] = same->first;
    }
    return outputs;
  }

 private:
  fs::path folder_;
  std::map<std::string, std::vector<std::pair<std::string, const HostTensor*>>> files_;
};

ordered_json runs_json(const FailedCase& written, OutputFiles& files) {
  ordered_json list = ordered_json::array();
  for (const KeptRun& run : written.runs) {
    list.push_back({{"outputs_before", run.outputs_before},
                    {"workspace_before", run.workspace_before},
                    {"outputs", files.write(run.outputs)}});
  }
  return list;
}

ordered_json others_json(const OtherRuns& others, OutputFiles& files) {
  ordered_json json = ordered_json::object();
  if (!others.after_another.empty()) json["after_another"] = files.write(others.after_another);
  if (!others.with_finite_guards.empty())
    json["with_finite_guards"] = files.write(others.with_finite_guards);
  for (const auto& run : others.with_set_registers)
    json["with_set_registers"].push_back(files.write(run));
  return json;
}

/// Describes the probes, whose marks are a file.
ordered_json probes_json(const std::vector<Probe>& probes, const fs::path& folder) {
  const auto marks = marks_of(probes);
  if (marks.size() > most_mark_bytes)
    throw Error({Status::invalid_argument, "the marks of probes are too large for a case", {}});
  write_bytes(folder / marks_file, marks.data(), marks.size());
  ordered_json list = ordered_json::array();
  for (const Probe& probe : probes) {
    list.push_back(
        {{"operand", probe.operand}, {"rows", probe.rows}, {"bit", probe.bit}, {"set", probe.set}});
  }
  return {{"marks", marks_file}, {"probes", list}};
}

ordered_json divisions_json(const std::vector<Division>& divisions) {
  ordered_json list = ordered_json::array();
  for (const Division& one : divisions) {
    list.push_back({{"name", one.name}, {"extent", one.extent}, {"part", one.part}});
  }
  return list;
}

void write(const FailedCase& written, const fs::path& folder) {
  write_case(written.kernel, folder).value();
  for (std::size_t i = 0; i < written.sources.size(); ++i)
    write_text(folder / kept_source_file(i, written.kernel.language), written.sources[i]);
  OutputFiles files(folder);
  ordered_json json{{"schema", failure_schema},
                    {"greta", version()},
                    {"device", written.device},
                    {"message", written.message},
                    {"seed", written.seed},
                    {"adversarial", written.style == InputStyle::adversarial},
                    {"workgroup", written.workgroup},
                    {"divisions", divisions_json(written.divisions)},
                    {"runs", runs_json(written, files)},
                    {"other_runs", others_json(written.others, files)}};
  if (!written.probes.empty()) json["probed"] = probes_json(written.probes, folder);
  if (written.description.empty()) write_files(written.files, folder / templates_folder);
  write_known_good(written.known_good, folder, json);
  write_text(folder / failure_file,
             json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n");
}

ordered_json read_failure(const fs::path& folder) {
  const std::string text = read_file(folder / failure_file, most_failure_bytes).value();
  auto json = ordered_json::parse(text, nullptr, false);
  if (json.is_discarded()) {
    throw Error({Status::invalid_argument,
                 fmt::format("{}: is not JSON, or was cut", (folder / failure_file).string()),
                 {}});
  }
  const bool known = json.is_object() && json.value("schema", 0) == failure_schema;
  if (known) return json;
  throw Error({Status::invalid_argument,
               fmt::format("{}: is not of schema {}, which this GRETA reads",
                           (folder / failure_file).string(), failure_schema),
               {}});
}

HostTensor read_output(const fs::path& file, const TensorSpec& spec) {
  const std::string text = read_file(file, most_output_bytes).value();
  if (text.size() != spec.bytes()) {
    throw Error({Status::invalid_argument,
                 fmt::format("{}: has {} bytes, not {}", file.string(), text.size(), spec.bytes()),
                 {}});
  }
  const auto bytes = std::as_bytes(std::span(text));
  return {spec, {bytes.begin(), bytes.end()}};
}

/// Returns a file of the case that its index names: none of another folder.
fs::path named_file(const fs::path& folder, const std::string& name) {
  return folder / fs::path(name).filename();
}

/// Reads the outputs of a run, of which a case has the names of the files.
std::vector<HostTensor> read_outputs(const fs::path& folder, const ordered_json& names,
                                     const std::vector<TensorSpec>& specs) {
  std::vector<HostTensor> outputs;
  for (const TensorSpec& spec : specs) {
    if (spec.role == Role::input) continue;
    const auto name = names.at(spec.name).get<std::string>();
    outputs.push_back(read_output(named_file(folder, name), spec));
  }
  return outputs;
}

/// Reads what cases of older versions lack.
void read_others(FailedCase& read, const fs::path& folder, const ordered_json& json,
                 const std::vector<TensorSpec>& specs) {
  const ordered_json others = json.value("other_runs", ordered_json::object());
  if (const auto found = others.find("after_another"); found != others.end())
    read.others.after_another = read_outputs(folder, *found, specs);
  if (const auto found = others.find("with_finite_guards"); found != others.end())
    read.others.with_finite_guards = read_outputs(folder, *found, specs);
  for (const auto& one : others.value("with_set_registers", ordered_json::array()))
    read.others.with_set_registers.push_back(read_outputs(folder, one, specs));
  if (const auto runs = read.others.with_set_registers.size(); runs != 0 && runs != 4)
    throw Error({Status::invalid_argument, "not four runs have set registers", {}});
}

void read_probes(FailedCase& read, const fs::path& folder, const ordered_json& json,
                 const std::vector<TensorSpec>& specs) {
  const auto found = json.find("probed");
  if (found == json.end()) return;
  for (const auto& one : found->at("probes")) {
    Probe& made = read.probes.emplace_back();
    made.operand = one.at("operand").get<std::string>();
    made.rows = one.at("rows").get<bool>();
    made.bit = std::clamp(one.at("bit").get<int>(), 0, 62);
    made.set = one.at("set").get<bool>();
  }
  const auto name = found->at("marks").get<std::string>();
  const std::string marks = read_file(named_file(folder, name), most_mark_bytes).value();
  set_marks(read.probes, specs, std::as_bytes(std::span(marks)));
}

void read_sources(FailedCase& read, const fs::path& folder) {
  std::error_code error;
  while (true) {
    const auto file = folder / kept_source_file(read.sources.size(), read.kernel.language);
    if (!fs::exists(file, error)) return;
    read.sources.push_back(read_file(file, most_failure_bytes).value());
  }
}

FailedCase read_parts(const Catalog& catalog, const fs::path& folder) {
  const ordered_json json = read_failure(folder);
  FailedCase read;
  read.kernel = read_case(folder).value();
  read_sources(read, folder);
  const Problem problem = catalog.read(read.kernel.problem).value();
  const auto specs = catalog.at(problem.op).tensors(problem);
  read.device = json.at("device").get<std::string>();
  read.message = json.at("message").get<std::string>();
  read.seed = json.at("seed").get<std::uint64_t>();
  if (json.at("adversarial").get<bool>()) read.style = InputStyle::adversarial;
  read.workgroup = json.at("workgroup").get<std::uint32_t>();
  read.description = fs::path(json.value("description", "")).filename().string();
  read.files =
      files_in(folder / (read.description.empty() ? templates_folder : description_folder));
  read.known_good = {json.value("known_good", ""), files_in(folder / known_good_folder)};
  if (const auto found = json.find("sanitizers"); found != json.end())
    read.sanitizers = {true, found->value("race", ""), found->value("access", "")};
  for (const auto& one : json.at("divisions")) {
    Division& made = read.divisions.emplace_back();
    made.name = one.at("name").get<std::string>();
    made.extent = one.at("extent").get<std::int64_t>();
    made.part = std::max<std::int64_t>(1, one.at("part").get<std::int64_t>());
  }
  for (const auto& run : json.at("runs")) {
    KeptRun& made = read.runs.emplace_back();
    made.outputs_before = run.at("outputs_before").get<std::uint32_t>();
    made.workspace_before = run.at("workspace_before").get<std::uint32_t>();
    made.outputs = read_outputs(folder, run.at("outputs"), specs);
  }
  read_others(read, folder, json, specs);
  read_probes(read, folder, json, specs);
  return read;
}

}  // namespace

bool shows_race(const FailedCase& failed) {
  const auto differs = [&](const KeptRun& run) {
    const KeptRun& first = failed.runs.front();
    return run.begins_as(first) &&
           !std::equal(run.outputs.begin(), run.outputs.end(), first.outputs.begin(),
                       first.outputs.end(),
                       [](const auto& a, const auto& b) { return a.data == b.data; });
  };
  return !failed.sanitizers.race.empty() ||
         std::any_of(failed.runs.begin(), failed.runs.end(), differs);
}

std::string kept_source(const KernelSource& source) {
  std::string text = fmt::format("// {}, entry {}, workgroup {}x{}x{}, subgroup size {}, options",
                                 source.name, source.entry, source.block[0], source.block[1],
                                 source.block[2], source.required_subgroup_size);
  for (const auto& option : source.options) text += " " + option;
  return text + "\n" + source.text;
}

std::string kept_source_file(std::size_t kernel, Language language) {
  return fmt::format("kernel-{}.{}", kernel, language == Language::glsl ? "comp" : "hip");
}

std::string name_of_failed_case(const std::string& problem, const std::string& config) {
  const std::string op = problem.substr(0, problem.find(' '));
  return fmt::format("{}-{}", op, Hash().add(problem).add(config).hex().substr(0, 12));
}

Result<void> write_failed_case(const FailedCase& written, const fs::path& folder) {
  try {
    write(written, folder);
    return {};
  } catch (const Error& error) {
    return Failure{error.status(), error.what(), {}};
  }
}

void add_description(const fs::path& folder, const std::string& name, const SourceFiles& files,
                     const KnownGood& known_good) {
  write_files(files, folder / description_folder);
  ordered_json json = read_failure(folder);
  json["description"] = name;
  write_known_good(known_good, folder, json);
  write_text(folder / failure_file, json.dump(2) + "\n");
}

void add_findings(const fs::path& folder, const SanitizerFindings& findings) {
  if (!findings.ran) return;
  ordered_json json = read_failure(folder);
  json["sanitizers"] = {{"race", findings.race}, {"access", findings.access}};
  write_text(folder / failure_file,
             json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n");
}

Result<fs::path> description_of(const fs::path& folder) {
  try {
    const auto name = read_failure(folder).value("description", "");
    return name.empty() ? fs::path() : folder / description_folder / fs::path(name).filename();
  } catch (const Error& error) {
    return Failure{error.status(), error.what(), {}};
  }
}

Result<FailedCase> read_failed_case(const Catalog& catalog, const fs::path& folder) {
  try {
    return read_parts(catalog, folder);
  } catch (const Error& error) {
    return Failure{error.status(), error.what(), {}};
  } catch (const ordered_json::exception&) {
    return Failure{Status::invalid_argument,
                   fmt::format("{}: lacks a field, or has one of another kind",
                               (folder / failure_file).string()),
                   {}};
  }
}

}  // namespace greta::tuner
