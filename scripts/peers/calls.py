"""What peers of all operations share: operands, and calls of torch."""


def multiple(extent, step):
    """Returns the next multiple of step."""
    return -(-extent // step) * step


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
