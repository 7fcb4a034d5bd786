// Several products, each with a B of its own (common/groups.hip, where GROUPED is described). Those of
// groups lie one after the other. The matrices of a batch are a_batch, b_batch and c_batch elements after
// those of the one before.
#pragma once

#include "common/groups.hip"
#include "gemm/operands.hip"

// The arguments of a product of this group alone.
GRETA_DEVICE Arguments of_group(const Arguments& all, const Group& group) {
  Arguments args = all;
#if GROUPED == 3
  args.a += group.index * args.a_batch;
  args.b += group.index * args.b_batch;
  args.c += group.index * args.c_batch;
#if HAS_RESIDUAL
  args.residual += group.index * args.c_batch;
#endif
#elif GROUPED
  args.a += u64(group.first) * args.k;
  args.b += u64(group.index) * product_cols(args) * args.k;
  args.c += u64(group.first) * args.n;
  args.m = group.rows;
#endif
  return args;
}
