"""Peers of operations on caches of keys and values.

torch has no attention over a latent cache: its peers are two products and a softmax, and the efficient attention of
scaled_dot_product_attention. Where all heads share keys, its operands have a head's queries as further queries.
"""

import functools
import random

from .calls import rotated
from .floating import Floating


class Caches(Floating):
    """As in Floating."""

    def rope_append(self, d, a, dtype):
        """Where new keys belong is known before, as models compute it once for all layers. The caches themselves are changed,
        not views of them, of which torch.compile would make copies."""
        if "page_size" in a:
            return []
        batch, tokens, heads, kv_heads, dim = (d[name] for name in ("batch", "tokens", "heads", "kv_heads", "dim"))
        lines, epsilon = batch * tokens, float(a.get("epsilon", 1e-5))
        style, norm, inside = a.get("style", "interleaved"), a.get("norm") == "rms", a.get("place") == "in"
        q = self.heads(lines, heads, dim, int(a.get("q_stride", heads * dim)), dtype)
        k, v = (self.heads(lines, kv_heads, dim, int(a.get("kv_stride", kv_heads * dim)), dtype) for _ in range(2))
        caches = [self.tensor(batch, kv_heads, d["capacity"], dim, dtype=dtype) for _ in range(2)]
        positions = self.integers(0, d["positions"], lines, dtype=self.torch.int64)
        slots = (self.integers(0, d["capacity"] - tokens + 1, batch, 1, 1, dtype=self.torch.int64)
                 + self.torch.arange(tokens, device=self.device).view(1, tokens, 1))
        at = [self.torch.arange(batch, device=self.device).view(batch, 1, 1),
              self.torch.arange(kv_heads, device=self.device).view(1, 1, kv_heads), slots]
        weights = [self.tensor(dim, dtype=dtype) for _ in range(2)]

        def run(q, k, v, k_cache, v_cache, cos, sin, positions, q_weight, k_weight, *at):
            cos, sin = cos[positions].unsqueeze(1), sin[positions].unsqueeze(1)
            if norm:
                normed = (self.functional.rms_norm(q, (dim,), q_weight, epsilon),
                          self.functional.rms_norm(k, (dim,), k_weight, epsilon))
            else:
                normed = q, k
            queries, keys = [rotated(self.torch, style, x, cos, sin) for x in normed]
            for cache, new in ((k_cache, keys), (v_cache, v)):
                cache.index_put_(at, new.reshape(batch, tokens, kv_heads, dim))
            return q.copy_(queries) if inside else queries
        return self.both(run, q, k, v, *caches, *self.table(d["positions"], dim), positions, *weights, *at)

    def attention_merge(self, d, a, dtype):
        outs = self.tensor(d["parts"], d["tokens"], d["heads"], d["dim"], dtype=dtype)
        sums, stored = self.tensor(d["parts"], d["tokens"], d["heads"], dtype=self.torch.float32), a.get("lse") == "stored"

        def run(outs, sums):
            out = (outs.float() * self.torch.softmax(sums, 0).unsqueeze(-1)).sum(0).to(dtype)
            return (out, self.torch.logsumexp(sums, 0)) if stored else out
        return self.both(run, outs, sums)

    def sdpa(self, backend, name, *operands, **options):
        """A peer by a backend of scaled_dot_product_attention."""
        from torch.nn.attention import SDPBackend, sdpa_kernel
        backend = getattr(SDPBackend, backend)

        def run():
            with sdpa_kernel(backend):
                return self.functional.scaled_dot_product_attention(*operands, **options)
        return [(name, run)]

    def latent_attention(self, d, a, dtype):
        if a.get("mask", "none") != "none" or {"page_size", "lse", "lengths"} & a.keys():
            return []
        batch, latent, dim = d["batch"], d["latent"], d["latent"] + d["rope"]
        given = a.get("scale", "auto")
        scale = dim ** -0.5 if given == "auto" else float(given)
        q, cache = self.tensor(batch, d["heads"] * d["q"], dim, dtype=dtype), self.tensor(batch, d["kv"], dim, dtype=dtype)

        def run(q, cache):
            scores = self.torch.bmm(q, cache.transpose(1, 2)).float() * scale
            return self.torch.bmm(self.torch.softmax(scores, -1).to(dtype), cache[..., :latent])
        rows = cache.unsqueeze(1)
        return self.all_of([functools.partial(self.both, run, q, cache),
                            functools.partial(self.sdpa, "EFFICIENT_ATTENTION", "torch efficient attention", q.unsqueeze(1), rows,
                                              rows[..., :latent], scale=scale)])

    def trees(self, batch, count):
        """Returns which of a tree's tokens each one sees. Each follows an earlier one, or none."""
        draw, trees = random.Random(1), []
        for _ in range(batch):
            tree = []
            for token in range(count):
                parent = draw.randrange(token + 1) - 1
                seen = list(tree[parent]) if parent >= 0 else [False] * count
                seen[token] = True
                tree.append(seen)
            trees.append(tree)
        return self.torch.tensor(trees, device=self.device, dtype=self.torch.bool)

    def tree_attention(self, d, a, dtype):
        if {"page_size", "lse", "lengths"} & a.keys():
            return []
        batch, heads, kv_heads, queries, kv, dim = (d[name] for name in ("batch", "heads", "kv_heads", "q", "kv", "dim"))
        group, given = heads // kv_heads, a.get("scale", "auto")
        options = {} if given == "auto" else {"scale": float(given)}
        q = self.tensor(batch, heads, queries, dim, dtype=dtype)
        k, v = (self.tensor(batch, kv_heads, kv, dim, dtype=dtype) for _ in range(2))
        tree = self.trees(batch, queries)
        hidden = self.torch.zeros(batch, 1, queries, kv, device=self.device, dtype=dtype)
        hidden[..., kv - queries:] = hidden[..., kv - queries:].masked_fill(tree.unsqueeze(1).logical_not(), float("-inf"))
        gqa = {"enable_gqa": True} if group > 1 else {}
        folded, of_folded = q.view(batch, kv_heads, group * queries, dim), hidden.repeat(1, 1, group, 1)
        return self.all_of([
            functools.partial(self.sdpa, "CUDNN_ATTENTION", "cuDNN", q, k, v, attn_mask=hidden, **gqa, **options),
            functools.partial(self.sdpa, "EFFICIENT_ATTENTION", "torch efficient attention", folded, k, v, attn_mask=of_folded,
                              **options),
            functools.partial(self.flex, q, k, v, tree, gqa | options)])

    def flex(self, q, k, v, tree, options):
        """A peer by the compiled attention whose mask is a function."""
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention
        queries, kv = q.shape[2], k.shape[2]

        def seen(sequence, head, query, key):
            late = key - (kv - queries)
            return (late < 0) | tree[sequence, query, late.clamp(min=0)]
        blocks = create_block_mask(seen, q.shape[0], None, queries, kv, device=self.device)
        compiled = self.compiled(flex_attention)
        return [("torch.compile flex_attention", lambda: compiled(q, k, v, block_mask=blocks, **options))]
