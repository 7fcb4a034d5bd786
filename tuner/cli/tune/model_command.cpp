#include "tuner/cli/options/tuning_options.hpp"
#include "tuner/cli/tune/commands.hpp"
#include "tuner/cli/tune/model_tuning.hpp"

namespace greta::tuner::cli {

void add_model_command(CLI::App& app, Action& action) {
  auto* command =
      app.add_subcommand("model", "Tune what a model runs, and keep what makes the model faster");
  auto options = std::make_shared<ModelTuningOptions>();
  command->add_option("model", options->path,
                      "A folder as Hugging Face keeps Llamas, or a checkpoint of llama2.c");
  add_architecture_options(*command, options->model);
  command->add_option("--dtype", options->dtype, converted_types_text() + " [the model's, or f16]");
  add_tuning_options(*command, options->tuning, "10m");
  command->callback(
      [&action, options] { action = [options] { return ModelTuning(*options).run(); }; });
}

}  // namespace greta::tuner::cli
