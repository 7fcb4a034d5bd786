#pragma once

// Matrix instructions of sm_90's warpgroups (wgmma), with the layouts of the PTX manual
// ("Asynchronous Warpgroup Level Matrix Instructions"). A product runs when the thread waits for
// its group, and not before: it reads shared memory, and A's words in registers, then. So a missing
// or too weak wait is seen, and an operand that is overwritten too early. Every thread computes its
// own sums.

#include <cstdlib>

#include "runtime/device/hip/host/language/float_formats.hpp"
#include "runtime/device/hip/host/language/matrix_bytes.hpp"
#include "runtime/device/hip/host/language/matrix_ptx.hpp"
#include "runtime/device/hip/host/language/wave.hpp"

#if GRETA_HOST == 80

namespace greta_host {

/// A matrix descriptor of sm_90's wgmma, whose tile has panels of `width` chunks of 16 bytes;
/// `memory` stands for address 0 of shared memory, a multiple of 1024. Offsets and strides are
/// bytes.
struct MatrixDescriptor {
  const unsigned char* memory;
  unsigned start, leading, stride, width;

  /// Where a row of A or column of B has its element k. The canonical layouts of the PTX manual:
  /// K-major, or `turned` MN-major; eight lines are `stride` apart from the next eight, panels of
  /// turned tiles `leading`. Chunks are swizzled by their line's address.
  const uint16_t* element(unsigned span, unsigned k, bool turned) const {
    const unsigned line = turned ? k : span, along = turned ? span : k;
    const unsigned chunk = along / 8;
    unsigned at = start + chunk / width * leading + chunk % width * 16 + along % 8 * 2 +
                  line / 8 * stride + line % 8 * (width * 16);
    at ^= (at >> 7 & (width - 1)) << 4;
    return reinterpret_cast<const uint16_t*>(memory + at);
  }
  /// The same for elements of 32 bits, which are along k.
  const uint32_t* word(unsigned span, unsigned k) const {
    return reinterpret_cast<const uint32_t*>(element(span, 2 * k, false));
  }
};

/// A product that a thread has started: d = a b, or with `add` d += a b.
struct Product {
  MatrixDescriptor a, b;
  const uint32_t (*words)[4];  ///< of A, if that is in registers
  bool a_turned, b_turned, add;
  Site site;
  void* d;
  void (*run)(const Product& product);
  bool committed;
  unsigned group;  ///< if committed; a thread counts its own
  Product* next;
};

/// A thread's products that have not run, the first one ahead.
struct Products {
  Product* first;
  unsigned groups;  ///< committed
};

constexpr unsigned most_threads = 1024;
// Not in zero-initialised memory, which is shared memory.
__attribute__((section(".data"))) inline Products products_of[most_threads] = {};

inline Products& own_products() {
  return products_of[threadIdx.x];
}

/// Forgets products, also those of a block that ended with a failure.
inline void forget_products() {
  Products& own = own_products();
  while (own.first != nullptr) {
    Product* const done = own.first;
    own.first = done->next;
    std::free(done);
  }
  own.groups = 0;
}

inline void start_product(const Product& product) {
  auto* const added = static_cast<Product*>(std::malloc(sizeof(Product)));
  if (added == nullptr) fail(product.site, "there is no memory for the product");
  *added = product;
  added->committed = false;
  added->next = nullptr;
  Product** end = &own_products().first;
  while (*end != nullptr) end = &(*end)->next;
  *end = added;
}

/// wgmma.commit_group: the products since the last commit are a group.
inline void wgmma_commit() {
  Products& own = own_products();
  for (Product* product = own.first; product != nullptr; product = product->next) {
    if (product->committed) continue;
    product->committed = true;
    product->group = own.groups;
  }
  ++own.groups;
}

/// Whether other waves run before the products of the current wait: in about half of the waits,
/// drawn by their number and the block's. Then what the thread has given free too early is
/// overwritten; otherwise what others have not written yet is missing.
inline bool others_run_first(unsigned groups) {
  unsigned hash = (groups + blockIdx.x + blockIdx.y + blockIdx.z) * 0x9e3779b1U;
  hash = (hash ^ hash >> 15) * 0xc2b2ae35U;
  return hash >> 31 != 0;
}

/// wgmma.wait_group: all groups are done but the `pending` latest.
inline void wgmma_wait(unsigned pending, Site site = here("wgmma.wait_group")) {
  Products& own = own_products();
  if (own.groups > pending) {
    exchange('\0', site);
    if (others_run_first(own.groups)) current->calls->let_others_run(*current);
  }
  while (own.first != nullptr && own.first->committed && own.first->group + pending < own.groups) {
    Product* const product = own.first;
    own.first = product->next;
    product->run(*product);
    std::free(product);
  }
}

/// The part of a warpgroup's sums that sum i of a lane is.
struct SumPlace {
  unsigned row, column;

