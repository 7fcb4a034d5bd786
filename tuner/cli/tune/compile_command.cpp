#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "kernels/catalog.hpp"
#include "runtime/device/backend.hpp"
#include "tuner/cli/options/choice_options.hpp"
#include "tuner/cli/options/option_values.hpp"
#include "tuner/cli/options/problem_options.hpp"
#include "tuner/cli/program/known_operations.hpp"
#include "tuner/cli/tune/commands.hpp"
#include "tuner/compile/case_files.hpp"
#include "tuner/compile/compile_report.hpp"
#include "tuner/compile/target_compiler.hpp"
#include "tuner/report/print.hpp"
#include "tuner/tuning/device_selection.hpp"

namespace greta::tuner::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view radv_prefix = "radv:";

struct CompileOptions {
  ChoiceOptions choice;
  std::string architecture;
  std::string compiler;
  std::string random;
  std::string seed = "1";
  fs::path emit_case;
  fs::path code_object;
  fs::path listing;
  bool json = false;

  bool many() const { return !choice.sample.empty() || !choice.rank.empty() || !random.empty(); }
};

[[noreturn]] void refuse(const std::string& message) {
  throw CommandError(exit_usage, message);
}

/// Checks that the file can be opened for writing, and leaves nothing behind.
void check_writable(const char* option, const fs::path& file) {
  const bool there = fs::exists(file);
  if (!std::ofstream(file, std::ios::app)) {
    refuse(fmt::format("{} {}: can't be written", option, file.string()));
  }
  if (!there) fs::remove(file);
}

/// Checks for options that exclude each other. Output files for one kernel require a single
/// configuration.
void check_options(const CompileOptions& options) {
  if (options.architecture.empty()) refuse("--arch is missing");
  for (const auto& [option, file] :
       {std::pair{"--code-object", options.code_object}, {"--listing", options.listing}}) {
    if (file.empty()) continue;
    if (options.many()) {
      refuse(fmt::format("{}: takes one configuration, without --sample, --rank and --random",
                         option));
    }
    check_writable(option, file);
  }
}

/// Opens Mesa's AMD driver for a GPU that need not exist, which it reads from the environment.
std::unique_ptr<TargetCompiler> open_radv(const CompileOptions& options) {
  const std::string gpu = options.architecture.substr(radv_prefix.size());
  if (!options.compiler.empty())
    refuse("--compiler: only for HIP kernels; the driver compiles for radv");
  if (!options.emit_case.empty())
    refuse("--emit-case: only for HIP kernels; radv provides no code objects");
  if (!options.code_object.empty()) refuse("--code-object: radv provides none; use --listing");
  std::string reason;
  for (const std::string& name : null_hardware_names(gpu)) {
    setenv("RADV_FORCE_FAMILY", name.c_str(), 1);
    auto device = open_null_hardware(name, {});
    if (device) return create_device_target(*std::move(device));
    if (reason.empty()) reason = device.failure().message;
  }
  refuse("--arch radv:" + reason);
}

/// Compiles GLSL to SPIR-V, as a Vulkan device of this machine takes it.
std::unique_ptr<TargetCompiler> open_vulkan(const CompileOptions& options) {
  if (!options.compiler.empty())
    refuse("--compiler: only for HIP kernels; glslang compiles for Vulkan");
  if (!options.emit_case.empty()) refuse("--emit-case: only for HIP kernels");
  if (!options.listing.empty()) refuse("--listing: SPIR-V has no instructions of a GPU");
  const auto device =
      select_device(options.architecture == "spirv" ? "vulkan" : options.architecture);
  if (!device) refuse("--arch " + device.failure().message);
  return create_probed_target(device->info, {}).value();
}

/// NVRTC compiles for NVIDIA devices, and no tool here lists their instructions.
void check_nvidia(const CompileOptions& options) {
  if (!options.compiler.empty())
    refuse("--compiler: only for AMD kernels; NVRTC compiles for NVIDIA");
  if (!options.listing.empty()) refuse("--listing: not available for NVIDIA");
}

