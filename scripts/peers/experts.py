"""Peers of operations of mixtures of experts.

`experts` has two: gathered, a compiled function that reads the matrices of each token's experts and adds products up, as
gpt-fast does, and _grouped_mm, which sorts tokens by experts and multiplies groups of rows.
"""

import functools

from .groups import different_experts
from .quantized import Quantized


class Experts(Quantized):
    """As in Floating."""

    def experts_of_tokens(self, d):
        return self.torch.tensor(different_experts(d["tokens"], d["experts"], d["top_k"]), device=self.device,
                                 dtype=self.torch.int32)

    def numbers(self, count, dtype=None):
        return self.torch.arange(count, device=self.device, dtype=dtype or self.torch.int32)

    def route(self, d, a, dtype):
        tokens, experts, top_k, scale = d["tokens"], d["experts"], d["top_k"], float(a.get("scale", 1))
        groups, top_groups = int(a.get("groups", 1)), int(a.get("top_groups", 1))
        biased, sigmoid, renormalised = a.get("bias") == "expert", a.get("score") == "sigmoid", a.get("renormalise") != "no"
        logits, bias = self.tensor(tokens, experts, dtype=dtype), self.scales(experts)

        def among_groups(keys):
            of_groups = keys.view(tokens, groups, experts // groups)
            best = of_groups.topk(2, -1)[0].sum(-1) if biased else of_groups.amax(-1)
            chosen = best.topk(top_groups, -1)[1]
            left_out = self.torch.ones_like(best, dtype=self.torch.bool).scatter(1, chosen, False)
            return of_groups.masked_fill(left_out.unsqueeze(-1), float("-inf")).view(tokens, experts)

        def run(logits, bias):
            if not (biased or sigmoid) and renormalised and groups == 1:
                largest, ids = logits.topk(top_k, -1)
                return ids.to(self.torch.int32), self.torch.softmax(largest.float(), -1) * scale
            scores = logits.float().sigmoid() if sigmoid else self.torch.softmax(logits.float(), -1)
            keys = scores + bias if biased else scores
            ids = (among_groups(keys) if groups > 1 else keys).topk(top_k, -1)[1]
            weights = scores.gather(-1, ids)
            weights = weights / weights.sum(-1, keepdim=True) if renormalised else weights
            return ids.to(self.torch.int32), weights * scale
        return self.both(run, logits, bias)

    def sort_rows(self, x, ids, every, numbers):
        """Returns rows of x in the order of experts, the row after each expert's last, and the row of each assignment."""
        of_experts, order = ids.reshape(-1).sort(stable=True)
        ends = self.torch.searchsorted(of_experts, every, right=True, out_int32=True)
        places = self.torch.empty_like(numbers).scatter(0, order, numbers)
        return x[order // ids.shape[1]], ends, places.view(ids.shape)

    def permute(self, d, a, dtype):
        if d.get("capacity", 0) or a:
            return []
        x, ids = self.tensor(d["tokens"], d["dim"], dtype=dtype), self.experts_of_tokens(d)
        return self.both(self.sort_rows, x, ids, self.numbers(d["experts"]), self.numbers(d["tokens"] * d["top_k"]))

    def add_rows(self, y, places, weights):
        return (y[places].float() * weights.unsqueeze(-1)).sum(1).to(y.dtype)

    def unpermute(self, d, a, dtype):
        y, weights = self.tensor(d["rows"], d["dim"], dtype=dtype), self.scales(d["tokens"], d["top_k"])
        places = self.integers(0, d["rows"], d["tokens"], d["top_k"], dtype=self.torch.int64)
        return self.both(self.add_rows, y, places, weights)

    def matrices(self, d, a, lines, k, dtype):
        """Returns the matrices of all experts, and the function that makes numbers of those of each token's experts."""
        experts, of_tokens = d["experts"], (d["tokens"], d["top_k"], lines)
        if a.get("weights", "dense") != "dense":
            return self.weights(a, experts, lines, k=k, dtype=dtype)[1], self.decoder(a, *of_tokens, k=k, dtype=dtype)
        if "scales" not in a:
            return [self.tensor(experts, lines, k, dtype=dtype)], lambda matrix: matrix
        high, wide = {"tensor": (lines, k), "row": (1, k), "block": (128, 128)}[a["scales"]]
        scales = self.scales(experts, lines // high, k // wide)

        def decode(codes, scales):
            blocks = codes.view(*of_tokens[:2], lines // high, high, k // wide, wide).float()
            return (blocks * scales.unsqueeze(3).unsqueeze(5)).view(*of_tokens, k)
        return [self.fp8(experts, lines, k), scales], decode

    def experts(self, d, a, dtype):
        form, scales = a.get("weights", "dense"), a.get("scales", "none")
        whole = scales != "block" or d["dim"] % 128 == d["hidden"] % 128 == 0
        if form not in ("dense", "int4", "int8") or a.get("format", "e4m3") != "e4m3" or not whole:
            return []  # neither blocks of GGUF files nor mxfp4
        x, ids, weights = (self.tensor(d["tokens"], d["dim"], dtype=dtype), self.experts_of_tokens(d),
                           self.scales(d["tokens"], d["top_k"]))
        gate_up, decode_gate_up = self.matrices(d, a, 2 * d["hidden"], d["dim"], dtype)
        down, decode_down = self.matrices(d, a, d["dim"], d["hidden"], dtype)
        makers = [functools.partial(self.gathered, d, (x, ids.long(), weights), gate_up, decode_gate_up, down, decode_down)]
        if form == "dense" and scales == "none" and dtype == self.torch.bfloat16:
            makers.append(functools.partial(self.grouped_experts, d, (x, ids, weights), gate_up[0], down[0]))
        return self.all_of(makers)

    def gathered(self, d, tokens, gate_up, decode_gate_up, down, decode_down):
        hidden, parts, dtype = d["hidden"], len(gate_up), self.torch.float32

        def products(matrices, x):
            return (matrices * x.unsqueeze(2)).sum(-1, dtype=dtype)

        def run(x, ids, weights, *operands):
            of_ids = [operand[ids] for operand in operands]
            gates = products(decode_gate_up(*of_ids[:parts]), x.unsqueeze(1))
            inner = self.functional.silu(gates[..., :hidden]) * gates[..., hidden:]
            return (products(decode_down(*of_ids[parts:]), inner) * weights.unsqueeze(-1)).sum(1).to(x.dtype)
        compiled = self.compiled(run)
        return [("torch.compile gathered", lambda: compiled(*tokens, *gate_up, *down))]

    def grouped_experts(self, d, tokens, gate_up, down):
        hidden = d["hidden"]

        def run(x, ids, weights, gate_up, down, every, numbers):
            rows, ends, places = self.sort_rows(x, ids, every, numbers)
            gates = self.torch._grouped_mm(rows, gate_up.transpose(1, 2), offs=ends)
            inner = self.functional.silu(gates[:, :hidden]) * gates[:, hidden:]
            return self.add_rows(self.torch._grouped_mm(inner, down.transpose(1, 2), offs=ends), places, weights)
        numbers = self.numbers(d["tokens"] * d["top_k"], self.torch.int64)  # as places are indices here
        return self.both(run, *tokens, gate_up, down, self.numbers(d["experts"]), numbers, name=" _grouped_mm")
