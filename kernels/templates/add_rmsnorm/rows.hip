// sum = in + residual, and out = sum / sqrt(mean of sum^2 + epsilon) * weight of each row.
#define RESIDUAL 1

#include "common/rms.hip"

ROW_KERNEL(add_rmsnorm_rows, RmsNorm)