std::unique_ptr<TargetCompiler> open_target(const CompileOptions& options) {
  if (options.architecture.starts_with(radv_prefix)) return open_radv(options);
  if (options.architecture == "spirv" || options.architecture.starts_with("vulkan:"))
    return open_vulkan(options);
  if (options.architecture.starts_with("sm_")) check_nvidia(options);
  OpenOptions open;
  open.compiler = options.compiler;
  auto target = create_hip_target(options.architecture, open);
  if (target) return *std::move(target);
  const bool about_compiler =
      !options.compiler.empty() && target.failure().status != Status::invalid_argument;
  refuse(fmt::format(
      "{}: {}",
      about_compiler ? "--compiler " + options.compiler : "--arch " + options.architecture,
      target.failure().message));
}

/// Returns the candidates to compile. All input is checked here.
std::vector<Candidate> choices(const Operation& operation, const CompileOptions& options,
                               const DeviceInfo& target, std::uint64_t seed) {
  return options.random.empty() ? candidates_of_problem(operation, options.choice, target, seed)
                                : candidates_of_random_problems(operation, options.choice, target,
                                                                "--random", options.random, seed);
}

/// Returns DIR for a single configuration, else a numbered folder in it.
fs::path case_folder(const CompileOptions& options, std::size_t index) {
  return options.many() ? options.emit_case / fmt::format("{:04}", index + 1) : options.emit_case;
}

void check_cases(const Operation& operation, const CompileOptions& options,
                 const DeviceInfo& target, const std::vector<Candidate>& wanted) {
  if (options.emit_case.empty()) return;
  for (const Candidate& choice : wanted) {
    if (auto possible = check_case(operation, choice.problem); !possible) {
      refuse("--emit-case: " + possible.failure().message);
    }
    if (auto fits = check_fits(operation, choice.problem, target, ResultsFor::a_case); !fits) {
      refuse("--emit-case: " + fits.failure().message);
    }
  }
  std::error_code error;
  if (options.many() && fs::exists(options.emit_case) && !fs::is_empty(options.emit_case, error)) {
    refuse(
        fmt::format("--emit-case {}: many cases need an empty folder", options.emit_case.string()));
  }
  if (auto made = make_case_folder(options.emit_case); !made) {
    refuse("--emit-case " + made.failure().message);
  }
}

void emit_cases(const Operation& operation, const CompileOptions& options,
                const std::vector<CompileOutcome>& outcomes, std::uint64_t seed) {
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    if (!outcomes[i].compiled) continue;
    const auto made = make_case(operation, *outcomes[i].compiled, seed + i);
    if (!made) refuse("--emit-case: " + made.failure().message);
    const auto written = write_case(*made, case_folder(options, i));
    if (!written) refuse("--emit-case " + written.failure().message);
  }
}

void write_file(const char* option, const fs::path& file, const void* data, std::size_t bytes) {
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out.write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
  out.close();
  if (!out) refuse(fmt::format("{} {}: can't be written", option, file.string()));
}

/// Numbers the plan's second and later code objects: kernel.co, kernel.2.co.
fs::path numbered(const fs::path& file, std::size_t index) {
  if (index == 0) return file;
  fs::path name = file.stem();
  name += fmt::format(".{}", index + 1);
  name += file.extension();
  return file.parent_path() / name;
}

void write_files(const CompileOptions& options, const CompiledChoice& compiled) {
  std::string listings;
  for (std::size_t i = 0; i < compiled.kernels.size(); ++i) {
    const auto& code_object = compiled.kernels[i].code_object;
    const auto& listing = compiled.kernels[i].listing;
    if (!options.code_object.empty()) {
      write_file("--code-object", numbered(options.code_object, i), code_object.data(),
                 code_object.size());
    }
    if (!options.listing.empty() && !listing) refuse("--listing: no llvm-objdump lists the code");
    if (listing) listings += fmt::format("; {}\n{}", compiled.plan.sources[i].name, *listing);
  }
  if (!options.listing.empty()) {
    write_file("--listing", options.listing, listings.data(), listings.size());
  }
}

