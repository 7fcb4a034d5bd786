// out[i] = compute(inputs[0][i], inputs[1][i] …) for each of args.count elements; INPUTS of them.
// GAP: the inputs have gaps, so many elements behind each run of as many; 0: none. The second input
// starts where the first one's first gap does.

#if !defined(INPUTS) || !defined(GAP)
#error "INPUTS and GAP must be defined"
#endif

layout(push_constant, std430) uniform Arguments {
#if GAP
  uint64_t in_;
#else
  uint64_t in_[INPUTS];
#endif
  uint64_t out_;
  uint64_t count;
} args;

uint64_t input_address(uint k) {
#if GAP
  return args.in_ + uint64_t(k) * GAP * IN_BYTES;
#else
  return args.in_[k];
#endif
}

// Vectors come first, then the fewer than VEC elements behind them, one to a thread.
void main() {
  const uint64_t vectors = args.count / VEC;
  const uint64_t first = uint64_t(workgroup()) * (THREADS * ITEMS) + gl_LocalInvocationIndex;
#if GAP
  const uint run = GAP / VEC;
  const Place start = tile_start(run, THREADS * ITEMS);
#endif
  X_RAW raw[ITEMS * INPUTS];
  [[unroll]] for (uint i = 0; i < ITEMS; ++i) {
    const uint64_t at = first + i * THREADS;
    uint64_t from = at * VEC;
#if GAP
    const Place place = advance(start, i * THREADS + gl_LocalInvocationIndex, run);
    from += uint64_t(place.row) * GAP;
#endif
    [[unroll]] for (uint k = 0; k < INPUTS; ++k) {
      raw[i * INPUTS + k] = X_RAW(0);
      if (at < vectors) raw[i * INPUTS + k] = load_vector(input_address(k) + from * IN_BYTES);
    }
  }
  [[unroll]] for (uint i = 0; i < ITEMS; ++i) {
    float e[INPUTS][VEC], y[VEC];
    [[unroll]] for (uint k = 0; k < INPUTS; ++k) unpack(raw[i * INPUTS + k], e[k]);
    [[unroll]] for (uint j = 0; j < VEC; ++j) {
      float x[INPUTS];
      [[unroll]] for (uint k = 0; k < INPUTS; ++k) x[k] = e[k][j];
      y[j] = compute(x);
    }
    const uint64_t at = first + i * THREADS;
    if (at < vectors) store_floats(args.out_ + at * VEC * OUT_BYTES, y);
  }
#if VEC > 1 && GAP == 0
  if (first < args.count % VEC) {
    const uint64_t at = vectors * VEC + first;
    float x[INPUTS];
    [[unroll]] for (uint k = 0; k < INPUTS; ++k) x[k] = load_in(args.in_[k] + at * IN_BYTES);
    store_out(args.out_ + at * OUT_BYTES, compute(x));
  }
#endif
}
