"""Peers of operations on floating-point numbers."""

import functools

from .calls import Calls, rotated
from .groups import ends_of_groups


class Floating(Calls):
    """Each operation's method returns (peer, function) pairs for a problem's sizes `d` and attributes `a`."""

    def gemm(self, d, a, dtype):
        m, n, k = d["m"], d["n"], d["k"]
        layout = a.get("layout", "nn")
        x = self.tensor(m, k, dtype=dtype) if layout[0] == "n" else self.tensor(k, m, dtype=dtype).t()
        w = self.tensor(k, n, dtype=dtype) if layout[1] == "n" else self.tensor(n, k, dtype=dtype).t()
        if a.get("epilogue") == "residual":
            residual = self.tensor(m, n, dtype=dtype)
            return [("torch", lambda: self.torch.addmm(residual, x, w))]
        return [("torch", lambda: self.torch.mm(x, w))]

    def grouped_gemm(self, d, a, dtype):
        groups, m, n, k = d["groups"], d["m"], d["n"], d["k"]
        w = self.tensor(groups, n, k, dtype=dtype).transpose(1, 2)
        if a.get("form") == "masked":
            if a.get("routing") == "skewed":
                return []  # bmm multiplies all rows
            x = self.tensor(groups, m, k, dtype=dtype)
            return [("torch", lambda: self.torch.bmm(x, w))]
        x = self.tensor(m, k, dtype=dtype)
        ends = self.torch.tensor(ends_of_groups(groups, m, a.get("routing")), device=self.device, dtype=self.torch.int32)
        return [("torch", lambda: self.torch._grouped_mm(x, w, offs=ends))]

    def softmax(self, d, a, dtype):
        x = self.tensor(d["rows"], d["cols"], dtype=dtype)
        return self.both(lambda x: self.torch.softmax(x, -1), x)

    def norm(self, d, dtype, function):
        x, w = self.tensor(d["rows"], d["cols"], dtype=dtype), self.tensor(d["cols"], dtype=dtype)
        return self.both(functools.partial(function, (d["cols"],)), x, w)

    def rmsnorm(self, d, a, dtype):
        return self.norm(d, dtype, lambda size, x, w: self.functional.rms_norm(x, size, w, 1e-5))

    def layernorm(self, d, a, dtype):
        return self.norm(d, dtype, lambda size, x, w: self.functional.layer_norm(x, size, w, w, 1e-5))

    def layernorm_rmsnorm(self, d, a, dtype):
        if a:
            return []
        gain = self.tensor(d["cols"], dtype=dtype)

        def run(size, x, w):
            return self.functional.rms_norm(self.functional.layer_norm(x, size, w, w, 1e-5), size, gain, 1e-5)
        return self.norm(d, dtype, run)

    def add_rmsnorm(self, d, a, dtype):
        residual = self.tensor(d["rows"], d["cols"], dtype=dtype)

        def run(size, x, w):
            total = x + residual
            return total, self.functional.rms_norm(total, size, w, 1e-5)
        return self.norm(d, dtype, run)

    def silu_mul(self, d, a, dtype):
        x, cols = self.tensor(d["rows"], 2 * d["cols"], dtype=dtype), d["cols"]
        return self.both(lambda x: self.functional.silu(x[:, :cols]) * x[:, cols:], x)

    def add(self, d, a, dtype):
        x, y = self.tensor(d["rows"], d["cols"], dtype=dtype), self.tensor(d["rows"], d["cols"], dtype=dtype)
        return self.both(lambda x, y: x + y, x, y)

    def gelu(self, d, a, dtype):
        x, form = self.tensor(d["rows"], d["cols"], dtype=dtype), "none" if a.get("form") == "erf" else "tanh"
        return self.both(lambda x: self.functional.gelu(x, approximate=form), x)

    def rope(self, d, a, dtype):
        tokens, heads, dim = d["tokens"], d["heads"], d["dim"]
        style, inside = a.get("style", "interleaved"), a.get("place") == "in"
        x = self.heads(tokens, heads, dim, int(a.get("x_stride", heads * dim)), dtype)
        cos, sin = self.table(d["positions"], dim)
        positions = self.torch.arange(tokens, device=self.device)

        def run(x, cos, sin, positions):
            y = rotated(self.torch, style, x, cos[positions][:, None], sin[positions][:, None])
            return x.copy_(y) if inside else y
        return self.both(run, x, cos, sin, positions)

    def kv_update(self, d, a, dtype):
        tokens, heads, dim = d["tokens"], d["kv_heads"], d["dim"]
        k, v = (self.heads(tokens, heads, dim, int(a.get("kv_stride", heads * dim)), dtype) for _ in range(2))
        k_cache, v_cache = (self.tensor(heads, d["capacity"], dim, dtype=dtype) for _ in range(2))
        positions = self.torch.arange(tokens, device=self.device)

        def run(k, v, k_cache, v_cache, positions):
            k_cache.index_copy_(1, positions, k.transpose(0, 1))
            v_cache.index_copy_(1, positions, v.transpose(0, 1))
        return self.both(run, k, v, k_cache, v_cache, positions)

    def embedding(self, d, a, dtype):
        table = self.tensor(d["vocabulary"], d["dim"], dtype=dtype)
        ids = self.torch.randint(d["vocabulary"], (d["tokens"],), device=self.device)
        return self.both(lambda ids, table: self.functional.embedding(ids, table), ids, table)

    def gather_columns(self, d, a, dtype):
        x = self.tensor(d["rows"], d["width"], dtype=dtype)
        ids = self.integers(0, d["width"], d["cols"], dtype=self.torch.int64)
        return self.both(lambda x, ids: x.index_select(1, ids), x, ids)

    def argmax(self, d, a, dtype):
        x = self.tensor(d["rows"], d["cols"], dtype=dtype)
        return self.both(lambda x: self.torch.argmax(x, -1), x)

    def attention(self, d, a, dtype):
        if a.keys() - {"mask", "q_stride", "scale"}:
            return []  # torch has no call for caches of different lengths, windows, pages and so on
        from torch.nn.attention import SDPBackend, sdpa_kernel
        batch, heads, kv_heads = d["batch"], d["heads"], d["kv_heads"]
        q = self.tensor(batch, heads, d["q"], d["dim"], dtype=dtype)
        k, v = (self.tensor(batch, kv_heads, d["kv"], d["dim"], dtype=dtype) for _ in range(2))
        causal = a.get("mask") == "causal"
        if causal and d["q"] != d["kv"]:  # where is_causal hides other keys
            return self.flash(q, k, v)

        def run(backend):
            with sdpa_kernel(backend):
                return self.functional.scaled_dot_product_attention(q, k, v, is_causal=causal,
                                                                    enable_gqa=heads != kv_heads)
        return [("FlashAttention", functools.partial(run, SDPBackend.FLASH_ATTENTION)),
                ("cuDNN", functools.partial(run, SDPBackend.CUDNN_ATTENTION))]

    def flash(self, q, k, v):
        """FlashAttention with the last query beside the last key."""
        q, k, v = (x.transpose(1, 2) for x in (q, k, v))
        call = self.torch.ops.aten._flash_attention_forward
        return [("FlashAttention", lambda: call(q, k, v, None, None, q.shape[1], k.shape[1], 0.0, True, False))]