  explicit SumPlace(unsigned i)
      : row(threadIdx.x / 32 % 4 * 16 + current->lane / 4 + i / 2 % 2 * 8),
        column(i / 4 * 8 + current->lane % 4 * 2 + i % 2) {}
};

template <typename Sum, int sums>
Sum* sums_of(const Product& product) {
  auto* const d = static_cast<Sum*>(product.d);
  for (int i = 0; !product.add && i < sums; ++i) d[i] = 0;
  return d;
}

inline void check_operand(const Product& product, const void* element) {
  if (!is_shared(element)) fail(product.site, "an operand is not in shared memory");
}

template <typename Format, int sums>
void run_wgmma_m64k16(const Product& product) {
  float* const d = sums_of<float, sums>(product);
  const auto value = [&](const uint16_t* element) {
    check_operand(product, element);
    return Format::value(*element);
  };
  for (unsigned i = 0; i < unsigned(sums); ++i) {
    const SumPlace at(i);
    for (unsigned k = 0; k < 16; ++k) {
      d[i] += value(product.a.element(at.row, k, product.a_turned)) *
              value(product.b.element(at.column, k, product.b_turned));
    }
  }
}

/// wgmma.mma_async.sync.aligned.m64nNk16.f32.{f16,bf16}.{f16,bf16}, N twice the number of sums:
/// d = a b, or with `add` d += a b, both operands in shared memory.
template <int sums>
void wgmma_m64k16_f16(float (&d)[sums], const MatrixDescriptor& a, const MatrixDescriptor& b,
                      bool a_turned, bool b_turned, bool add, Site site = here("wgmma.m64k16")) {
  start_product(
      {a, b, {}, a_turned, b_turned, add, site, d, &run_wgmma_m64k16<F16, sums>, {}, {}, {}});
}
template <int sums>
void wgmma_m64k16_bf16(float (&d)[sums], const MatrixDescriptor& a, const MatrixDescriptor& b,
                       bool a_turned, bool b_turned, bool add, Site site = here("wgmma.m64k16")) {
  start_product(
      {a, b, {}, a_turned, b_turned, add, site, d, &run_wgmma_m64k16<Bf16, sums>, {}, {}, {}});
}

template <typename T, typename Sum, int sums>
void run_wgmma_m64k32(const Product& product) {
  Sum* const d = sums_of<Sum, sums>(product);
  const auto number = [&](const MatrixDescriptor& of, unsigned span, unsigned k) {
    const auto* const pair = reinterpret_cast<const uint8_t*>(of.element(span, k / 2, false));
    check_operand(product, pair);
    return number_of_byte<T::number>(pair[k % 2]);
  };
  for (unsigned i = 0; i < unsigned(sums); ++i) {
    const SumPlace at(i);
    for (unsigned k = 0; k < 32; ++k) {
      d[i] += number(product.a, at.row, k) * number(product.b, at.column, k);
    }
  }
}

/// wgmma.mma_async.sync.aligned.m64nNk32 .f32.e4m3.e4m3, .f32.e5m2.e5m2 and .s32.s8.s8, both
/// operands in shared memory.
template <typename T, typename Sum, int sums>
void wgmma_m64k32(Sum (&d)[sums], const MatrixDescriptor& a, const MatrixDescriptor& b, bool add,
                  Site site = here("wgmma.m64k32")) {
  start_product(
      {a, b, {}, false, false, add, site, d, &run_wgmma_m64k32<T, Sum, sums>, {}, {}, {}});
}

/// A lane's part of 16 rows of A.
struct WgmmaRows {
  float a[8];
};

template <typename Format, int sums>
void run_wgmma_rows_m64k16(const Product& product) {
  float* const d = sums_of<float, sums>(product);
  WgmmaRows mine;
  unpack<Format>(*product.words, mine.a);
  const auto all = exchange_all(mine, product.site);
  const unsigned group = current->lane / 4;
  for (unsigned i = 0; i < unsigned(sums); ++i) {
    const unsigned lower = i / 2 % 2;
    for (unsigned k = 0; k < 16; ++k) {
      const uint16_t* const element = product.b.element(SumPlace(i).column, k, product.b_turned);
      check_operand(product, element);
      const float of_a = all[4 * group + k % 8 / 2].a[4 * (k / 8) + 2 * lower + k % 2];
      d[i] += of_a * Format::value(*element);
    }
  }
}

/// The same with A in registers: each wave has its 16 rows, laid out as in mma.m16n8k16.
template <int sums>
void wgmma_m64k16_f16(float (&d)[sums], const uint32_t (&a)[4], const MatrixDescriptor& b,
                      bool b_turned, bool add, Site site = here("wgmma.m64k16")) {
  start_product(
      {{}, b, &a, false, b_turned, add, site, d, &run_wgmma_rows_m64k16<F16, sums>, {}, {}, {}});
}
template <int sums>
void wgmma_m64k16_bf16(float (&d)[sums], const uint32_t (&a)[4], const MatrixDescriptor& b,
                       bool b_turned, bool add, Site site = here("wgmma.m64k16")) {
  start_product(
      {{}, b, &a, false, b_turned, add, site, d, &run_wgmma_rows_m64k16<Bf16, sums>, {}, {}, {}});
}

/// A lane's part of 16 rows of A, of TF32.
struct Tf32Rows {
  float a[4];
};

template <int sums>
void run_wgmma_m64k8_tf32(const Product& product) {
  float* const d = sums_of<float, sums>(product);
  Tf32Rows mine;
  for (int i = 0; i < 4; ++i) mine.a[i] = read_tf32((*product.words)[i]);
  const auto all = exchange_all(mine, product.site);
  const unsigned group = current->lane / 4;
  for (unsigned i = 0; i < unsigned(sums); ++i) {
    const unsigned lower = i / 2 % 2;
    for (unsigned k = 0; k < 8; ++k) {
      const uint32_t* const word = product.b.word(SumPlace(i).column, k);
      check_operand(product, word);
      d[i] += all[4 * group + k % 4].a[2 * (k / 4) + lower] * read_tf32(*word);
    }
  }
}

/// wgmma.mma_async.sync.aligned.m64nNk8.f32.tf32.tf32 with A in registers, laid out as in
/// mma.m16n8k8 of TF32.
template <int sums>
void wgmma_m64k8_tf32(float (&d)[sums], const uint32_t (&a)[4], const MatrixDescriptor& b, bool add,
                      Site site = here("wgmma.m64k8.tf32")) {
  start_product({{}, b, &a, false, false, add, site, d, &run_wgmma_m64k8_tf32<sums>, {}, {}, {}});
}

}  // namespace greta_host

#else

namespace greta_host {
inline void forget_products() {}
}  // namespace greta_host

#endif
