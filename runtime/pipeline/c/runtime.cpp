// Versions, failures, runtimes and tensors of greta.h.
#include "kernels/model/problem.hpp"
#include "runtime/device/version.hpp"
#include "runtime/pipeline/c/handles.hpp"
#include "runtime/pipeline/c/problem_text.hpp"

namespace greta::runtime::c {
DType dtype_of(greta_dtype dtype) {
  static_assert(DType{GRETA_F32} == DType::f32 && DType{GRETA_F16} == DType::f16 &&
                DType{GRETA_BF16} == DType::bf16 && DType{GRETA_I32} == DType::i32 &&
                DType{GRETA_F64} == DType::f64 && DType{GRETA_I64} == DType::i64 &&
                DType{GRETA_U32} == DType::u32 && DType{GRETA_I8} == DType::i8 &&
                DType{GRETA_U8} == DType::u8 && GRETA_U8 + 1 == dtype_table.size());
  if (dtype < 0 || static_cast<std::size_t>(dtype) >= dtype_table.size()) {
    refuse(fmt::format("dtype is {}, which it can't be", dtype));
  }
  return dtype_table[static_cast<std::size_t>(dtype)].type;
}

Shape shape_of(const std::int64_t* shape, std::size_t rank) {
  if (rank > Shape::most_dims)
    refuse(fmt::format("rank is {}, at most {}", rank, Shape::most_dims));
  if (rank > 0) need(shape, "shape");
  return Shape(std::span(shape, rank));
}

void check_runtime(const std::shared_ptr<Runtime>& own, const std::shared_ptr<Runtime>& other,
                   const char* what) {
  if (own != other) refuse(fmt::format("{} belongs to another runtime", what));
}

greta_tensor* handle(const std::shared_ptr<Runtime>& runtime, Tensor tensor) {
  return new greta_tensor{runtime, std::move(tensor)};
}

}  // namespace greta::runtime::c

using namespace greta::runtime;     // NOLINT
using namespace greta::runtime::c;  // NOLINT

std::int32_t greta_abi_version() {
  return GRETA_ABI_VERSION;
}

const char* greta_version() {
  static const std::string text(version());
  return text.c_str();
}

const char* greta_last_error() {
  return last_error();
}

greta_runtime_options greta_runtime_defaults() {
  greta_runtime_options options{};
  options.size = sizeof options;
  options.device = "auto";
  return options;
}

greta_status greta_runtime_open(const greta_runtime_options* options, greta_runtime** runtime) {
  return guarded([&]() -> Result<void> {
    need(runtime, "runtime");
    const auto given = read_options(options, greta_runtime_defaults(), "options");
    RuntimeOptions wanted;
    wanted.device = &need(given.device, "options->device");
    if (given.database != nullptr) wanted.databases.own = given.database;
    if (given.shipped != nullptr) wanted.databases.application.emplace_back(given.shipped);
    if (given.application_count > 0) need(given.application, "options->application");
    for (std::size_t i = 0; i < given.application_count; ++i) {
      wanted.databases.application.emplace_back(
          &need(given.application[i], "a database of the application"));
    }
    if (given.no_shipped != 0) wanted.databases.shipped.clear();
    wanted.open.vendor = given.allow_vendor != 0;
    wanted.overlap = given.no_overlap == 0;
    if (given.cache_directory != nullptr) wanted.open.cache_directory = given.cache_directory;
    if (given.compile_helper != nullptr) wanted.open.compile_helper = given.compile_helper;
    auto opened = Runtime::open(wanted);
    if (!opened) return opened.failure();
    auto made = std::make_unique<greta_runtime>();
    made->runtime = *std::move(opened);
    made->id = made->runtime->device().info().id();
    made->name = made->runtime->device().info().name;
    *runtime = made.release();
    return {};
  });
}

void greta_runtime_close(greta_runtime* runtime) {
  delete runtime;
}

greta_status greta_runtime_device(const greta_runtime* runtime, const char** id,
                                  const char** name) {
  return guarded([&]() -> Result<void> {
    need(runtime, "runtime");
    if (id != nullptr) *id = runtime->id.c_str();
    if (name != nullptr) *name = runtime->name.c_str();
    return {};
  });
}

greta_status greta_runtime_precompile(greta_runtime* runtime, const char* const* problems,
                                      std::size_t count, std::uint32_t jobs) {
  return guarded([&]() -> Result<void> {
    need(runtime, "runtime");
    if (count > 0) need(problems, "problems");
    std::vector<Problem> wanted;
    for (std::size_t i = 0; i < count; ++i) {
      wanted.push_back(read_problem(runtime->runtime->catalog(), &need(problems[i], "a problem")));
    }
    for (const Precompiled& one : runtime->runtime->precompile(wanted, jobs)) {
      if (one.failure) return *one.failure;
    }
    return {};
  });
}

