"""Protects: greta.torch.patch() replaces a model's modules, and fuses the decoder layers of a Llama, so that it
computes the same, and undoes that. On CPU tensors and hip-host."""

import collections
import copy
import sys
import types
import unittest

import tiny_llama
import torch
from python_case import greta
from torch_case import Torch

import greta.torch
from greta.torch import attention, fallbacks


class TinyRMSNorm(torch.nn.Module):
    """As LlamaRMSNorm."""

    def __init__(self, size):
        super().__init__()
        self.weight, self.variance_epsilon = torch.nn.Parameter(torch.rand(size)), 1e-6

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon))


class TinyMLP(torch.nn.Module):
    """As LlamaMLP."""

    def __init__(self, size, wide):
        super().__init__()
        self.gate_proj, self.up_proj = (torch.nn.Linear(size, wide, bias=False) for _ in range(2))
        self.down_proj, self.act_fn = torch.nn.Linear(wide, size, bias=False), torch.nn.SiLU()

    def forward(self, x):
        return self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))


class TorchModules(Torch):
    def model(self):
        return torch.nn.Sequential(torch.nn.Linear(16, 32), TinyRMSNorm(32), TinyMLP(32, 48), TinyRMSNorm(32),
                                   torch.nn.Linear(32, 8)).eval()

    def test_patched_models_compute_the_same_and_can_be_restored(self):
        model, x = self.model(), torch.randn(3, 16)
        names = set(model.state_dict())
        with torch.no_grad():
            expected = model(x)
            patched = greta.torch.patch(model)
            self.assertEqual((patched.linear, patched.rms_norm, patched.mlp, patched.attention), (5, 2, 1, False))
            self.near(model(x), expected, 1e-5)
            self.assertEqual(set(model.state_dict()), names)
            self.assertTrue(any("epilogue=swiglu" in one for one in self.ran()))
            self.assertEqual(len(self.ran()), 5)  # two equal norms, a product for gates and up
            patched.undo()
            self.assertEqual(patched.linear, 0)
            self.assertTrue(torch.equal(model(x), expected))
        self.assertFalse(any(type(one).__module__.startswith("greta") for one in model.modules()))

    def test_parts_can_be_chosen(self):
        patched = greta.torch.patch(self.model(), linear=False, mlp=False)
        self.assertEqual((patched.linear, patched.rms_norm, patched.mlp), (0, 2, 0))
        self.assert_refused(greta.InvalidArgumentError, "ReLU has no modules that GRETA replaces",
                            greta.torch.patch, torch.nn.ReLU())

    def test_attention_of_transformers_interface(self):
        q, k = torch.randn(2, 4, 1, 16), torch.randn(2, 2, 9, 16)
        module = types.SimpleNamespace(is_causal=True)
        y, weights = attention.attention_forward(module, q, k, k, None, scaling=0.25)
        self.assertIsNone(weights)
        self.near(y, fallbacks.attention_of_torch(q.transpose(1, 2), k, k, None, 0.25, False), 1e-5)
        lengths = torch.tensor([5, 5], dtype=torch.int32)
        y, _ = attention.attention_forward(module, q, k, k, lengths.reshape(2, 1, 1, 1), scaling=0.25)
        self.near(y, fallbacks.attention_of_torch(q.transpose(1, 2), k, k, lengths, 0.25, False), 1e-5)

    def test_lengths_are_masks_of_caches_alone(self):
        causal, given = object(), {"batch_size": 2, "q_length": 3, "q_offset": 4, "kv_length": 16, "device": "cpu"}
        lengths = attention.lengths_of(causal, given)
        self.assertEqual((lengths.flatten().tolist(), lengths.dtype, tuple(lengths.shape)),
                         ([7, 7], torch.int32, (2, 1, 1, 1)))
        self.assertEqual(attention.lengths_of(causal, {**given, "q_offset": torch.tensor(9)}).flatten().tolist(),
                         [12, 12])
        ones = torch.ones(2, 7, dtype=torch.bool)
        self.assertIsNotNone(attention.lengths_of(causal, {**given, "attention_mask": ones}))
        padded = torch.tensor([[False] + [True] * 6, [True] * 7])
        for others in ({"kv_length": 7}, {"attention_mask": padded}, {"local_size": 4}, {"kv_offset": 1},
                       {"mask_function": object()}):
            self.assertIsNone(attention.lengths_of(causal, {**given, **others}), others)


