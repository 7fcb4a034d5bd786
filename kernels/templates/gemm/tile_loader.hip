// Loads one operand's K step from device memory into registers, and from there into shared memory
// as f32 with K as the slow dimension; or copies it there past the registers. Where `along_k`, K is
// contiguous in the operand. `span` is the tile's extent in m or n; a row of it in shared memory
// takes `pitch` floats. The vectors of a line divide the threads, or are a multiple of them. The last
// load may be one of some threads only. `pairs`: lines alternate between gates and ups. `panels`:
// they lie in panels of 16 (operands.hip).
#pragma once

#include "common/async_copy.hip"
#include "gemm/operands.hip"

template <bool along_k, u32 span, u32 vec, u32 pitch, bool pairs = false, bool panels = false>
struct TileLoader {
  static_assert(!panels || along_k, "lines of panels lie along k");
  static constexpr u32 groups = (along_k ? BK : span) / vec;  // vectors of a line of memory
  static constexpr u32 vectors = span * BK / vec;
  static constexpr u32 loads = (vectors + THREADS - 1) / THREADS;
  static_assert(THREADS % groups == 0 || groups % THREADS == 0, "loads are at constant distances");

  const In* next;  // this thread's first vector of the K step to load next; of panels the step
  u32 stride;      // elements from one line to the next, or from one pair of lines
  u64 pair;        // and from a gate's line to that of its up
  u32 first, end;  // where the tile starts in m or n, and where the operand ends
  Pack<In, vec> raw[loads];

  // The line of a load and an element in it.
  GRETA_DEVICE static u32 line(u32 i) { return thread_index() / groups + i * THREADS / groups; }
  GRETA_DEVICE static u32 offset(u32 i) {
    return (thread_index() % groups + i * THREADS % groups) * vec;
  }

  // Whether this thread has a vector of load i.
  GRETA_DEVICE static bool mine(u32 i) {
    return (i + 1) * THREADS <= vectors || i * THREADS + thread_index() < vectors;
  }

  // Single elements along k are copied to lines of shared memory whose distance is a multiple of 16
  // bytes, so that every eighth lane would write to the same bank. By line K, the elements of each four
  // are exchanged: element e is at e ^ exchanged(k). Reads of four know K while compiling.
  GRETA_DEVICE static constexpr u32 exchanged(u32 k) {
    constexpr u32 lines_of_32 = BK < 32 ? 32 / BK : 1;  // that 32 lanes write to
    return STAGES > 2 && along_k && UNROLL == BK ? k / 8 * lines_of_32 % 4 : 0;
  }

  static constexpr u32 line_step = THREADS / groups;  // from one load's line to the next one's

  // Elements from the first line to this one; `line` is even where it is added to others.
  GRETA_DEVICE u64 place(u32 line) const {
    if constexpr (panels) {
      const u32 own = pairs ? line / 2 : line;
      return u64(own / 16) * 16 * stride + own % 16 * 8 + (pairs ? line % 2 * pair : 0);
    }
    return pairs ? u64(line / 2) * stride + line % 2 * pair : u64(line) * stride;
  }
  // From the first load's line to that of load i.
  GRETA_DEVICE u64 further(u32 i) const {
    if constexpr (pairs && line_step % 2 != 0) return place(line(i)) - place(line(0));
    return place(i * THREADS / groups);
  }
  // From a thread's first vector to the one of load i.
  GRETA_DEVICE u64 beyond_first(u32 i) const {
    if constexpr (panels) return place(first + line(i)) + offset(i) / 8 * 128 + offset(i) % 8;
    return further(i) + i * THREADS % groups * vec;
  }
  GRETA_DEVICE bool inside(u32 i, u32 k0, u32 k_end) const {
    return along_k ? first + line(i) < end && k0 + offset(i) < k_end
                   : first + offset(i) < end && k0 + line(i) < k_end;
  }
  GRETA_DEVICE void next_step() {
    next += panels ? u64(BK) * 16 : along_k ? u64(BK) : u64(BK) * stride;
  }

  GRETA_DEVICE void start(const In* operand, u32 extent, u32 line_stride, u32 tile, u32 k0,
                          u64 pair_distance = 0) {
    static_assert(!pairs || along_k, "gates and ups are lines of the operand");
    stride = line_stride;
    pair = pair_distance;
    first = tile;
    end = extent;
    if constexpr (panels) {
      next = operand + u64(k0) * 16;
      return;
    }
    next = operand + (along_k ? place(tile + line(0)) + k0 + offset(0)
                              : u64(k0 + line(0)) * stride + tile + offset(0));
  }

