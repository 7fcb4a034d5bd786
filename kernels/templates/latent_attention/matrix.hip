#define KERNEL_NAME latent_attention_matrix
#include "latent_attention/rows_matrix.hip"
