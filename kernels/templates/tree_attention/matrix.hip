#define KERNEL_NAME tree_attention_matrix
#include "latent_attention/rows_matrix.hip"
