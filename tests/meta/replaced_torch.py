"""A replacement of torch for scripts/measure_peers.py: tensors without elements, and calls that check their operands as
torch 2.11 does on an NVIDIA GPU."""

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

    __add__ = __sub__ = __mul__ = __truediv__ = __and__ = __rshift__ = __gt__ = like
    abs = round = rsqrt = square = cumsum = masked_fill = like

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

    def unsqueeze(self, _):
        return Tensor((*self.shape, 1), self.dtype)

    def reshape(self, *shape):
        known = -math.prod(shape)
        shape = [math.prod(self.shape) // known if extent == -1 else extent for extent in shape]
        require(math.prod(shape) == math.prod(self.shape), f"can't make {shape} of {self.shape}")
        return Tensor(shape, self.dtype)

    def amax(self, _, keepdim):
        return Tensor((*self.shape[:-1], 1), self.dtype)

    def mean(self, _, keepdim):
        return self.amax(_, keepdim)

    def sort(self, _, descending):
        return self, Tensor(self.shape, int64)

    def gather(self, _, index):
        return Tensor(index.shape, self.dtype)

    def __getitem__(self, slices):
        shape = [len(range(*one.indices(extent))) for one, extent in zip(slices, self.shape)]
        return Tensor(shape, self.dtype, self.strides)

    def __matmul__(self, other):
        require(self.shape[1] == other.shape[0] and self.dtype == other.dtype, "operands differ")
        return Tensor((self.shape[0], other.shape[1]), self.dtype)


@dataclasses.dataclass(frozen=True)
class Element:
    name: str
    itemsize: int


float32, float16, bfloat16 = Element("float32", 4), Element("float16", 2), Element("bfloat16", 2)
float8_e4m3fn, float8_e5m2 = Element("float8_e4m3fn", 1), Element("float8_e5m2", 1)
int8, uint8, int32, int64 = Element("int8", 1), Element("uint8", 1), Element("int32", 4), Element("int64", 8)
refused_rows = set()  # numbers of rows that _scaled_mm refuses besides
steps_of_lines = 4  # to which a line of scales of 128 x 128 is padded


def rand(*sizes, device, dtype):
    return Tensor(sizes, dtype)


randn = rand


def randint(low, high, sizes, device, dtype):
    limits = {int8: (-128, 128), uint8: (0, 256)}[dtype]
    require(limits[0] <= low < high <= limits[1], "out of range")
    return Tensor(sizes, dtype)


def tensor(values, device, dtype):
    made = Tensor([len(values)], dtype)
    made.values = values
    return made


def softmax(x, _):
    return x


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
    require(x.shape[1] == w.shape[1] and offs.dtype is int32 and len(offs.values) == w.shape[0], "operands differ")
    require(offs.values == sorted(offs.values) and offs.values[-1] == x.shape[0], "offsets")
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
nn = types.SimpleNamespace(functional=types.SimpleNamespace(silu=lambda x: x))
