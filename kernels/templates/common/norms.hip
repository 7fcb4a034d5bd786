// What norms of rows share: their weights.
#pragma once

#include "common/activation.hip"
#include "common/affine.hip"
#include "common/inverse_root.hip"
#include "common/rows.hip"

GRETA_DEVICE Affine load_affine(const Arguments& args, u32 col) {
  return load_affine(args.weight, args.bias, col);
}