/// Prints the whole log of each failure, without duplicates.
void print_logs(const std::vector<CompileOutcome>& outcomes) {
  std::string last;
  for (const auto& outcome : outcomes) {
    if (outcome.compiled || outcome.compiled.failure().log == last) continue;
    last = outcome.compiled.failure().log;
    print(stderr, "{}: {}\n", outcome.choice.config.shown(), outcome.compiled.failure().message);
    print_text(stderr, last);
  }
}

int compile(const Operation& operation, const CompileOptions& options) {
  check_options(options);
  const std::uint64_t seed = read_seed(options.seed);
  const auto target = open_target(options);
  const DeviceInfo& device = target->target();
  const auto wanted = choices(operation, options, device, seed);
  if (wanted.empty()) {
    refuse(fmt::format("{} has no configuration for {}", operation.name, device.architecture));
  }
  check_cases(operation, options, device, wanted);
  auto outcomes = compile_plans(*target, operation, wanted);
  if (!options.choice.rank.empty()) rank_compiled(operation, device, outcomes);
  if (options.json) {
    print_json(compile_json(device, outcomes));
  } else {
    print_text(compile_text(device, outcomes));
  }
  print_logs(outcomes);
  if (!options.emit_case.empty()) emit_cases(operation, options, outcomes, seed);
  if (outcomes.size() == 1 && outcomes[0].compiled) write_files(options, *outcomes[0].compiled);
  const bool all = std::all_of(outcomes.begin(), outcomes.end(),
                               [](const auto& outcome) { return bool(outcome.compiled); });
  return all ? exit_done : exit_failed;
}

void add_compiled_operation(CLI::App& app, Action& action, const Operation& operation,
                            const std::string& name) {
  auto* command = app.add_subcommand(name, operation.summary);
  auto options = std::make_shared<CompileOptions>();
  add_choice_options(*command, operation, options->choice);
  add_kernels_option(*command);
  add_templates_option(*command);
  const std::string what = "What to compile";
  const auto add = [command](const char* option, auto& value, const char* help,
                             const std::string& group) {
    return command->add_option(option, value, help)->group(group);
  };
  add("--arch", options->architecture,
      "An architecture, e.g. gfx942 or sm_90; for GLSL, radv: and a GPU, e.g. radv:gfx1103_r1, or "
      "spirv for the first Vulkan device, or vulkan:1 for another (required)",
      what);
  add("--compiler", options->compiler, "A clang that compiles HIP; default: hiprtc, or on PATH",
      what);
  add("--rank", options->choice.rank,
      "Number of configurations with the lowest predicted times, the best first, by the registers "
      "that the compiler needs",
      what);
  add("--random", options->random, "Number of random problems, each with a random configuration",
      what);
  add("--seed", options->seed, "Seed of configurations, problems and the inputs of cases", what)
      ->capture_default_str();
  const std::string output = "Output";
  add("--emit-case", options->emit_case,
      "Write a case to run elsewhere (docs/compile.md) into this folder", output);
  add("--code-object", options->code_object, "Write the code object to this file", output);
  add("--listing", options->listing, "Write the instructions to this file", output);
  command->add_flag("--json", options->json, "Print one JSON object (docs/json.md)")->group(output);
  command->footer(fmt::format("Example: greta-tune compile {} --arch gfx942",
                              example_problem(operation, name)));
  command->callback([&action, &operation, options] {
    action = [&operation, options] { return compile(operation, *options); };
  });
}

}  // namespace

void add_compile_command(CLI::App& app, Action& action, const DescribedFile& description) {
  auto* command = app.add_subcommand(
      "compile", "Compile an operation's kernels for a GPU that need not be present");
  command->require_subcommand(1);
  if (!description.file.empty()) {
    refuse_names_of_options(description.file, [&] {
      add_compiled_operation(*command, action, add_described(description.file), description.word);
    });
    return;
  }
  for (const Operation& operation : Catalog::built_in())
    add_compiled_operation(*command, action, operation, operation.name);
}

}  // namespace greta::tuner::cli