greta_status greta_tensor_allocate(greta_runtime* runtime, greta_dtype dtype,
                                   const std::int64_t* shape, std::size_t rank, greta_memory memory,
                                   greta_tensor** tensor) {
  return guarded([&]() -> Result<void> {
    need(runtime, "runtime");
    need(tensor, "tensor");
    const Memory kind = choose(memory, {Memory::device, Memory::staging}, "memory");
    auto made = runtime->runtime->allocate(dtype_of(dtype), shape_of(shape, rank), kind);
    if (!made) return made.failure();
    *tensor = handle(runtime->runtime, *std::move(made));
    return {};
  });
}

greta_status greta_tensor_slice(const greta_tensor* tensor, std::size_t dim, std::int64_t first,
                                std::int64_t count, greta_tensor** view) {
  return guarded([&]() -> Result<void> {
    need(tensor, "tensor");
    need(view, "view");
    *view = handle(tensor->runtime, tensor->tensor.slice(dim, first, count));
    return {};
  });
}

greta_status greta_tensor_reshape(const greta_tensor* tensor, const std::int64_t* shape,
                                  std::size_t rank, greta_tensor** view) {
  return guarded([&]() -> Result<void> {
    need(tensor, "tensor");
    need(view, "view");
    *view = handle(tensor->runtime, tensor->tensor.reshape(shape_of(shape, rank)));
    return {};
  });
}

greta_status greta_tensor_wrap(greta_runtime* runtime, greta_dtype dtype, const std::int64_t* shape,
                               const std::int64_t* strides, std::size_t rank, void* memory,
                               greta_release release, void* context, greta_tensor** tensor) {
  return guarded([&]() -> Result<void> {
    need(runtime, "runtime");
    need(tensor, "tensor");
    if (memory == nullptr) refuse("memory is null");
    const Shape extents = shape_of(shape, rank);
    std::span<const std::int64_t> steps;
    if (strides != nullptr) steps = {strides, rank};
    auto made = runtime->runtime->wrap(dtype_of(dtype), extents, steps,
                                       reinterpret_cast<std::uint64_t>(memory));
    if (!made) return made.failure();
    Storage& storage = *made->storage();
    std::unique_ptr<greta_tensor> wrapped(handle(runtime->runtime, *std::move(made)));
    if (release != nullptr) {
      const auto owner = std::make_shared<Released>();
      storage.owner = owner;
      owner->release = release;
      owner->context = context;
    }
    *tensor = wrapped.release();
    return {};
  });
}

greta_status greta_tensor_address(const greta_tensor* tensor, std::uint64_t* address) {
  return guarded([&]() -> Result<void> {
    need(address, "address");
    *address = need(tensor, "tensor").tensor.address();
    return {};
  });
}

void greta_tensor_release(greta_tensor* tensor) {
  delete tensor;
}

greta_status greta_tensor_describe(const greta_tensor* tensor, greta_dtype* dtype,
                                   std::int64_t* shape, std::size_t* rank, std::size_t* bytes) {
  return guarded([&]() -> Result<void> {
    const Tensor& described = need(tensor, "tensor").tensor;
    if (dtype != nullptr) *dtype = static_cast<greta_dtype>(described.dtype());
    const auto extents = described.shape().extents();
    if (shape != nullptr) std::copy(extents.begin(), extents.end(), shape);
    if (rank != nullptr) *rank = extents.size();
    if (bytes != nullptr) *bytes = described.bytes();
    return {};
  });
}

greta_status greta_tensor_host(const greta_tensor* tensor, void** host) {
  return guarded([&]() -> Result<void> {
    need(tensor, "tensor");
    need(host, "host");
    std::byte* const first = tensor->tensor.host();
    if (first == nullptr) refuse("the host can't reach the tensor's memory");
    *host = first;
    return {};
  });
}

greta_status greta_tensor_upload(const greta_tensor* tensor, const void* from, std::size_t bytes) {
  return guarded([&]() -> Result<void> {
    need(tensor, "tensor");
    if (from == nullptr) refuse("from is null");
    return tensor->runtime->upload(tensor->tensor, {static_cast<const std::byte*>(from), bytes});
  });
}

greta_status greta_tensor_download(const greta_tensor* tensor, void* to, std::size_t bytes) {
  return guarded([&]() -> Result<void> {
    need(tensor, "tensor");
    if (to == nullptr) refuse("to is null");
    return tensor->runtime->download(tensor->tensor, {static_cast<std::byte*>(to), bytes});
  });
}