  // `whole`: no element of the K step lies outside the matrix.
  template <bool whole>
  GRETA_DEVICE void load(u32 k0, u32 k_end) {
    GRETA_UNROLL
    for (u32 i = 0; i < loads; ++i) {
      raw[i] = {};
      if (mine(i) && (whole || inside(i, k0, k_end))) raw[i] = load_pack<vec>(next + beyond_first(i));
    }
    next_step();
  }

#if STAGES > 2
  // Whether a thread's loads of a K step differ in their lines alone.
  static constexpr bool by_lines = THREADS % groups == 0;

  // The number of lines from this thread's first one on whose vector lies inside the matrix.
  GRETA_DEVICE u32 lines_inside(u32 k0, u32 k_end) const {
    const u32 extent = first < end ? end - first : 0, left = k0 < k_end ? k_end - k0 : 0;
    const u32 lines = along_k ? extent : left, elements = along_k ? left : extent;
    return offset(0) < elements && line(0) < lines ? lines - line(0) : 0;
  }

  // Starts copy i of the K step to the tile at byte `to` of shared memory. `lines`: of lines_inside().
  GRETA_DEVICE void copy(SharedMemory shared, u32 to, u32 i, u32 k0, u32 k_end, u32 lines) const {
    static_assert(sizeof(In) == 4 && (!along_k || vec == 1), "elements go where they are read");
    if (!mine(i)) return;
    const u32 by = along_k ? exchanged(offset(i)) : 0;  // of the bits below 4
    const u32 at = by_lines && line_step % 4 == 0 ? (line(0) ^ by) + i * line_step : line(i) ^ by;
    const u32 place = along_k ? offset(i) * pitch + at : line(i) * pitch + offset(i);
    copy_lane_async<vec * 4>(shared, to + place * 4, next + beyond_first(i),
                             by_lines ? i * line_step < lines : inside(i, k0, k_end));
  }
#endif

  // Elements of a vector go to lines that are `pitch` apart. A lane begins with one of its elements,
  // so that lanes whose vectors are a multiple of 32 banks apart write to different banks. NVIDIA's
  // assembler would choose among loaded elements in front of the products that hide their latency; there,
  // two lanes to a bank cost less.
  GRETA_DEVICE void store_turned(float* tile, u32 i) const {
    constexpr u32 period = vec < 8 ? 8 / vec : 1;  // lanes along k with different banks
    constexpr u32 step = groups < 8 ? 8 / groups : 1;
#if defined(GRETA_NVIDIA)
    constexpr bool hides = STAGES > 1;
#else
    constexpr bool hides = false;
#endif
    constexpr bool turns = vec > 1 && pitch % 32 == 4 && groups > period && !hides;
    const u32 first = turns ? thread_index() % groups / period * step % vec : 0;
    float values[vec];
    GRETA_UNROLL
    for (u32 j = 0; j < vec; ++j) values[j] = element(raw[i], j);
    GRETA_UNROLL
    for (u32 by = 1; by < vec && turns; by *= 2) {
      float turned[vec];
      GRETA_UNROLL
      for (u32 j = 0; j < vec; ++j) turned[j] = (first & by) != 0 ? values[(j + by) % vec] : values[j];
      GRETA_UNROLL
      for (u32 j = 0; j < vec; ++j) values[j] = turned[j];
    }
    GRETA_UNROLL
    for (u32 j = 0; j < vec; ++j) {
      const u32 k = turns ? (j + first) % vec : j;
      tile[(offset(i) + k) * pitch + line(i)] = values[j];
    }
  }

  GRETA_DEVICE void store(float* tile) const {
    GRETA_UNROLL
    for (u32 i = 0; i < loads; ++i) {
      if (!mine(i)) continue;
      if constexpr (along_k) {
        store_turned(tile, i);
      } else {
        constexpr u32 width = vec < 4 ? vec : 4;  // of a store
        GRETA_UNROLL
        for (u32 j = 0; j < vec; j += width) {
          float values[width];
          GRETA_UNROLL
          for (u32 l = 0; l < width; ++l) values[l] = element(raw[i], j + l);
          store_pack(tile + line(i) * pitch + offset(i) + j, narrow_pack<float>(values));
        }
      }
    }
  }
};
