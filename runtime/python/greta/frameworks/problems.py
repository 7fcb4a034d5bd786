"""The problems of frameworks' operations, from the extents of their tensors, as Runtime.lookup()
takes them."""

from __future__ import annotations


def _text(operation: str, dtype: str, out: str, **fields: object) -> str:
    words = [f"{name}={value}" for name, value in fields.items() if value is not None]
    return " ".join([operation, f"dtype={dtype}", f"out={out}", *words])


def gemm(m: int, n: int, k: int, *, dtype: str, out: str | None = None, layout: str = "nn",
         bias: bool = False, residual: bool = False, activation: str = "none",
         norm_epsilon: float | None = None) -> str:
    """Returns the problem of C [m, n] = act(A B + bias + residual). A frameworks' linear layer has
    the layout "nt": its weight is B's transpose [n, k]. norm_epsilon: A is replaced by its RMS norm.
    swiglu and geglu: B has 2 n columns."""
    parts = [name for name, used in (("bias", bias), ("residual", residual),
                                     (activation, activation != "none")) if used]
    return _text("gemm", dtype, out or dtype, layout=layout, epilogue=",".join(parts) or None,
                 prologue=None if norm_epsilon is None else "rmsnorm", epsilon=norm_epsilon, m=m, n=n,
                 k=k)


def rmsnorm(rows: int, cols: int, *, dtype: str, weight: bool, epsilon: float) -> str:
    """Returns the problem of an RMS norm of rows."""
    return _text("rmsnorm", dtype, dtype, affine=None if weight else "none", epsilon=epsilon,
                 rows=rows, cols=cols)


def add_rmsnorm(rows: int, cols: int, *, dtype: str, weight: bool, epsilon: float) -> str:
    """Returns the problem of a sum of two tensors and the RMS norm of its rows."""
    return _text("add_rmsnorm", dtype, dtype, affine=None if weight else "none", epsilon=epsilon,
                 rows=rows, cols=cols)


def silu_mul(rows: int, cols: int, *, dtype: str) -> str:
    """Returns the problem of silu(gate) * up, where each row holds `cols` gates, then as many others."""
    return _text("silu_mul", dtype, dtype, layout="packed", rows=rows, cols=cols)


def rope(tokens: int, heads: int, dim: int, positions: int, *, dtype: str, half: bool,
         stride: int | None = None) -> str:
    """Returns the problem of a rotary embedding by the rows of a table of so many positions. half:
    elements i and i + dim / 2 are a pair, else 2 i and 2 i + 1. stride: of tokens, None: packed."""
    return _text("rope", dtype, dtype, style="half" if half else None, x_stride=stride,
                 tokens=tokens, heads=heads, dim=dim, positions=positions)


def layernorm(rows: int, cols: int, *, dtype: str, weight: bool, bias: bool,
              epsilon: float) -> str:
    """Returns the problem of a layer norm of rows."""
    affine = None if bias else "weight" if weight else "none"
    return _text("layernorm", dtype, dtype, affine=affine, epsilon=epsilon, rows=rows, cols=cols)


def softmax(rows: int, cols: int, *, dtype: str, scale: float = 1.0, causal: bool = False) -> str:
    """Returns the problem of a softmax of rows."""
    return _text("softmax", dtype, dtype, scale=scale, mask="causal" if causal else None,
                 rows=rows, cols=cols)


def attention(batch: int, heads: int, kv_heads: int, q: int, kv: int, dim: int, *, dtype: str,
              v_dim: int | None = None, scale: float | None = None, causal: bool = False,
              window: int = 0) -> str:
    """Returns the problem of attention over `kv` keys, or over a cache that holds so many. scale
    None: 1 / sqrt(dim). window: keys that a causal query attends to, 0: all."""
    return _text("attention", dtype, dtype, mask="causal" if causal else None, scale=scale,
                 v_dim=None if v_dim in (None, dim) else v_dim, window=window or None, batch=batch,
                 heads=heads, kv_heads=kv_heads, q=q, kv=kv, dim=dim)
