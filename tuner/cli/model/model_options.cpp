#include "tuner/cli/model/model_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include "runtime/device/system/stall_watch.hpp"
#include "tuner/cli/model/packing_option.hpp"
#include "tuner/cli/model/quantize_option.hpp"
#include "tuner/cli/options/device_options.hpp"
#include "tuner/cli/options/option_values.hpp"
#include "tuner/cli/program/databases.hpp"
#include "tuner/cli/program/paths.hpp"
#include "tuner/cli/program/terminal.hpp"
#include "tuner/cli/program/tool.hpp"
#include "tuner/cli/program/validate.hpp"
#include "tuner/report/print.hpp"
#include "tuner/tuning/device_selection.hpp"

namespace greta::tuner::cli {
namespace {

bool stores(const DeviceInfo& device, DType type) {
  return bits_of(type) == 32 || device.f16_storage;
}

/// Returns the database of the user, or that of --db, whether it exists or not.
std::filesystem::path own_database(const RuntimeChoice& choice) {
  return choice.db.empty() ? default_database() : std::filesystem::path(choice.db);
}

}  // namespace

void add_runtime_options(CLI::App& command, RuntimeChoice& choice) {
  command.add_option("--device", choice.device, "auto, an id as vulkan:0, or a part of a name")
      ->capture_default_str();
  add_validate_option(command, choice.device);
  command.add_option("--db", choice.db,
                     fmt::format("Database whose winners run [{}]", default_database().string()));
  add_known_databases(command, choice.known);
  command.add_option(
      "--dtype", choice.dtype,
      converted_types_text() + ": of weights, activations and the cache [the model's]");
  add_packing_option(command, choice.packing);
  command.add_flag("--untuned", choice.untuned, "Run default configurations, not winners");
  command.add_flag("--allow-unsafe", choice.allow_unsafe,
                   "Also use devices and features that failed a health check (greta-bench doctor)");
  add_allow(command, choice.allow, {"vendor", "rounded_weights"});
  command
      .add_option(
          "--use", choice.use,
          "Rule that forces configurations: \"OPERATION CONDITIONS: VARIANT VALUES\", as "
          "\"gemm m<=64 dtype=f16: tiled BM=64\", or @FILE with a rule in each line; may be "
          "repeated, and the first one that matches decides")
      ->allow_extra_args(false)
      ->type_name("RULE");
  command.add_flag(
      "--no-overlap", choice.no_overlap,
      "Begin no launch of a pass before the one ahead of it has ended (docs/runtime.md)");
  add_whole_number<std::int64_t>(
      command, "--patience", choice.patience_s,
      "Timeout in seconds of one call to the device and of one pass of the model", 1, 86'400)
      ->capture_default_str();
}

void watch_device(const RuntimeChoice& choice) {
  const auto seconds = choice.patience_s;
  const auto patience = static_cast<double>(seconds);
  watch_for_stalls({.patience_s = patience, .margin_s = patience / 4, .end = [seconds] {
                      tell(
                          fmt::format("greta-run: the device does not answer: one of its calls "
                                      "did not return within --patience {} seconds",
                                      seconds));
                      _exit(exit_failed);
                    }});
}

namespace {

void add_rules(Runtime& runtime, const RuntimeChoice& choice) {
  for (const std::string& rule : choice.use) {
    const auto added = runtime.use(rule);
    if (!added) throw CommandError(exit_usage, "--use: " + added.failure().message);
  }
}

}  // namespace

void tell_unused_rules(const Runtime& runtime) {
  for (const RuleUse& rule : runtime.rules()) {
    if (rule.decided) continue;
    tell(fmt::format("--use \"{}\": {}", rule.text,
                     rule.matched ? "earlier rules decide about each problem that it matches"
                                  : "no problem of this run matches it"));
  }
}

LookupFiles lookup_files(const RuntimeChoice& choice) {
  if (choice.untuned) return LookupFiles::none();
  LookupFiles files = known_files(choice.known);
  if (!choice.db.empty()) {
    files.own = named_database("--db", choice.db);
  } else if (std::filesystem::exists(default_database())) {
    files.own = default_database();
  }
  return files;
}

std::vector<ProbedDevice> select_watched(const RuntimeChoice& choice) {
  const StallWatch probing(static_cast<double>(choice.patience_s));
  try {
    return select_safe_devices(choice.device, own_database(choice), choice.allow_unsafe);
  } catch (const CommandError&) {  // databases may carry all kernels that run
    OpenOptions open;
    open.without_compiler = true;
    const auto device = select_device(choice.device, open);
    if (!device) throw;
    return {*device};
  }
}

std::unique_ptr<Runtime> open_runtime(const RuntimeChoice& choice) {
  const auto selected = select_watched(choice);
  if (selected.size() != 1) {
    throw CommandError(exit_usage, fmt::format("--device {}: must be one", choice.device));
  }
  if (!choice.allow_unsafe) value_of(check_safe(selected.front().info, own_database(choice)));
  const StallWatch opening(static_cast<double>(choice.patience_s));
  RuntimeOptions options;
  options.device = selected.front().info.id();
  options.open.cache_directory = default_cache_directory();
  options.databases = lookup_files(choice);
  options.lookup.allow_unsafe = choice.allow_unsafe;
  options.open.vendor = allows(choice.allow, "vendor");
  options.rounded_weights = allows(choice.allow, "rounded_weights");
  options.overlap = !choice.no_overlap;
  options.patience = options.open.transfer_deadline = std::chrono::seconds(choice.patience_s);
  auto runtime = Runtime::open(options);
  if (!runtime) throw CommandError(exit_failed, runtime.failure().message);
  add_rules(**runtime, choice);
  return *std::move(runtime);
}

std::unique_ptr<Runtime> open_beside(Runtime& runtime, const LookupFiles& files,
                                     const RuntimeChoice& choice) {
  LookupOptions options;
  options.allow_unsafe = choice.allow_unsafe;
  auto beside = Runtime::beside(runtime, files, options);
  if (!beside) throw CommandError(exit_failed, beside.failure().message);
  add_rules(**beside, choice);
  return *std::move(beside);
}

DType run_dtype(const RuntimeChoice& choice, DType model, const DeviceInfo& device) {
  if (choice.dtype.empty()) {
    if (stores(device, model)) return model;
    print(stderr, "{} can't store {}: running in f32\n", device.id(), to_string(model));
    return DType::f32;
  }
  const auto type = dtype_from_string(choice.dtype);
  if (!type || !kernels_convert(*type)) {
    throw CommandError(exit_usage,
                       fmt::format("--dtype {}: must be {}", choice.dtype, converted_types_text()));
  }
  if (!stores(device, *type)) {
    throw CommandError(exit_usage,
                       fmt::format("--dtype {}: {} can't store it", choice.dtype, device.id()));
  }
  return *type;
}

void tell_idle_permission(const std::vector<std::string>& allowed, const LlamaConfig& config,
                          DType activations) {
  if (!allows(allowed, "rounded_weights")) return;
  const auto rounds = [](const LlamaLayerFormats& layer) {
    const auto all = {layer.wq, layer.wk, layer.wv, layer.wo, layer.gate, layer.up, layer.down};
    return std::any_of(all.begin(), all.end(), [](const MatrixFormat& one) {
      return one.quantised && one.quantised != WeightFormat::mxfp4;
    });
  };
  const auto& layers = config.formats.layers;
  if (bits_of(activations) != 16) {
    tell(fmt::format("--allow rounded_weights: has no effect with activations of {}",
                     to_string(activations)));
  } else if (std::none_of(layers.begin(), layers.end(), rounds)) {
    tell(
        "--allow rounded_weights: has no effect, as no projection has weights of a format that is "
        "rounded");
  }
}

void add_architecture_options(CLI::App& command, ArchitectureChoice& choice) {
  command.add_option(
      "--config", choice.config,
      fmt::format("{}, a config.json, or a GGUF file", fmt::join(llama_names(), ", ")));
  choice.load = {0, 0, 0};  // until the model is known
  const auto add = [&command](const char* option, std::int64_t& value, const char* help) {
    return add_whole_number<std::int64_t>(command, option, value, help, 1,
                                          std::numeric_limits<std::int64_t>::max());
  };
  add("--prompt-len", choice.load.prompt_tokens,
      "Number of prompt tokens [512, or half of the model's maximum]");
  add("--gen-len", choice.load.generated_tokens,
      "Number of tokens to generate [128, or what fits the model]");
  add("--batch", choice.load.batch,
      "Batch size: number of sequences, all of these lengths [1]; with --batch-mix: of those that "
      "are decoded at the same time [8]");
  auto* const mix = command.add_option(
      "--batch-mix", choice.mix,
      "File with the lengths of sequences that are served together (docs/llama.md), in place of "
      "--prompt-len and --gen-len");
  mix->type_name("FILE");
  add_page_options(command, choice.load.page, choice.load.pages);
  for (const char* option : {"--page-size", "--pages"}) command.get_option(option)->needs(mix);
  add("--layers", choice.layers, "Number of layers [all]");
  add_quantize_option(command, choice.quantize);
}

void add_page_options(CLI::App& command, std::int64_t& tokens, std::int64_t& pages) {
  command
      .add_option(
          "--page-size", tokens,
          "Tokens of a page of the KV caches of sequences of different lengths: 16, 32, 64, "
          "128 or 256")
      ->check(CLI::IsMember({16, 32, 64, 128, 256}))
      ->type_name("TOKENS")
      ->capture_default_str();
  add_whole_number<std::int64_t>(command, "--pages", pages,
                                 "Number of pages of all sequences; a sequence waits until there "
                                 "are enough [enough for --batch sequences of the longest length]",
                                 1, std::numeric_limits<std::int32_t>::max() / 256 - 1);
}

void check_pages(std::int64_t page, std::int64_t pages, std::int64_t tokens) {
  const std::int64_t needed = (tokens + page - 1) / page;
  if (pages == 0 || needed <= pages) return;
  throw CommandError(exit_usage,
                     fmt::format("--pages {}: a sequence of {} tokens needs {} pages of "
                                 "{} tokens",
                                 pages, tokens, needed, page));
}

namespace {

/// Reads a model's files. What is wrong with them is invalid usage, unlike errors of the system.
template <typename Read>
auto read_input(const Read& read) {
  try {
    return read();
  } catch (const Error& error) {
    throw CommandError(error.status() == Status::invalid_argument ? exit_usage : exit_failed,
                       error.what());
  }
}

/// The reference takes heads of any even size, but attention on devices does not.
void check_heads(const std::filesystem::path& path, const LlamaConfig& config) {
  constexpr std::int64_t unit = 8;  // of attention's dim
  if (config.head_dim % unit == 0) return;
  const bool folder = std::filesystem::is_directory(path);
  throw CommandError(exit_usage, fmt::format("{}: heads have {} elements; allowed: multiples of {}",
                                             (folder ? path / "config.json" : path).string(),
                                             config.head_dim, unit));
}

}  // namespace

LlamaModel open_model(const std::string& path) {
  LlamaModel model = read_input([&] { return load_llama(path); });
  check_heads(path, model.config);
  return model;
}

std::unique_ptr<Tokenizer> open_tokenizer(const std::string& file, const LlamaModel& model) {
  return read_input([&] {
    return load_tokenizer(
        file.empty() ? find_tokenizer(model.path, model.config) : std::filesystem::path(file),
        model.config);
  });
}

LlamaConfig read_architecture(const ArchitectureChoice& choice) {
  if (const auto named = named_llama(choice.config)) return *named;
  if (!std::filesystem::exists(choice.config)) {
    throw CommandError(exit_usage,
                       fmt::format("--config {}: must be {}, a config.json, or a GGUF file",
                                   choice.config, fmt::join(llama_names(), ", ")));
  }
  LlamaConfig config = read_input([&] { return llama_config_from_file(choice.config); });
  check_heads(choice.config, config);
  return config;
}

namespace {

/// Reads --batch-mix, and checks that each of its sequences fits the model.
void apply_mix(ArchitectureChoice& choice, std::int64_t most) {
  ModelLoad& load = choice.load;
  if (load.prompt_tokens != 0 || load.generated_tokens != 0) {
    throw CommandError(exit_usage,
                       fmt::format("--batch-mix {}: not with {}", choice.mix,
                                   load.prompt_tokens != 0 ? "--prompt-len" : "--gen-len"));
  }
  try {
    load.mix = read_batch_mix(choice.mix);
  } catch (const Error& error) {
    throw CommandError(exit_usage, std::string("--batch-mix ") + error.what());
  }
  if (load.mix->longest() > most) {
    throw CommandError(exit_usage,
                       fmt::format("--batch-mix {}: a sequence has {} tokens, the model has {} "
                                   "positions",
                                   choice.mix, load.mix->longest(), most));
  }
  check_pages(load.page, load.pages, load.mix->longest() - 1);  // the last token is not fed
  if (load.batch == 0) load.batch = std::min<std::int64_t>(8, load.mix->sequences());
}

}  // namespace

void apply_load(ArchitectureChoice& choice, LlamaConfig& config) {
  ModelLoad& load = choice.load;
  const std::int64_t most = config.max_positions;
  if (!choice.mix.empty()) apply_mix(choice, most);
  if (load.batch == 0) load.batch = 1;
  if (!load.mix && load.prompt_tokens == 0) {
    load.prompt_tokens = std::clamp<std::int64_t>(most - load.generated_tokens, 1,
                                                  std::min<std::int64_t>(512, (most + 1) / 2));
  }
  if (!load.mix && load.generated_tokens == 0) {
    load.generated_tokens = std::clamp<std::int64_t>(most - load.prompt_tokens, 1, 128);
  }
  if (choice.layers > config.layers) {
    throw CommandError(exit_usage, fmt::format("--layers {}: must be between 1 and {}",
                                               choice.layers, config.layers));
  }
  if (choice.layers > 0) config.layers = choice.layers;
  if (load.mix) return;
  if (load.prompt_tokens > most || load.generated_tokens > most - load.prompt_tokens) {
    throw CommandError(exit_usage,
                       fmt::format("--prompt-len {} and --gen-len {}: the model has {} positions",
                                   load.prompt_tokens, load.generated_tokens, most));
  }
}

}  // namespace greta::tuner::cli
