"""Peers of operations that make other weights of quantised ones."""

from .quantized import Quantized

AWQ_SHIFTS = [0, 16, 4, 20, 8, 24, 12, 28]  # of a word's rows


class Packed(Quantized):
    """As in Floating."""

    def dequantize(self, d, a, dtype):
        if not self.has_weights_of_torch(a):
            return []
        dequantise, operands = self.weights(a, d["rows"], k=d["cols"], dtype=dtype)
        return self.both(dequantise, *operands)

    def repack_weights(self, d, a, dtype):
        packing, zeros = a.get("packing", "awq"), a.get("zeros") == "groups"
        if a.get("weights", "int4") != "int4" or "order" in a:
            return []
        n, k, groups, awq = d["n"], d["k"], d["k"] // int(a.get("group", 128)), packing == "awq"
        weights = self.words(*((k, n // 8) if awq else (k // 8, n)))
        scales, zero_points = self.scales(groups, n, dtype=dtype), self.words(groups, n // 8)
        shifts = self.torch.tensor(AWQ_SHIFTS if awq else [4 * i for i in range(8)], device=self.device, dtype=self.torch.int32)

        def integers(words, shifts):
            return ((words.unsqueeze(-1) >> shifts) & 15).to(self.torch.uint8).reshape(-1, n)

        def run(weights, scales, zero_points, shifts):
            if awq:
                lines = integers(weights, shifts)
                rows = (lines[0::2] | (lines[1::2] << 4)).t().contiguous()
            else:
                rows = weights.t().contiguous()  # whose words are those of rows
            points = integers(zero_points, shifts) + (1 if packing == "gptq" else 0) if zeros else None
            return rows, scales.t().contiguous(), points.t().contiguous() if zeros else None
        return self.both(run, weights, scales, zero_points, shifts)

    def words(self, *sizes):
        return self.integers(-2 ** 31, 2 ** 31, *sizes, dtype=self.torch.int32)
