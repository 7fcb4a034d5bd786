// Copies rows of tokens to their places, and completes the rows of experts.
#pragma once

// Workgroups after those of tokens: with blocks of rows one for each expert, whose rows it fills up.
#define FINISHERS (BLOCK > 1 ? EXPERTS : 1)

shared int place[TOP_K];  // rows of `out`

void copy_row(uint token) {
  const uint width = args.dim / VEC;
  const uint64_t row = args.x + uint64_t(token) * args.dim * IN_BYTES;
  [[dont_unroll]] for (uint first = gl_LocalInvocationIndex; first < width;
                       first += THREADS * ITEMS) {
    X_RAW raw[ITEMS];
    [[unroll]] for (uint i = 0; i < ITEMS; ++i) {
      raw[i] = X_RAW(0);
      const uint64_t from = (first + i * THREADS) * VEC;
      if (first + i * THREADS < width) raw[i] = load_vector(row + from * IN_BYTES);
    }
    [[dont_unroll]] for (uint k = 0; k < TOP_K; ++k) {
      if (place[k] < 0) continue;
      const uint64_t to = uint64_t(uint(place[k])) * args.dim;
      [[unroll]] for (uint i = 0; i < ITEMS; ++i) {
        const uint64_t at = to + (first + i * THREADS) * VEC;
        if (first + i * THREADS < width) store_converted(args.out_ + at * IN_BYTES, raw[i]);
      }
    }
  }
}

void store_group(uint expert, uint value) { I32(args.groups + uint64_t(expert) * 4).v = int(value); }

// `groups`: the row after each expert's last, or with CAPACITY its number of rows.
void finish(uint finisher) {
#if BLOCK > 1
  const uint first = start_of(finisher) + count_of(finisher);
  const uint end = start_of(finisher) + rows_of(count_of(finisher));
  if (gl_LocalInvocationIndex == 0) store_group(finisher, end);
  const uint64_t vectors = uint64_t(end - first) * (args.dim / VEC);
  for (uint64_t i = gl_LocalInvocationIndex; i < vectors; i += THREADS) {
    const uint64_t at = uint64_t(first) * args.dim + i * VEC;
    store_converted(args.out_ + at * IN_BYTES, X_RAW(0));
  }
#else
  for (uint e = gl_LocalInvocationIndex; e < EXPERTS; e += THREADS)
    store_group(e, CAPACITY > 0 ? min(count_of(e), CAPACITY) : start_of(e) + count_of(e));
#endif
}
