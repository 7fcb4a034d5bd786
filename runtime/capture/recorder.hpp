#pragma once

#include <cerrno>
#include <type_traits>

#include "runtime/capture/call_table.hpp"
#include "runtime/capture/event_timer.hpp"
#include "runtime/capture/symbol.hpp"
#include "runtime/capture/vendor_types.hpp"

/// What all captured functions do: describe the call, forward it, and count it if it succeeded.
namespace greta::capture {

/// Marks a function that takes the place of a vendor's.
#define GRETA_CAPTURED extern "C" __attribute__((visibility("default")))
/// The code that called the function.
#define GRETA_CALLER __builtin_return_address(0)
/// Makes `symbol`, the function's entry in the list of symbols.
#define GRETA_SYMBOL(NAME, FAMILY)               \
  static constinit Symbol symbol{#NAME, FAMILY}; \
  static Symbol* const in_list __attribute__((section("greta_symbols"), used)) = &symbol

extern const Family cublas, cublas_lt, rocblas, hipblas, hipblas_lt;

/// Depth of captured functions in this thread. Libraries call each other, as cuBLAS calls cuBLASLt,
/// and only the application's own call is recorded.
class Nesting {
 public:
  Nesting() { ++depth_; }
  ~Nesting() { --depth_; }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;
  bool is_outermost() const { return depth_ == 1; }

 private:
  static thread_local int depth_;
};

/// Reports a call that has nowhere to go, once for each function. Returns the error "not
/// initialized", which has the same number in all libraries.
int report_missing(const Symbol& symbol);

/// A product that is about to be called.
struct Product {
  bool counts = false;     ///< not if nothing is computed
  Entry* entry = nullptr;  ///< of the table; nullptr if that is full
  void* handle = nullptr;  ///< asked for the stream, if it is not nullptr
  void* stream = nullptr;  ///< else the stream
};

/// Counts a product that was called.
void count(const Product& product);

/// Calls the vendor's function with the same arguments. If the call is the application's,
/// `describe(library)` returns the Product before, which is counted, and timed now and then, if the
/// call succeeds. If `describe` returns nothing, it is called after a call that succeeded, and
/// counts by itself.
template <typename Describe, typename... Arguments>
int forward(Symbol& symbol, const void* caller, const Describe& describe, Arguments... arguments) {
  constexpr bool is_after = std::is_void_v<std::invoke_result_t<Describe, const Library&>>;
  const Route route = symbol.route(caller);
  if (route.function == nullptr) return report_missing(symbol);
  const Nesting nesting;
  const auto function = reinterpret_cast<int (*)(Arguments...)>(route.function);
  if (route.library == nullptr || !nesting.is_outermost()) return function(arguments...);
  int status = 0;
  if constexpr (is_after) {
    status = function(arguments...);
    const int before = errno;
    if (status == 0) describe(*route.library);
    errno = before;
  } else {
    const int at_begin = errno;
    const Product product = describe(*route.library);
    EventTimer timer(*route.library, product.entry, product.handle, product.stream);
    errno = at_begin;
    status = function(arguments...);
    const int before = errno;
    timer.end(status == 0);
    if (status == 0) count(product);
    errno = before;
  }
  return status;
}

/// Element types of a product.
struct Types {
  int a, b, c;
  std::int16_t compute;
};
inline constexpr Types f16_types{r_16f, r_16f, r_16f, compute_16f};
inline constexpr Types f32_types{r_32f, r_32f, r_32f, compute_32f};
inline constexpr Types f64_types{r_64f, r_64f, r_64f, compute_64f};
inline constexpr Types c32_types{c_32f, c_32f, c_32f, compute_32f};
inline constexpr Types c64_types{c_64f, c_64f, c_64f, compute_64f};

/// A call of the functions that have all in their arguments, with the members that are common.
Call gemm_call(const Symbol& symbol, const Types& types, int op_a, int op_b, std::int64_t m,
               std::int64_t n, std::int64_t k, std::int64_t lda, std::int64_t ldb,
               std::int64_t ldc);

/// Describes a call. `handle` is asked where the factors are, and whether TF32 is allowed.
Product describe_product(const Library& library, void* handle, Call call, const void* alpha,
                         const void* beta);
/// Describes a call on `stream` whose factors are in memory of this kind: 0 host, 1 device, else
/// vectors.
Product describe_product(Call call, const void* alpha, const void* beta, int mode, void* stream);

}  // namespace greta::capture
