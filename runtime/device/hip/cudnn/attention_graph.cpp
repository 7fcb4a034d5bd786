#include "runtime/device/hip/cudnn/attention_graph.hpp"

namespace greta::device::hip::cudnn {

namespace {

std::int64_t extent(std::uint64_t value) {
  return static_cast<std::int64_t>(value);
}

}  // namespace

AttentionGraph::AttentionGraph(Descriptors& descriptors, const AttentionCall& call, Handle handle)
    : descriptors_(descriptors), call_(call) {
  const std::int64_t batch = extent(call.batch), heads = extent(call.heads);
  const std::int64_t kv_heads = extent(call.kv_heads), queries = extent(call.queries);
  const std::int64_t keys = extent(call.keys), dim = extent(call.dim), v_dim = extent(call.v_dim);
  const std::int64_t step = extent(call.query_step);
  const Data type = call.type == DType::bf16 ? Data::bf16 : Data::f16;
  const Descriptor q =
      operand(Operand::q, type, {batch, heads, queries, dim}, {queries * step, dim, step, 1});
  const Descriptor k = operand(Operand::k, type, {batch, kv_heads, dim, keys},
                               {kv_heads * keys * dim, keys * dim, 1, dim});
  const Descriptor v = operand(Operand::v, type, {batch, kv_heads, keys, v_dim},
                               {kv_heads * keys * v_dim, keys * v_dim, v_dim, 1});
  const Descriptor out = operand(Operand::out, type, {batch, heads, queries, v_dim},
                                 {queries * heads * v_dim, v_dim, heads * v_dim, 1});
  query_lengths_ = operand(Operand::query_lengths, Data::i32, {batch, 1, 1, 1}, {1, 1, 1, 1});
  lengths_ = operand(Operand::lengths, Data::i32, {batch, 1, 1, 1}, {1, 1, 1, 1});
  hidden_ = value(Operand::hidden, Data::f32);

  Descriptor all = multiply(q, k, scores(), {.m = query_lengths_, .n = lengths_});
  all = within_lengths(scaled(all));
  if (call.causal) all = causal(all);
  if (call.window > 0) all = within_window(all);
  multiply(softmax(all), v, out, {.m = query_lengths_, .k = lengths_});
  finish(handle);
}

Descriptor AttentionGraph::tensor(const Tensor& form) {
  constexpr std::int64_t alignment = 16;
  const Descriptor made = descriptors_.make(Kind::tensor);
  descriptors_.set(made, Attribute::tensor_unique_id, form.number);
  descriptors_.set(made, Attribute::tensor_data_type, form.type);
  descriptors_.set(made, Attribute::tensor_byte_alignment, alignment);
  descriptors_.set(made, Attribute::tensor_dimensions, form.extents);
  descriptors_.set(made, Attribute::tensor_strides, form.strides);
  if (form.is_virtual) descriptors_.set(made, Attribute::tensor_is_virtual, true);
  if (form.is_value) descriptors_.set(made, Attribute::tensor_is_by_value, true);
  descriptors_.finalize(made);
  return made;
}

Descriptor AttentionGraph::operand(Operand which, Data type, const Extents& extents,
                                   const Extents& strides) {
  operands_.push_back(which);
  return tensor({static_cast<std::int64_t>(which), type, extents, strides});
}

Descriptor AttentionGraph::value(Operand which, Data type) {
  operands_.push_back(which);
  return tensor({.number = static_cast<std::int64_t>(which),
                 .type = type,
                 .extents = {1, 1, 1, 1},
                 .strides = {1, 1, 1, 1},
                 .is_value = true});
}

Descriptor AttentionGraph::scores(Data type) {
  const std::int64_t heads = extent(call_.heads), queries = extent(call_.queries);
  const std::int64_t keys = extent(call_.keys);
  return tensor({.number = next_++,
                 .type = type,
                 .extents = {extent(call_.batch), heads, queries, keys},
                 .strides = {heads * queries * keys, queries * keys, keys, 1},
                 .is_virtual = true});
}

Descriptor AttentionGraph::rows() {
  const std::int64_t heads = extent(call_.heads), queries = extent(call_.queries);
  return tensor({.number = next_++,
                 .type = Data::f32,
                 .extents = {extent(call_.batch), heads, queries, 1},
                 .strides = {heads * queries, queries, 1, 1},
                 .is_virtual = true});
}

Descriptor AttentionGraph::pointwise(Pointwise mode, Data math, const Inputs& inputs,
                                     Descriptor y) {
  const Descriptor form = descriptors_.make(Kind::pointwise);
  descriptors_.set(form, Attribute::pointwise_mode, Type::pointwise_mode, static_cast<int>(mode));
  descriptors_.set(form, Attribute::pointwise_math_prec, math);
  if (inputs.axis >= 0) descriptors_.set(form, Attribute::pointwise_axis, inputs.axis);
  descriptors_.finalize(form);
  const Descriptor operation = descriptors_.make(Kind::operation_pointwise);
  descriptors_.set(operation, Attribute::operation_pointwise_descriptor, form);
  descriptors_.set(operation, Attribute::operation_pointwise_x, inputs.x);
  if (inputs.b != nullptr) {
    descriptors_.set(operation, Attribute::operation_pointwise_b, inputs.b);
  }
  if (inputs.t != nullptr) {
    descriptors_.set(operation, Attribute::operation_pointwise_t, inputs.t);
  }
  descriptors_.set(operation, Attribute::operation_pointwise_y, y);
  descriptors_.finalize(operation);
  operations_.push_back(operation);
  return y;
}

Descriptor AttentionGraph::reduce(Reduction mode, Descriptor x) {
  const Descriptor form = descriptors_.make(Kind::reduction);
  descriptors_.set(form, Attribute::reduction_operator, Type::reduction_operator,
                   static_cast<int>(mode));
  descriptors_.set(form, Attribute::reduction_comp_type, Data::f32);
  descriptors_.finalize(form);
  const Descriptor y = rows();
  const Descriptor operation = descriptors_.make(Kind::operation_reduction);
  descriptors_.set(operation, Attribute::operation_reduction_x, x);
  descriptors_.set(operation, Attribute::operation_reduction_y, y);
  descriptors_.set(operation, Attribute::operation_reduction_descriptor, form);
  descriptors_.finalize(operation);
  operations_.push_back(operation);
  return y;
}

Descriptor AttentionGraph::multiply(Descriptor a, Descriptor b, Descriptor c,
                                    const Lengths& lengths) {
  const Descriptor form = descriptors_.make(Kind::matmul);
  descriptors_.set(form, Attribute::matmul_comp_type, Data::f32);
  descriptors_.finalize(form);
  const Descriptor operation = descriptors_.make(Kind::operation_matmul);
  const auto set = [&](Attribute attribute, Descriptor of) {
    if (of != nullptr) descriptors_.set(operation, attribute, of);
  };
  set(Attribute::operation_matmul_a, a);
  set(Attribute::operation_matmul_b, b);
  set(Attribute::operation_matmul_c, c);
  set(Attribute::operation_matmul_descriptor, form);
  set(Attribute::operation_matmul_m, lengths.m);
  set(Attribute::operation_matmul_n, lengths.n);
  set(Attribute::operation_matmul_k, lengths.k);
  descriptors_.finalize(operation);
  operations_.push_back(operation);
  return c;
}

Descriptor AttentionGraph::index(Descriptor of, Data math, std::int64_t axis) {
  return pointwise(Pointwise::gen_index, math, {.x = of, .axis = axis}, scores(Data::i32));
}

/// Returns indices plus or less the lengths.
Descriptor AttentionGraph::moved(Pointwise mode, Descriptor indices, Descriptor lengths) {
  return pointwise(mode, Data::i32, {.x = indices, .b = lengths, .axis = 3}, scores(Data::i32));
}

/// Returns the scores for which the condition holds, and hidden ones elsewhere.
Descriptor AttentionGraph::only(Descriptor of, Descriptor condition) {
  return pointwise(Pointwise::binary_select, Data::f32, {.x = of, .b = hidden_, .t = condition},
                   scores());
}

Descriptor AttentionGraph::scaled(Descriptor all) {
  const auto result = [&](Pointwise mode, Descriptor x, Descriptor b) {
    return pointwise(mode, Data::f32, {.x = x, .b = b}, scores());
  };
  all = result(Pointwise::mul, all, value(Operand::scale, Data::f32));
  if (call_.softcap == 0) return all;
  const Descriptor softcap = value(Operand::softcap, Data::f32);
  all = result(Pointwise::tanh, result(Pointwise::div, all, softcap), nullptr);
  return result(Pointwise::mul, all, softcap);
}

Descriptor AttentionGraph::within_lengths(Descriptor all) {
  const Descriptor row = index(all, Data::i32, 2), key = index(all, Data::i32, 3);
  const auto both = [&](Pointwise mode, Descriptor x, Descriptor b) {
    return pointwise(mode, Data::boolean, {.x = x, .b = b}, scores(Data::boolean));
  };
  const Descriptor rows_within = both(Pointwise::less, row, query_lengths_);
  const Descriptor keys_within = both(Pointwise::less, key, lengths_);
  return only(all, both(Pointwise::logical_and, rows_within, keys_within));
}

// Query i sees key j if i + keys - queries >= j.
Descriptor AttentionGraph::causal(Descriptor all) {
  const Descriptor row = index(all, Data::f32, 2), key = index(all, Data::f32, 3);
  const Descriptor last =
      moved(Pointwise::sub, moved(Pointwise::add, row, lengths_), query_lengths_);
  return only(all, pointwise(Pointwise::greater_or_equal, Data::boolean, {.x = last, .b = key},
                             scores(Data::boolean)));
}

// … and if j + window - keys + queries > i.
Descriptor AttentionGraph::within_window(Descriptor all) {
  const Descriptor row = index(all, Data::f32, 2), key = index(all, Data::f32, 3);
  Descriptor end = moved(Pointwise::add, key, value(Operand::window, Data::i32));
  end = moved(Pointwise::add, moved(Pointwise::sub, end, lengths_), query_lengths_);
  return only(all, pointwise(Pointwise::greater, Data::boolean, {.x = end, .b = row},
                             scores(Data::boolean)));
}

Descriptor AttentionGraph::softmax(Descriptor all) {
  const std::int64_t heads = extent(call_.heads), queries = extent(call_.queries);
  const auto of_rows = [&](Pointwise mode, Descriptor x, Descriptor b) {
    return pointwise(mode, Data::f32, {.x = x, .b = b}, rows());
  };
  Descriptor sink = nullptr;
  if (call_.sinks) sink = operand(Operand::sinks, Data::f32, {1, heads, 1, 1}, {heads, 1, 1, 1});
  Descriptor most = reduce(Reduction::max, all);
  if (sink != nullptr) most = of_rows(Pointwise::max, most, sink);
  all = pointwise(Pointwise::sub, Data::f32, {.x = all, .b = most}, scores());
  all = pointwise(Pointwise::exp, Data::f32, {.x = all}, scores());
  Descriptor of_sink = nullptr;
  if (sink != nullptr) {
    of_sink = of_rows(Pointwise::exp, of_rows(Pointwise::sub, sink, most), nullptr);
  }
  Descriptor sum = reduce(Reduction::add, all);
  if (sink != nullptr) sum = of_rows(Pointwise::add, sum, of_sink);
  const Descriptor logarithm = of_rows(Pointwise::log, sum, nullptr);
  const Descriptor lse =
      call_.lse ? operand(Operand::lse, Data::f32, {extent(call_.batch), heads, queries, 1},
                          {queries * heads, 1, heads, 1})
                : rows();
  pointwise(Pointwise::add, Data::f32, {.x = most, .b = logarithm}, lse);
  const Data type = call_.type == DType::bf16 ? Data::bf16 : Data::f16;
  return pointwise(Pointwise::div, Data::f32, {.x = all, .b = sum}, scores(type));
}

void AttentionGraph::finish(Handle handle) {
  graph_ = descriptors_.make(Kind::operation_graph);
  descriptors_.set(graph_, Attribute::operationgraph_ops, operations_);
  descriptors_.set_handle(graph_, Attribute::operationgraph_handle, handle);
  descriptors_.finalize(graph_);
}

}  // namespace greta::device::hip::cudnn
