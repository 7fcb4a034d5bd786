#include "tuner/cli/run/commands.hpp"

namespace greta::tuner::cli {
namespace {

constexpr auto examples = R"(Examples:
  greta-run --model stories260K.bin --prompt "Once upon a time"
  greta-run --model Llama-3-8B/ --prompt "The sea" --tokens 200 --temperature 0.8 --top-p 0.9 --seed 1
  greta-run --model stories260K.bin --explain      # configuration of each operation, and its origin
  greta-run --model stories260K.bin --trace-layers # every stage against FP64
  greta-run --model stories260K.bin --use "gemm m=1: naive"  # force what runs
  greta-run --model stories260K.bin --matrix       # each operation in each variant: error and time
  greta-run bench --config llama-2-7b --prompt-len 512 --gen-len 128
  greta-run --model stories260K.bin --prompts prompts.txt    # several prompts in one batch
  greta-run bench --config llama-2-7b --batch-mix chat.mix   # serve a mix of lengths)";

void add_commands(CLI::App& app, Action& action) {
  add_generate_options(app, action);
  add_bench_command(app, action);
  add_worker_command(app, action);
}

}  // namespace
}  // namespace greta::tuner::cli

int main(int argc, char** argv) {
  return greta::tuner::cli::run_tool({"greta-run",
                                      "Runs a Llama with the kernels that a tuned database names.",
                                      greta::tuner::cli::examples,
                                      greta::tuner::cli::add_commands,
                                      false,
                                      {"--prompt"}},
                                     argc, argv);
}
