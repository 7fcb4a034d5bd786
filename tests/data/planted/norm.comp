#version 460
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require

layout(buffer_reference, std430, buffer_reference_align = 4) buffer Floats { float v[]; };

layout(push_constant) uniform Arguments {
  Floats x, gain, offset, y;
  int rows, cols;
};

#if ENTRY_IS_norm

shared float sums[THREADS];

float added(float value) {
  const uint me = gl_LocalInvocationIndex;
  sums[me] = value;
  barrier();
  for (uint step = THREADS / 2; step > 0; step /= 2) {
    if (me < step) sums[me] += sums[me + step];
    barrier();
  }
  const float sum = sums[0];
  barrier();
  return sum;
}

void norm() {
  const int row = int(gl_WorkGroupID.x), me = int(gl_LocalInvocationIndex);
  const int first = row * cols;
  float sum = 0;
  for (int i = me; i < cols; i += THREADS) sum += x.v[first + i];
  const float mean = added(sum) / cols;
  sum = 0;
  for (int i = me; i < cols; i += THREADS) {
    const float apart = x.v[first + i] - mean;
    sum += apart * apart;
  }
  const float factor = inversesqrt(added(sum) / cols + 1e-5);
  for (int i = me; i < cols; i += THREADS)
    y.v[first + i] = (x.v[first + i] - mean) * factor * gain.v[i] + offset.v[i];
}

#else

void naive() {
  const int row = int(gl_WorkGroupID.x);
  double sum = 0, squares = 0;
  for (int i = 0; i < cols; ++i) sum += x.v[row * cols + i];
  const double mean = sum / cols;
  for (int i = 0; i < cols; ++i) {
    const double apart = x.v[row * cols + i] - mean;
    squares += apart * apart;
  }
  const double factor = 1 / sqrt(squares / cols + 1e-5);
  for (int i = 0; i < cols; ++i)
    y.v[row * cols + i] = float((x.v[row * cols + i] - mean) * factor * gain.v[i] + offset.v[i]);
}

#endif
