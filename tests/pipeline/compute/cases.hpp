#pragma once

#include <filesystem>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "kernels/model/operation.hpp"
#include "runtime/pipeline/compute/operations.hpp"
#include "runtime/pipeline/compute/runtime.hpp"
#include "tests/layers.hpp"

namespace greta::test {

/// A call of a method of Operations, and its problem.
struct OperationCase {
  std::string name;           ///< test name
  std::string key;            ///< problem key
  std::vector<Shape> shapes;  ///< shapes of the operands, in the order of Operation::tensors
  Result<void> (*call)(Operations&, const std::vector<Tensor>& operands);
};

/// For GoogleTest's messages.
inline void PrintTo(const OperationCase& value, std::ostream* out) {
  *out << value.name;
}

/// Returns calls of every method, with every option that changes the problem.
const std::vector<OperationCase>& operation_cases();
/// Returns those of products, which operation_cases() contains.
std::vector<OperationCase> product_cases();

/// Returns lavapipe and one of hip-host's devices, on which compiling a kernel takes about a
/// second.
std::vector<std::string> compute_devices();
std::string device_name(std::string id);
/// Opens a runtime with a kernel cache for the test program.
std::unique_ptr<Runtime> open_runtime(const std::string& device, const LookupFiles& databases = {});

/// Returns a tensor with the contents of a host tensor.
Tensor upload(Runtime& runtime, const HostTensor& data, const Shape& shape);
Tensor upload(Runtime& runtime, const std::vector<std::int32_t>& values);
/// Returns a tensor's contents as the operand `spec`.
HostTensor download(Runtime& runtime, const Tensor& tensor, const TensorSpec& spec);
/// Returns the contents of an output before it is written: NaN.
HostTensor unwritten(const TensorSpec& spec);
/// Tensors of an operation's operands: inputs drawn from `seed`, outputs filled with NaN.
struct Loaded {
  std::vector<Tensor> operands;
  std::vector<HostTensor> inputs;  ///< data of the operands that are read
};
Loaded load(Runtime& runtime, const Problem& problem, const std::vector<Shape>& shapes,
            std::uint64_t seed);
/// Returns rows and columns as shapes.
std::vector<Shape> plain_shapes(const Problem& problem);
/// Expects correct outputs among `operands`.
void expect_right(Runtime& runtime, const Problem& problem, const Loaded& loaded,
                  std::uint64_t seed);

/// Stores a configuration as the winner of a problem on a device, three times as fast as the
/// default.
void store_winner(const std::filesystem::path& file, const DeviceInfo& device,
                  const Problem& problem, const Config& config);

}  // namespace greta::test
