#define KERNEL_NAME latent_attention_join
#include "latent_attention/rows_join.hip"
