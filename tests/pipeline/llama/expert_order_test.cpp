// Protects: experts whose weights are in activation order are refused, and can be decoded.
#include <gtest/gtest.h>

#include "runtime/pipeline/llama/device_weights.hpp"
#include "runtime/pipeline/models/quantise.hpp"
#include "tests/pipeline/llama/expert_files.hpp"
#include "tests/pipeline/llama/open_runtime.hpp"
#include "tests/temporary_folder.hpp"

namespace greta::test::expert_order_test {
namespace {

// Rows of one expert would need another order than those of the next one. Not every file says so in
// its config.
TEST(ExpertOrder, ThoseInActivationOrderMustBeDecoded) {
  const TemporaryFolder folder;
  TinyPacked file;
  file.tiny = experts_test::tiny("mixtral");
  file.tiny.dim = 128;
  file.tiny.layers = 1;
  file.tiny.dtype = DType::f16;
  file.method = "gptq";
  file.only = ".experts.";
  file.desc_act = true;
  file.write(folder.path());
  expect_refused([&] { load_llama(folder.path()); }, "experts must not be in activation order");
  file.more = {{"desc_act", false}};
  file.write(folder.path());
  LlamaModel model = load_llama(folder.path());
  const auto runtime = open_runtime("vulkan:0");
  expect_refused([&] { upload_weights(*runtime, model, DType::f16); }, "int4 in activation order");
  quantise(model, Quantisation::decoded, DType::f16);
  upload_weights(*runtime, model, DType::f16);
}

}  // namespace
}  // namespace greta::test::expert_order_test
