// out = y / sqrt(mean of y^2 + epsilon) * gain, y = (in - mean) / sqrt(variance + epsilon) * weight +
// bias, of each row.
#define SECOND 1

#include "common/moments.hip"

ROW_KERNEL(layernorm_rmsnorm_rows, LayerNorm)
