#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/described/formula.hpp"
#include "kernels/described/placed_json.hpp"
#include "kernels/model/tensor.hpp"
#include "runtime/device/compile/embedded_file.hpp"
#include "runtime/device/dtype.hpp"

/// Somebody's kernel, described by a file: what becomes an operation of a catalog.
namespace greta::kernels {

/// The language of a kernel's sources. `cuda` is compiled by NVRTC on NVIDIA GPUs and by hip-host,
/// `hip` on AMD and NVIDIA GPUs and by hip-host, `glsl` for any Vulkan device.
enum class SourceLanguage { hip, cuda, glsl };
std::string_view to_string(SourceLanguage language);

struct DescribedDimension {
  std::string name, help;
  std::int64_t least = 1, most = 0;
  std::optional<std::int64_t> fallback;  ///< empty: the dimension is required
  std::vector<std::int64_t> examples;    ///< extents to verify beside those asked for
};

/// A tunable parameter. Values are integers, truth values or words, all of one kind. Sources see
/// them as macros of its name: integers, 0 and 1, and words as they are. For each word a further
/// macro is 1 or 0: MODE_IS_fast, where the parameter is MODE and one of its words is fast.
struct DescribedParameter {
  std::string name;
  std::vector<FormulaValue> values;
};

struct DescribedConstraint {
  Formula condition;  ///< over dimensions and parameters
  std::string reason;
};

/// What an operand contains before a launch.
struct OperandFill {
  enum class Kind {
    random,    ///< uniform in [from, to); integers include `to`
    constant,  ///< `from`
    ramp,      ///< 0, 1, 2 … modulo the size of `to`, if that is greater than 0
    file,      ///< raw elements, or a .npy file of the same type and number of elements
  };
  Kind kind = Kind::random;
  double from = -0.5, to = 0.5;
  std::string file;
};

struct DescribedOperand {
  std::string name;
  Role role = Role::input;
  DType dtype = DType::f32;
  /// Over dimensions; elements lie in row-major order. In T1 also over parameters, each of which
  /// stands for the list of its values.
  std::vector<Formula> shape;
  OperandFill fill;
  /// The variable in constant memory to which the operand is copied before a launch; empty: none.
  std::string constant;
};

struct DescribedScalar {
  enum class Type { i32, u32, i64, u64, f32, f64 };
  std::string name;
  Type type = Type::i32;
  Formula value;  ///< over dimensions and parameters
};

/// A kernel's launch. Formulas are over dimensions and parameters.
struct DescribedLaunch {
  std::string entry;                   ///< a function, or the instantiation of a template
  std::array<Formula, 3> grid;         ///< workgroups
  std::array<Formula, 3> workgroup;    ///< threads
  Formula shared_bytes;                ///< dynamic shared memory
  std::vector<std::string> arguments;  ///< names of operands and scalars, or "workspace"
};

/// How far an element may be from the reference's: at most absolute + relative |reference|, or so
/// many units in the last place of the element's type.
struct Tolerance {
  double absolute = 0, relative = 0, ulp = 0;
};

/// Which results are correct.
struct DescribedReference {
  enum class Kind {
    kernel,    ///< a naive kernel with the same operands and scalars, and no tunable parameters
    golden,    ///< files that contain the outputs
    function,  ///< a function that a program brings (GivenReference)
  };
  Kind kind = Kind::kernel;
  SourceLanguage language = SourceLanguage::hip;
  bool on_device = false;            ///< the kernel runs on the device that is tuned
  std::vector<std::string> sources;  ///< file names
  std::vector<DescribedLaunch> launches;
  std::vector<std::string> golden;  ///< a file for each output, in the order of the operands
  std::string function;             ///< its name
  Tolerance tolerance;
  /// What a candidate is checked on: small problems, and different inputs in all.
  std::size_t small = 3, inputs = 3;
};

/// A kernel as its file describes it. All formulas read known names only; whether their values make
/// sense is known once dimensions and parameters have values.
struct Description {
  std::string path;  ///< of the file, for messages; empty: none
  std::string name, summary;
  SourceLanguage language = SourceLanguage::hip;
  std::vector<std::string> sources;  ///< file names, relative to the description
  std::vector<std::string> include_folders, options;
  std::vector<DescribedDimension> dimensions;
  std::vector<DescribedParameter> parameters;
  std::vector<DescribedConstraint> constraints;
  std::vector<std::vector<FormulaValue>> defaults;  ///< values of all parameters, best first
  std::vector<DescribedOperand> operands;
  std::vector<DescribedScalar> scalars;
  std::vector<DescribedLaunch> launches;  ///< in order
  Formula workspace_bytes, flops, bytes;  ///< bytes: of operands unless told
  bool tells_bytes = false;
  bool unordered = false;  ///< Variant::unordered
  DescribedReference reference;
};

/// Reads GRETA's own form (docs/your-kernel.md). Opens no file. Fails with `invalid_argument` and
/// the line, the column and the path of the first error.
Result<Description> read_description(const PlacedJson& file);

/// Reads the form T1, as Kernel Tuner and KTT take it. The dimensions are ProblemSize, as
/// problem_size_x, _y and _z. T1 has no reference: GRETA reads a key `reference` as in its own
/// form, or the object `reference` where that is not null. Without one, the result's reference has
/// no launches and no files, and somebody has to give one. Fails as read_description() does.
Result<Description> read_t1(const PlacedJson& file, const PlacedJson* reference = nullptr);

/// Reads a document in either form: T1 has its tunable parameters in a ConfigurationSpace.
/// `reference` is the text of a second document for T1, with the reference alone; empty: none.
Result<Description> read_description(std::string_view text, std::string_view reference = {});

/// Returns the JSON schema of GRETA's own form, for editors. It is one file.
const std::vector<EmbeddedFile>& description_schemas();

}  // namespace greta::kernels
