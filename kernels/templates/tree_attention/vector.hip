#define KERNEL_NAME tree_attention_vector
#include "latent_attention/rows_vector.hip"
