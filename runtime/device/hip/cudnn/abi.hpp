#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/device/hip/functions.hpp"

/// The part of cuDNN's backend interface (9) that GRETA uses, so that no header of NVIDIA's is
/// needed to build. Descriptors are opaque; enumerators are cuDNN's, without their prefixes.
namespace greta::device::hip::cudnn {

using Handle = void*;
using Descriptor = void*;

/// cudnnBackendDescriptorType_t
enum class Kind : int {
  pointwise = 0,
  engine = 2,
  engine_config = 3,
  engine_heuristics = 4,
  execution_plan = 5,
  knob_choice = 7,
  operation_pointwise = 13,
  operation_graph = 15,
  variant_pack = 16,
  tensor = 17,
  matmul = 18,
  operation_matmul = 19,
  reduction = 21,
  operation_reduction = 22,
};

/// cudnnBackendAttributeName_t
enum class Attribute : int {
  pointwise_mode = 0,
  pointwise_math_prec = 1,
  pointwise_axis = 9,
  engineheur_mode = 200,
  engineheur_operation_graph = 201,
  engineheur_results = 202,
  enginecfg_engine = 300,
  enginecfg_knob_choices = 302,
  execution_plan_handle = 400,
  execution_plan_engine_config = 401,
  execution_plan_workspace_size = 402,
  knob_choice_type = 600,
  knob_choice_value = 601,
  operation_pointwise_descriptor = 750,
  operation_pointwise_x = 751,
  operation_pointwise_b = 752,
  operation_pointwise_y = 753,
  operation_pointwise_t = 758,
  operationgraph_handle = 800,
  operationgraph_ops = 801,
  tensor_byte_alignment = 900,
  tensor_data_type = 901,
  tensor_dimensions = 902,
  tensor_strides = 903,
  tensor_unique_id = 906,
  tensor_is_virtual = 907,
  tensor_is_by_value = 908,
  variant_pack_unique_ids = 1000,
  variant_pack_data_pointers = 1001,
  variant_pack_workspace = 1003,
  engine_global_index = 1301,
  matmul_comp_type = 1500,
  operation_matmul_a = 1520,
  operation_matmul_b = 1521,
  operation_matmul_c = 1522,
  operation_matmul_descriptor = 1523,
  operation_matmul_m = 1525,  ///< actual extents of the operands
  operation_matmul_n = 1526,
  operation_matmul_k = 1527,
  reduction_operator = 1600,
  reduction_comp_type = 1601,
  operation_reduction_x = 1610,
  operation_reduction_y = 1611,
  operation_reduction_descriptor = 1612,
};

/// cudnnBackendAttributeType_t
enum class Type : int {
  handle = 0,
  data_type = 1,
  boolean = 2,
  int64 = 3,
  void_ptr = 6,
  heur_mode = 8,
  knob_type = 9,
  pointwise_mode = 14,
  descriptor = 15,
  reduction_operator = 18,
};

/// cudnnDataType_t
enum class Data : int { f32 = 0, f16 = 2, i32 = 4, bf16 = 9, boolean = 11 };

/// cudnnPointwiseMode_t
enum class Pointwise : int {
  add = 0,
  mul = 1,
  max = 3,
  div = 6,
  sub = 9,
  exp = 13,
  log = 15,
  tanh = 101,
  greater = 302,
  greater_or_equal = 303,
  less = 304,
  logical_and = 400,
  gen_index = 501,
  binary_select = 601,
};

/// cudnnReduceTensorOp_t
enum class Reduction : int { add = 0, max = 3 };

/// cudnnBackendHeurMode_t: the ranking that predicts times.
inline constexpr int heur_mode_a = 3;

/// The functions, which return a cudnnStatus_t (0: success) where they return an int.
struct Functions {
  std::size_t (*version)() = nullptr;                              // cudnnGetVersion
  int (*create)(Handle* handle) = nullptr;                         // cudnnCreate
  int (*destroy)(Handle handle) = nullptr;                         // cudnnDestroy
  int (*set_stream)(Handle handle, hipStream_t stream) = nullptr;  // cudnnSetStream
  void (*last_error)(char* message, std::size_t size) = nullptr;   // cudnnGetLastErrorString
  // cudnnBackendCreateDescriptor, …DestroyDescriptor, …Finalize, …SetAttribute, …GetAttribute,
  // …Execute
  int (*make)(int kind, Descriptor* made) = nullptr;
  int (*release)(Descriptor descriptor) = nullptr;
  int (*finalize)(Descriptor descriptor) = nullptr;
  int (*set)(Descriptor descriptor, int attribute, int type, std::int64_t count,
             const void* values) = nullptr;
  int (*get)(Descriptor descriptor, int attribute, int type, std::int64_t wanted,
             std::int64_t* count, void* values) = nullptr;
  int (*execute)(Handle handle, Descriptor plan, Descriptor variant_pack) = nullptr;
};

}  // namespace greta::device::hip::cudnn
