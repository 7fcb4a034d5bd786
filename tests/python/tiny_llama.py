"""A small Llama with the names, the calls and the caches of transformers' modules, and a package
`transformers` of what greta.torch.patch() uses of it."""

import math
import sys
import types

import torch

F = torch.nn.functional


class LlamaConfig:
    def __init__(self, bias=False):
        self.hidden_size, self.heads, self.kv_heads, self.head_dim, self.wide = 64, 4, 2, 16, 96
        self.bias, self._attn_implementation = bias, "sdpa"


class LlamaRMSNorm(torch.nn.Module):
    def __init__(self, size, eps=1e-6):
        super().__init__()
        self.weight, self.variance_epsilon = torch.nn.Parameter(torch.rand(size) + 0.5), eps

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon))


class LlamaRotaryEmbedding(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        self.register_buffer("inv_freq", 1e4 ** (-torch.arange(0, 1, 2 / config.head_dim)), persistent=False)

    @torch.no_grad()
    def forward(self, x, position_ids):
        angles = position_ids[..., None].float() * self.inv_freq
        both = torch.cat((angles, angles), -1)
        return both.cos().to(x.dtype), both.sin().to(x.dtype)


def rotated(x, cos, sin):
    first, second = x.chunk(2, -1)
    return x * cos[:, None] + torch.cat((-second, first), -1) * sin[:, None]


class LlamaAttention(torch.nn.Module):
    def __init__(self, config, layer_idx):
        super().__init__()
        self.config, self.layer_idx, self.head_dim = config, layer_idx, config.head_dim
        self.scaling, self.attention_dropout, self.is_causal = config.head_dim ** -0.5, 0.0, True
        wide, narrow = config.heads * config.head_dim, config.kv_heads * config.head_dim
        self.q_proj = torch.nn.Linear(config.hidden_size, wide, bias=config.bias)
        self.k_proj = torch.nn.Linear(config.hidden_size, narrow, bias=config.bias)
        self.v_proj = torch.nn.Linear(config.hidden_size, narrow, bias=config.bias)
        self.o_proj = torch.nn.Linear(wide, config.hidden_size, bias=config.bias)

    def forward(self, hidden_states, position_embeddings=None, attention_mask=None, past_key_values=None, **_):
        shape = (*hidden_states.shape[:-1], -1, self.head_dim)
        q, k, v = (one(hidden_states).view(shape).transpose(1, 2)
                   for one in (self.q_proj, self.k_proj, self.v_proj))
        cos, sin = position_embeddings
        q, k = rotated(q, cos, sin), rotated(k, cos, sin)
        if past_key_values is not None:
            k, v = past_key_values.update(k, v, self.layer_idx)
        groups = q.shape[1] // k.shape[1]
        k, v = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
        scores = q @ k.transpose(2, 3) * self.scaling
        end = k.shape[2] if attention_mask is None else int(attention_mask.flatten()[0])
        rows = end - q.shape[2] + torch.arange(q.shape[2])
        scores = scores.masked_fill(torch.arange(k.shape[2]) > rows[:, None], -math.inf)
        y = (scores.softmax(-1) @ v).transpose(1, 2)
        return self.o_proj(y.reshape(*hidden_states.shape[:-1], -1)), None


class LlamaMLP(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        self.gate_proj, self.up_proj = (torch.nn.Linear(config.hidden_size, config.wide, bias=config.bias)
                                        for _ in range(2))
        self.down_proj = torch.nn.Linear(config.wide, config.hidden_size, bias=config.bias)
        self.act_fn = torch.nn.SiLU()

    def forward(self, x):
        return self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))


class LlamaDecoderLayer(torch.nn.Module):
    def __init__(self, config, layer_idx):
        super().__init__()
        self.self_attn, self.mlp = LlamaAttention(config, layer_idx), LlamaMLP(config)
        self.input_layernorm = LlamaRMSNorm(config.hidden_size)
        self.post_attention_layernorm = LlamaRMSNorm(config.hidden_size)

    def forward(self, hidden_states, attention_mask=None, position_ids=None, past_key_values=None, use_cache=False,
                position_embeddings=None, **kwargs):
        y, _ = self.self_attn(hidden_states=self.input_layernorm(hidden_states), attention_mask=attention_mask,
                              past_key_values=past_key_values, position_embeddings=position_embeddings, **kwargs)
        x = hidden_states + y
        return x + self.mlp(self.post_attention_layernorm(x))


class DynamicCache:
    def __init__(self):
        self.layers, self.capacity = {}, None

    def update(self, k, v, layer):
        if layer in self.layers:
            k, v = (torch.cat((old, new), 2) for old, new in zip(self.layers[layer], (k, v)))
        self.layers[layer] = (k, v)
        return k, v

    def mask(self, begin, tokens):
        return None if begin == 0 else torch.full((1, 1, 1, 1), begin + tokens, dtype=torch.int32)


class StaticCache(DynamicCache):
    def update(self, k, v, layer):
        keys, values, at = self.layers.setdefault(layer, [
            *(torch.full((*one.shape[:2], 32, one.shape[3]), 1e3) for one in (k, v)), 0])
        keys[:, :, at:at + k.shape[2]], values[:, :, at:at + k.shape[2]] = k, v
        self.layers[layer][2] += k.shape[2]
        return keys, values

    def mask(self, begin, tokens):
        return torch.full((1, 1, 1, 1), begin + tokens, dtype=torch.int32)


class LlamaForCausalLM(torch.nn.Module):
    def __init__(self, bias=False, layers=2):
        super().__init__()
        self.config = LlamaConfig(bias)
        self.embed_tokens = torch.nn.Embedding(50, 64)
        self.layers = torch.nn.ModuleList(LlamaDecoderLayer(self.config, i) for i in range(layers))
        self.norm, self.rotary_emb = LlamaRMSNorm(64), LlamaRotaryEmbedding(self.config)
        self.lm_head = torch.nn.Linear(64, 50, bias=False)

    def forward(self, ids, cache=None, begin=0):
        x = self.embed_tokens(ids)
        position_ids = torch.arange(begin, begin + ids.shape[1])[None]
        turns = self.rotary_emb(x, position_ids=position_ids)
        mask = None if cache is None else cache.mask(begin, ids.shape[1])
        for layer in self.layers:
            x = layer(x, attention_mask=mask, position_ids=position_ids, past_key_values=cache, use_cache=True,
                      position_embeddings=turns)
        return self.lm_head(self.norm(x))


class Interface:
    known = {}

    @classmethod
    def register(cls, name, function):
        cls.known[name] = function


def as_transformers():
    """Makes `import transformers` find what patch() needs."""
    package = types.ModuleType("transformers")
    masks = types.ModuleType("transformers.masking_utils")
    package.AttentionInterface, masks.AttentionMaskInterface = Interface, Interface
    package.masking_utils = masks
    sys.modules.update({"transformers": package, "transformers.masking_utils": masks})
