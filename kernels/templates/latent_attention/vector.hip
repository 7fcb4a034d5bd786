#define KERNEL_NAME latent_attention_vector
#include "latent_attention/rows_vector.hip"
