#include "runtime/capture/matmul.hpp"

namespace greta::capture {
namespace {

/// Reads attributes of one descriptor. Those that it does not have keep their defaults.
class Reader {
 public:
  Reader(Library::Get get, const void* object) : get_(get), object_(object) {}

  template <typename T>
  T read(int attribute, T fallback) const {
    T value{};
    std::size_t written = 0;
    if (attribute < 0 || object_ == nullptr || get_ == nullptr ||
        get_(object_, attribute, &value, sizeof value, &written) != 0) {
      return fallback;
    }
    return value;
  }

 private:
  Library::Get get_;
  const void* object_;
};

struct Matrix {
  std::int64_t rows, columns, ld, stride;
  std::int32_t batch;
  std::int16_t type;
  std::uint8_t order;
};

Matrix read_matrix(const Reader& layout, const LayoutAttributes& at) {
  Matrix matrix{};
  matrix.type = type_of(static_cast<int>(layout.read<std::uint32_t>(at.type, 32767)));
  const auto order = layout.read<std::int32_t>(at.order, 0);
  matrix.order = static_cast<std::uint8_t>(order < 0 || order > 254 ? 255 : order);
  matrix.rows = static_cast<std::int64_t>(layout.read<std::uint64_t>(at.rows, 0));
  matrix.columns = static_cast<std::int64_t>(layout.read<std::uint64_t>(at.columns, 0));
  matrix.ld = layout.read<std::int64_t>(at.ld, 0);
  matrix.batch = layout.read<std::int32_t>(at.batch, 1);
  if (matrix.batch > 1) matrix.stride = layout.read<std::int64_t>(at.stride, 0);
  return matrix;
}

bool has_bias(std::int32_t epilogue) {
  return (epilogue & 4) != 0;
}
bool is_narrow(std::int16_t type) {
  return type >= 28;
}

void read_batch(const Reader& d, const LayoutAttributes& at, const Matrix& matrix, Call& call) {
  call.batch = matrix.batch;
  if (matrix.batch <= 1) return;
  switch (d.read<std::int32_t>(at.batch_mode, 0)) {
    case 0:
      call.batch_kind = Batch::strided;
      break;
    case 1:
      call.batch_kind = Batch::pointers;
      break;
    default:
      call.batch_kind = Batch::grouped;
  }
}

bool has_scale(const Reader& product, const MatmulAttributes& at) {
  for (const int attribute : {at.a_scale, at.b_scale, at.d_scale}) {
    if (product.read<const void*>(attribute, nullptr) != nullptr) return true;
  }
  return false;
}

}  // namespace

Product describe_matmul(const Symbol& symbol, const Library& library,
                        const LayoutAttributes& layout, const MatmulAttributes& attributes,
                        const Matmul& matmul) {
  const Reader product(library.matmul_get, matmul.descriptor);
  const Reader of_d(library.layout_get, matmul.d);
  const Matrix a = read_matrix(Reader(library.layout_get, matmul.a), layout);
  const Matrix b = read_matrix(Reader(library.layout_get, matmul.b), layout);
  const Matrix d = read_matrix(of_d, layout);
  const Matrix c =
      matmul.c == matmul.d ? d : read_matrix(Reader(library.layout_get, matmul.c), layout);
  Call call{};
  call.op_a = op_of(product.read<std::int32_t>(attributes.op_a, 0));
  call.op_b = op_of(product.read<std::int32_t>(attributes.op_b, 0));
  call.m = d.rows, call.n = d.columns;
  call.k = call.op_a == 'N' ? a.columns : a.rows;
  call.lda = a.ld, call.ldb = b.ld, call.ldc = c.ld, call.ldd = d.ld;
  call.stride_a = a.stride, call.stride_b = b.stride;
  call.stride_c = c.stride, call.stride_d = d.stride;
  call.a_type = a.type, call.b_type = b.type, call.c_type = c.type, call.d_type = d.type;
  call.order_a = a.order, call.order_b = b.order, call.order_c = c.order, call.order_d = d.order;
  read_batch(of_d, layout, d, call);
  call.compute = matmul.compute, call.scale = matmul.scale;
  if (attributes.compute >= 0) {
    call.compute = cublas_compute(product.read<std::int32_t>(attributes.compute, -1));
    call.scale = type_of(product.read<std::int32_t>(attributes.scale, -1));
  }
  call.epilogue = static_cast<std::int32_t>(product.read<std::uint32_t>(attributes.epilogue, 1));
  call.bias_type = no_type;
  if (has_bias(call.epilogue)) {
    const auto type = product.read<std::int32_t>(attributes.bias_type, -1);
    call.bias_type = type < 0 || type == 255 ? d.type : type_of(type);  // by default, as D
  }
  call.function = symbol.index();
  if (matmul.in_place) call.flags |= in_place;
  if ((is_narrow(a.type) || is_narrow(b.type)) && has_scale(product, attributes)) {
    call.flags |= scaled;
  }
  const int mode = product.read<std::int32_t>(attributes.pointer_mode, 0);
  return describe_product(call, matmul.alpha, matmul.beta, mode, matmul.stream);
}

}  // namespace greta::capture
