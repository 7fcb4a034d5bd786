"""What peers of all operations share: operands, and calls of torch."""

import sys


def multiple(extent, step):
    """Returns the next multiple of step."""
    return -(-extent // step) * step


def why(error):
    """Returns the first line of an error, some of which have no text."""
    return (str(error).splitlines() or [type(error).__name__])[0][:100]


def rotated(torch, style, x, cos, sin):
    """Returns the heads of x, of which halves or neighbours are pairs, rotated by the angles of each line."""
    half = x.shape[-1] // 2
    if style == "half":
        first, second = x[..., :half].float(), x[..., half:].float()
        return torch.cat((first * cos - second * sin, second * cos + first * sin), -1).to(x.dtype)
    first, second = x[..., 0::2].float(), x[..., 1::2].float()
    return torch.stack((first * cos - second * sin, second * cos + first * sin), -1).to(x.dtype).reshape(x.shape)


class Calls:
    def __init__(self, torch, device="cuda"):
        self.torch, self.functional, self.device = torch, torch.nn.functional, device

    def tensor(self, *sizes, dtype):
        return self.torch.randn(*sizes, device=self.device, dtype=dtype)

    def integers(self, low, high, *sizes, dtype):
        return self.torch.randint(low, high, sizes, device=self.device, dtype=dtype)

    def scales(self, *sizes, dtype=None):
        scales = self.torch.rand(*sizes, device=self.device, dtype=self.torch.float32) + 0.5
        return scales if dtype is None else scales.to(dtype)

    def heads(self, lines, count, dim, stride, dtype):
        """Returns heads of lines that are stride elements apart."""
        return self.tensor(lines, stride, dtype=dtype)[:, :count * dim].view(lines, count, dim)

    def table(self, positions, dim):
        """Returns cosines and sines of the angles of half a head at each position."""
        angles = self.torch.rand(positions, dim // 2, device=self.device, dtype=self.torch.float32)
        return angles.cos(), angles.sin()

    def compiled(self, function):
        self.torch._dynamo.reset()
        return self.torch.compile(function, dynamic=False)

    def both(self, function, *operands, name=""):
        """The function as it is, and compiled for these sizes."""
        compiled = self.compiled(function)
        return [("torch" + name, lambda: function(*operands)), ("torch.compile" + name, lambda: compiled(*operands))]

    def accepted(self, makers):
        """Returns the first list of peers whose first one torch accepts; the later ones pad more."""
        refused = None
        for make in makers:
            try:
                made = make()
                made[0][1]()
                return made
            except (RuntimeError, ValueError) as error:
                refused = error
        raise refused

    def all_of(self, makers):
        """Returns the peers of all makers. One that fails does not take the others with it."""
        made = []
        for make in makers:
            try:
                made += make()
            except Exception as error:
                print(f"{getattr(make, 'func', make).__name__}: {why(error)}", file=sys.stderr)
        return made
