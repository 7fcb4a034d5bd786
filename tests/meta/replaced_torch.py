"""A replacement of torch for scripts/measure_peers.py: tensors without elements, and calls that check their operands as
torch 2.11 does on an NVIDIA GPU."""

import contextlib
import dataclasses
import math
import types


def require(condition, text):
    if not condition:
        raise RuntimeError(text)


class Tensor:
    def __init__(self, shape, dtype, strides=None):
        self.shape, self.dtype = tuple(shape), dtype
        self.strides = strides or tuple(math.prod(self.shape[i + 1:]) for i in range(len(self.shape)))

    def like(self, *others):
        """The result of an elementwise operation: shapes are broadcast."""
        tensors = [self, *(other for other in others if isinstance(other, Tensor))]
        rank = max(len(one.shape) for one in tensors)
        shapes = [(1,) * (rank - len(one.shape)) + one.shape for one in tensors]
        for extents in zip(*shapes):
            require(len(set(extents) - {1}) < 2, f"can't broadcast {shapes}")
        return Tensor([max(extents) for extents in zip(*shapes)], self.dtype)

    __add__ = __radd__ = __sub__ = __mul__ = __truediv__ = __and__ = __or__ = __rshift__ = __lshift__ = __gt__ = __lt__ = like
    __floordiv__ = like
    abs = round = rsqrt = square = cumsum = masked_fill = sigmoid = cos = sin = logical_not = contiguous = like

    def clamp(self, *_, **limits):
        return self

    def transpose(self, first, second):
        order = list(range(len(self.shape)))
        order[first], order[second] = order[second], order[first]
        return Tensor([self.shape[i] for i in order], self.dtype, tuple(self.strides[i] for i in order))

    def t(self):
        return self.transpose(0, 1)

    def to(self, dtype):
        return Tensor(self.shape, dtype, self.strides)

    def float(self):
        return self.to(float32)

    def long(self):
        return self.to(int64)

    def unsqueeze(self, at):
        at += len(self.shape) + 1 if at < 0 else 0
        return Tensor((*self.shape[:at], 1, *self.shape[at:]), self.dtype)

    def reshape(self, *shape):
        shape = shape[0] if isinstance(shape[0], tuple) else shape
        known = -math.prod(shape)
        shape = [math.prod(self.shape) // known if extent == -1 else extent for extent in shape]
        require(math.prod(shape) == math.prod(self.shape), f"can't make {shape} of {self.shape}")
        return Tensor(shape, self.dtype)

    view = reshape

    def repeat(self, *counts):
        return Tensor([extent * count for extent, count in zip(self.shape, counts, strict=True)], self.dtype)

    def sum(self, at, keepdim=False, dtype=None):
        shape = list(self.shape)
        shape[at:at + 1 or None] = [1] if keepdim else []
        return Tensor(shape, dtype or self.dtype)

    amax = mean = sum

    def sort(self, *_, **options):
        return self, Tensor(self.shape, int64)

    def topk(self, count, _):
        require(0 < count <= self.shape[-1], "selected index k out of range")
        found = (*self.shape[:-1], count)
        return Tensor(found, self.dtype), Tensor(found, int64)

    def gather(self, _, index):
        require(index.dtype is int64, "expects int64")
        return Tensor(index.shape, self.dtype)

    def scatter(self, _, index, source):
        require(index.dtype is int64 and getattr(source, "dtype", self.dtype) is self.dtype, "types differ")
        return self

    def index_select(self, at, ids):
        return Tensor([*self.shape[:at], *ids.shape, *self.shape[at + 1:]], self.dtype)

    def index_copy_(self, at, index, source):
        require(source.dtype is self.dtype and index.shape[0] == source.shape[at], "operands differ")
        return self

    def index_put_(self, indices, values):
        found = indices[0].like(*indices[1:]).shape + self.shape[len(indices):]
        require(found == values.shape and values.dtype is self.dtype, f"can't put {values.shape} at {found}")
        return self

    def copy_(self, source):
        require(source.shape == self.shape and source.dtype is self.dtype, "operands differ")
        return self

    def __getitem__(self, keys):
        keys = keys if isinstance(keys, tuple) else (keys,)
        if any(key is Ellipsis for key in keys):
            at = [key is Ellipsis for key in keys].index(True)
            keys = (*keys[:at], *[slice(None)] * (len(self.shape) - len(keys) + 1), *keys[at + 1:])
        shape, strides, at, dense = [], [], 0, False
        for key in keys:
            if key is None:
                shape, strides = [*shape, 1], [*strides, 0]
                continue
            if isinstance(key, Tensor):
                require(key.dtype is int64, "an index that versions of torch refuse")
                shape, strides, dense = [*shape, *key.shape], [*strides, *key.shape], True
            else:
                shape, strides = [*shape, len(range(*key.indices(self.shape[at])))], [*strides, self.strides[at] * (key.step or 1)]
            at += 1
        return Tensor([*shape, *self.shape[at:]], self.dtype, None if dense else (*strides, *self.strides[at:]))

    def __setitem__(self, keys, source):
        self[keys].copy_(source)

    def __matmul__(self, other):
        require(self.shape[1] == other.shape[0] and self.dtype == other.dtype, "operands differ")
        return Tensor((self.shape[0], other.shape[1]), self.dtype)


@dataclasses.dataclass(frozen=True)
class Element:
    name: str
    itemsize: int


float32, float16, bfloat16 = Element("float32", 4), Element("float16", 2), Element("bfloat16", 2)
bool = Element("bool", 1)
float8_e4m3fn, float8_e5m2 = Element("float8_e4m3fn", 1), Element("float8_e5m2", 1)
int8, uint8, int32, int64 = Element("int8", 1), Element("uint8", 1), Element("int32", 4), Element("int64", 8)
refused_rows = set()  # numbers of rows that _scaled_mm refuses besides
steps_of_lines = 4  # to which a line of scales of 128 x 128 is padded


def rand(*sizes, device, dtype):
    return Tensor(sizes, dtype)


randn = rand


def randint(low, high, sizes=None, device=None, dtype=None):
    low, high, sizes = (low, high, sizes) if sizes else (0, low, high)
    dtype = dtype or int64
    limits = {int8: (-128, 128), uint8: (0, 256), int32: (-2 ** 31, 2 ** 31), int64: (-2 ** 63, 2 ** 63)}[dtype]
    require(limits[0] <= low < high <= limits[1], "out of range")
    return Tensor(sizes, dtype)


def arange(count, device, dtype=None):
    return Tensor([count], dtype or int64)


def zeros(*sizes, device, dtype):
    return Tensor(sizes, dtype)


def empty_like(x, dtype=None):
    return Tensor(x.shape, dtype or x.dtype)


ones_like = empty_like


def tensor(values, device, dtype):
    shape, inner = [], values
    while isinstance(inner, list):
        shape, inner = [*shape, len(inner)], inner[0]
    made = Tensor(shape, dtype)
    made.values = values
    return made


def softmax(x, _):
    return x


def argmax(x, _):
    return Tensor(x.shape[:-1], int64)


def logsumexp(x, at):
    return x.sum(at)


def cat(tensors, _):
    require(len({one.dtype for one in tensors}) == 1, "types differ")
    return Tensor((*tensors[0].shape[:-1], sum(one.shape[-1] for one in tensors)), tensors[0].dtype)


def searchsorted(line, values, right, out_int32):
    require(line.dtype is values.dtype and right and out_int32, "types differ")
    return Tensor(values.shape, int32)


def mm(x, w):
    return x @ w


def addmm(residual, x, w):
    require(residual.shape == (x @ w).shape and residual.dtype is x.dtype, "operands differ")
    return residual


def bmm(x, w):
    require(x.shape[0] == w.shape[0] and x.shape[2] == w.shape[1] and x.dtype is w.dtype, "operands differ")
    return Tensor((*x.shape[:2], w.shape[2]), x.dtype)


def multinomial(x, count):
    return Tensor((x.shape[0], count), int64)


def stack(tensors, _):
    return Tensor((*tensors[0].shape, len(tensors)), tensors[0].dtype)


def compile(function, dynamic):
    return function


def forms(mat, scale):
    """The forms that scales have. mat and scale have the rows or columns that share scales first."""
    rows, steps, blocks = mat.shape[0], -(-mat.shape[1] // 128), -(-mat.shape[0] // 128)
    line = -(-steps // steps_of_lines) * steps_of_lines
    found = {"tensor"} if math.prod(scale.shape) == 1 else set()
    if scale.shape == (rows, 1):
        found.add("row")
    if scale.shape == (rows, steps) and (rows == 1 or scale.strides[0] == 1) and (steps == 1 or scale.strides[1] == rows):
        found.add("1x128")
    if scale.shape == (blocks, steps) and (blocks == 1 or scale.strides[0] == line) and (steps == 1 or scale.strides[1] == 1):
        found.add("128x128")
    return found


def _scaled_mm(x, w, scale_x, scale_w, out_dtype):
    require(x.dtype is w.dtype is float8_e4m3fn and x.shape[1] == w.shape[0], "operands differ")
    require(x.strides == (x.shape[1], 1) and w.strides == (1, w.shape[0]), "only row-major times column-major")
    require(x.shape[1] % 16 == 0 and w.shape[1] % 16 == 0, "must be divisible by 16")
    require(x.shape[0] not in refused_rows, "CUBLAS_STATUS_NOT_SUPPORTED")
    of_x, of_w = forms(x, scale_x), forms(w.t(), scale_w.t() if len(scale_w.shape) == 2 else scale_w)
    require(any(one in of_x and other in of_w for one, other in (("tensor", "tensor"), ("row", "row"), ("1x128", "128x128"))),
            f"Invalid scaling configuration {of_x} {of_w}")
    return Tensor((x.shape[0], w.shape[1]), out_dtype)


def _int_mm(x, w):
    require(x.dtype is w.dtype is int8 and x.shape[1] == w.shape[0], "operands differ")
    require(x.shape[0] > 16 and x.shape[1] % 8 == 0 and w.shape[1] % 8 == 0, "rows above 16, multiples of 8")
    return Tensor((x.shape[0], w.shape[1]), int32)


def grouped(x, w, offs):
    require(x.shape[1] == w.shape[1] and offs.dtype is int32 and offs.shape == w.shape[:1], "operands differ")
    values = getattr(offs, "values", [x.shape[0]])
    require(values == sorted(values) and values[-1] == x.shape[0], "offsets")
    require(w.strides[1:] == (1, w.shape[1]), "Expected mat2 to be transposed")


def _grouped_mm(x, w, offs):
    grouped(x, w, offs)
    require(x.dtype is w.dtype is bfloat16, "falls back to a loop")
    return Tensor((x.shape[0], w.shape[2]), x.dtype)


def _scaled_grouped_mm(x, w, scale_x, scale_w, offs, out_dtype):
    grouped(x, w, offs)
    require(x.dtype is w.dtype is float8_e4m3fn and out_dtype is bfloat16, "only e4m3 to bf16")
    require(x.shape[1] % 16 == 0 and w.shape[2] % 16 == 0, "must be divisible by 16")
    require(scale_x.shape == x.shape[:1] and scale_w.shape == (w.shape[0], w.shape[2]), "one scale for each row")
    return Tensor((x.shape[0], w.shape[2]), out_dtype)


def _convert_weight_to_int4pack(codes, tiles):
    require(codes.dtype is uint8 and codes.shape[1] * 2 % (tiles * 16) == 0, "whole tiles")
    return Tensor((-(-codes.shape[0] // 8), codes.shape[1] * 2 // (tiles * 16), 32, tiles // 2), int32)


def _weight_int4pack_mm(x, packed, group, scales):
    n, k = packed.shape[0] * 8, x.shape[1]
    require(x.dtype is bfloat16 and scales.dtype is bfloat16, "must be bf16")
    require(group in (32, 64, 128, 256) and packed.shape[1] * packed.shape[3] * 32 == k, "whole tiles")
    require(scales.shape == (k // group, n, 2), "a scale and a zero for each group")
    return Tensor((x.shape[0], n), x.dtype)


_dynamo = types.SimpleNamespace(reset=lambda: None)
ops = types.SimpleNamespace(aten=types.SimpleNamespace(_convert_weight_to_int4pack=_convert_weight_to_int4pack,
                                                       _weight_int4pack_mm=_weight_int4pack_mm))

def norm(x, size, *weights):
    require(size == x.shape[-len(size):], "sizes differ")
    require(all(one.shape == size and one.dtype is x.dtype for one in weights if isinstance(one, Tensor)), "weights differ")
    return x


def scaled_dot_product_attention(q, k, v, attn_mask=None, is_causal=False, scale=None, enable_gqa=False):
    """Backends are not told apart: a head's keys are as long as its queries, and masks have q's type."""
    require(k.shape[:3] == v.shape[:3] and q.shape[0] == k.shape[0] and q.shape[3] == k.shape[3], "operands differ")
    require(q.shape[1] == k.shape[1] or enable_gqa and q.shape[1] % k.shape[1] == 0, "heads differ")
    if attn_mask is not None:
        require(attn_mask.dtype is q.dtype and not is_causal, "a mask of another type")
        sizes = (*q.shape[:3], k.shape[2])
        require(all(one in (1, size) for one, size in zip(attn_mask.shape, sizes, strict=True)), "a mask of other sizes")
    return Tensor((*q.shape[:3], v.shape[3]), q.dtype)


nn = types.SimpleNamespace(functional=types.SimpleNamespace(
    silu=lambda x: x, gelu=lambda x, approximate: x, rms_norm=norm, layer_norm=norm,
    embedding=lambda ids, table: Tensor((*ids.shape, table.shape[1]), table.dtype),
    scaled_dot_product_attention=scaled_dot_product_attention))
SDPBackend = types.SimpleNamespace(FLASH_ATTENTION=1, CUDNN_ATTENTION=2, EFFICIENT_ATTENTION=3)


def create_block_mask(seen, batch, heads, queries, kv, device):
    """Calls the function once, with an index of each kind."""
    seen(*(Tensor([1], int64) for _ in range(4)))
    return batch, queries, kv


def flex_attention(q, k, v, block_mask, **options):
    require(block_mask == (q.shape[0], q.shape[2], k.shape[2]), "a mask of other sizes")
    return scaled_dot_product_attention(q, k, v, **options)


def installed():
    """What makes `from torch.nn.attention import …` find the replacement: for unittest.mock.patch.dict(sys.modules, …)."""
    attention = types.SimpleNamespace(SDPBackend=SDPBackend, sdpa_kernel=lambda _: contextlib.nullcontext())
    flex = types.SimpleNamespace(create_block_mask=create_block_mask, flex_attention=flex_attention)
    return {"torch": types.SimpleNamespace(), "torch.nn": types.SimpleNamespace(), "torch.nn.attention": attention,
            "torch.nn.attention.flex_attention": flex}