class TorchLayers(Torch):
    """Fused decoder layers of a Llama, on a model with the names of transformers' modules."""

    def setUp(self):
        super().setUp()
        names = ("transformers", "transformers.masking_utils")
        self.addCleanup(lambda: [sys.modules.pop(name, None) for name in names])
        tiny_llama.as_transformers()

    def generated(self, model, cache):
        """Returns the logits of a prompt of 12 tokens, then of two more and of one more."""
        ids = torch.arange(15)[None] * 7 % 50
        parts = [model(ids[:, begin:end], cache, begin) for begin, end in ((0, 12), (12, 14), (14, 15))]
        return torch.cat(parts, 1)

    def test_logits_are_the_same(self):
        for bias in (False, True):
            model = tiny_llama.LlamaForCausalLM(bias).eval()
            names, values = list(model.state_dict()), [one.clone() for one in model.state_dict().values()]
            with torch.no_grad():
                expected = self.generated(model, tiny_llama.DynamicCache())
                patched = greta.torch.patch(model)
                self.assertEqual((patched.layers, patched.mlp, patched.attention), (2, 2, True))
                for cache in (tiny_llama.DynamicCache, tiny_llama.StaticCache):
                    self.near(self.generated(model, cache()), expected, 2e-4)
                self.near(model(torch.tensor([[3, 4], [5, 6]])), torch.cat([
                    model(torch.tensor([[3, 4]])), model(torch.tensor([[5, 6]]))]), 2e-4)
                self.assertEqual(list(model.state_dict()), names)
                copied = copy.deepcopy(model)
                patched.undo()
                self.assertTrue(torch.equal(self.generated(model, tiny_llama.DynamicCache()), expected))
                self.near(self.generated(copied, tiny_llama.StaticCache()), expected, 2e-4)
            self.assertTrue(all(torch.equal(*two) for two in zip(model.state_dict().values(), values)))
            self.assertEqual(len({one.storage().data_ptr() for one in model.parameters()}),
                             len(list(model.parameters())))
            self.assertIs(type(model.layers[0]), tiny_llama.LlamaDecoderLayer)

    def test_launches_of_a_token(self):
        model = tiny_llama.LlamaForCausalLM().eval()
        greta.torch.patch(model)
        with torch.no_grad(), greta.torch.capture(device="cpu") as captured:
            model(torch.tensor([[3, 4]]))
        self.assertEqual(captured.refused, {})
        self.assertTrue(any('x_stride="128"' in one for one in captured.counts))  # parts of the tokens of one product
        with torch.no_grad(), greta.torch.capture(device="cpu") as captured:
            model(torch.tensor([[3]]))
        kinds = collections.Counter(problem.split(" m=")[0].split(" batch=")[0] for problem in captured.counts.elements())
        self.assertEqual(sum(kinds.values()), 2 * 7 + 2)  # and the last norm and product
        self.assertEqual(kinds["gemm dtype=f32 out=f32 layout=nt prologue=rmsnorm epsilon=1e-06"], 2)
        self.assertEqual(kinds["gemm dtype=f32 out=f32 layout=nt epilogue=swiglu prologue=rmsnorm epsilon=1e-06"], 2)
        self.assertEqual(kinds["gemm dtype=f32 out=f32 layout=nt epilogue=residual"], 4)
        self.assertEqual(sum(one.startswith("rope") for one in captured.counts.elements()), 4)

    def test_changed_parameters_stay_joined(self):
        model, other = (tiny_llama.LlamaForCausalLM(True).eval() for _ in range(2))
        greta.torch.patch(model)
        ids = torch.arange(5)[None]
        with torch.no_grad():
            model.load_state_dict(other.state_dict())
            self.near(model(ids), other(ids), 2e-4)
            model.half()
            model.float()
            other.half()
            other.float()
            self.near(model(ids), other(ids), 2e-4)
            for one in (model, other):
                one.layers[0].self_attn.k_proj.weight.mul_(2)
            self.near(model(ids), other(ids), 2e-4)

    def test_gradients_and_other_implementations_use_the_modules(self):
        model = tiny_llama.LlamaForCausalLM().eval()
        ids = torch.arange(5)[None]
        expected = model(ids).detach()
        patched = greta.torch.patch(model)
        model(ids).sum().backward()
        self.assertGreater(float(model.layers[0].self_attn.k_proj.weight.grad.abs().sum()), 0)
        model.config._attn_implementation = "eager"
        with torch.no_grad():
            model.rotary_emb.__class__ = tiny_llama.LlamaRotaryEmbedding
            self.near(model(ids), expected, 2e-4)
        self.assertEqual(patched.layers, 2)

    def test_layers_with_hooks_or_other_parts_are_not_fused(self):
        model = tiny_llama.LlamaForCausalLM(layers=3).eval()
        model.layers[0].self_attn.o_proj.register_forward_hook(lambda *_: None)
        model.layers[1].self_attn.q_norm = tiny_llama.LlamaRMSNorm(16)
        ids = torch.arange(5)[None]
        with torch.no_grad():
            expected = model(ids)
            patched = greta.torch.patch(model)
            self.assertEqual(patched.layers, 1)
            self.near(model(ids), expected, 2e-4)


if __name__ == "__main__":
    unittest.main()
