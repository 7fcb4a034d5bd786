"""Protects: the methods of Operations, their arguments and their defaults are those of the library, documented and typed."""
import inspect
import unittest

from python_case import Case, greta

from greta import _abi


class Signatures(Case):
    """Methods, their arguments and their defaults are those of greta.h."""

    SHARED = {"greta_kv_update_pages": "kv_update", "greta_quantized_experts": "experts",
              "greta_scaled_experts": "experts",
              "greta_quantized_gemm_fused": "quantized_gemm",
              "greta_quantize_layernorm": "quantize", "greta_repack_to_panels": "repack_weights",
              "greta_mx_gemm": "scaled_gemm", "greta_dequantize_panels": "dequantize"}

    def operations(self):
        first = _abi.HANDLE
        for name, (_, arguments) in _abi.RUNTIME.items():
            if len(arguments) > 2 and arguments[:2] == [first, first] and "tensor" not in name \
                    and "queue" not in name and "pipeline" not in name:
                yield name
        yield "greta_run"

    def test_every_operation_is_a_documented_method_with_types(self):
        names = {self.SHARED.get(name, name.removeprefix("greta_")) for name in self.operations()}
        self.assertGreater(len(names), 18)
        methods = {name for name in dir(greta.Operations) if not name.startswith("_")}
        self.assertEqual(names, methods)
        for name in methods:
            method = getattr(greta.Operations, name)
            self.assertTrue(method.__doc__, name)
            for parameter in list(inspect.signature(method).parameters.values())[1:]:
                self.assertIsNot(parameter.annotation, parameter.empty, f"{name} {parameter}")

    def public_functions(self):
        for name in greta.__all__:
            thing = getattr(greta, name)
            if inspect.isfunction(thing):
                yield name, thing
            if not inspect.isclass(thing) or issubclass(thing, BaseException):
                continue
            for base in thing.__mro__[:-1]:
                for key, member in vars(base).items():
                    member = member.fget if isinstance(member, property) else member
                    if inspect.isfunction(member) and (key == "__init__" or not key.startswith("_")):
                        yield f"{name}.{key}", member

    def test_all_that_is_public_is_documented_and_typed(self):
        functions = dict(self.public_functions())
        self.assertGreater(len(functions), 60)
        for name, function in functions.items():
            with self.subTest(name):
                self.assertTrue(function.__doc__ or name.endswith("__init__"))
                signature = inspect.signature(function)
                parameters = [one for one in signature.parameters.values() if one.name != "self"]
                self.assertNotIn(inspect.Parameter.empty, [one.annotation for one in parameters])
                if not name.endswith("__init__"):
                    self.assertIsNot(signature.return_annotation, inspect.Signature.empty)

    def test_options_and_defaults_are_the_library_s(self):
        library = greta._library.runtime_library()
        for kind, names in {"gemm": ["gemm"], "softmax": ["softmax"], "attention": ["attention"],
                            "latent_attention": ["latent_attention"],
                            "quantized_grouped_gemm": ["quantized_grouped_gemm"],
                            "rope_append": ["rope_append"], "norm": ["layernorm"]}.items():
            defaults = getattr(library, f"greta_{kind}_defaults")()
            for name in names:
                options = {key: one.default for key, one in inspect.signature(
                    getattr(greta.Operations, name)).parameters.items()
                    if one.kind is one.KEYWORD_ONLY}
                fields = [field for field, _ in defaults._fields_ if field != "size"]
                self.assertEqual(sorted(options), sorted(fields), name)
                for field in fields:
                    if not isinstance(options[field], str):
                        self.assertAlmostEqual(options[field] or 0, getattr(defaults, field) or 0)
                    else:
                        self.assertEqual(getattr(defaults, field), 0, field)


if __name__ == "__main__":
    unittest.main()
