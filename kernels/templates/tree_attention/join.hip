#define KERNEL_NAME tree_attention_join
#include "latent_attention/rows_join.hip"
