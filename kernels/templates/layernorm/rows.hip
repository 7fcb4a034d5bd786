// out = (in - mean) / sqrt(variance + epsilon) * weight + bias of each row.
#include "common/moments.hip"

ROW_KERNEL(layernorm_rows, LayerNorm)
