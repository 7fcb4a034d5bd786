"""Protects: kernels in GLSL that somebody brings are tuned, verified and compiled, with references in the same
language or another, and what is wrong with one is said with its line."""
import json
import unittest

from described_case import DescribedCase


class DescribedGlsl(DescribedCase):
    def test_glsl_is_tuned_and_verified(self):
        self.know_ceilings("vulkan:0")
        result = self.run_tune("kernel", self.folder / "stencil.jsonc", "--height", "50", "--width",
                               "70", "--device", "vulkan:0", "--db", self.db, "--no-lock",
                               "--flush", "1", "--json", "--budget", "4")
        self.assertEqual(result.returncode, 0, result.stderr)
        report = json.loads(result.stdout)
        self.assertEqual(report["trials"], {"ok": 4, "total": 4})
        self.assertEqual(report["space"], {"cartesian": 32, "valid": 28})
        # All configurations, with parts of tiles.
        verified = self.verify_stencil("--device", "vulkan:0", "--sample", "28", "--json")
        self.assertEqual(verified.returncode, 0, verified.stderr)
        self.assertEqual(json.loads(verified.stdout)["variants"][0]["right"], 28)

    def test_glsl_has_all_types_scalars_and_several_launches(self):
        verified = self.run_tune("verify", self.folder / "all_types.jsonc", "--problems", "6",
                                 "--seed", "1", "--device", "vulkan:0", "--json")
        self.assertEqual(verified.returncode, 0, verified.stderr)
        self.assertEqual(json.loads(verified.stdout)["variants"],
                         [{"right": 6, "types": "i8 to f64", "variant": "described", "wrong": 0}])
        self.replace("all_types.comp", "+ double(h.v[i]);\n}\n\n#else", ";\n}\n\n#else")
        wrong = self.run_tune("verify", self.folder / "all_types.jsonc", "--n", "1000",
                              "--device", "vulkan:0")
        self.assertEqual(wrong.returncode, 1, wrong.stdout)
        self.assertIn("correctness: y: element", wrong.stderr)

    def test_glsl_that_is_wrong_is_found(self):
        self.replace("stencil.comp", "if (row < height && col < width) y.v", "y.v")
        result = self.verify_stencil("--device", "vulkan:0", "--sample", "2")
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertRegex(result.stderr, "correctness: (wrote|element)")

    def test_compile_errors_of_glsl_have_the_users_line(self):
        self.replace("stencil.comp", "return here + rate", "return hear + rate")
        result = self.verify_stencil("--device", "vulkan:0")
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertIn("compile: stencil/tiled: stencil.comp:19: 'hear' : undeclared identifier",
                      result.stderr)
        self.replace("stencil.comp", "return hear + rate", "return here + rate")
        self.replace("include/grid.glsl", "float v[]", "floot v[]")
        result = self.verify_stencil("--device", "vulkan:0")
        self.assertRegex(result.stderr, "include/grid.glsl:3: .*syntax error")
        self.replace("stencil.comp", "grid.glsl", "gird.glsl")
        self.assertIn("stencil.comp:4: there is no file gird.glsl",
                      self.complaint(self.folder / "stencil.jsonc"))

    def test_the_size_of_the_workgroup_must_be_that_of_the_description(self):
        self.replace("stencil.comp", "#if ENTRY_IS_tiled", "layout(local_size_x = 7) in;\n#if ENTRY_IS_tiled")
        result = self.verify_stencil("--device", "vulkan:0")
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertIn("'local_size' : cannot change previously set size", result.stderr)

    def test_kernels_and_references_in_different_languages(self):
        (self.folder / "naive.hip").write_text(
            "__device__ int inside(int i, int n) { return i < 0 ? 0 : i < n ? i : n - 1; }\n"
            "__global__ void naive(const float* x, float* y, int height, int width, float rate) {\n"
            "  const int col = blockIdx.x, row = blockIdx.y;\n"
            "  const auto at = [&](int r, int c) {\n"
            "    return x[inside(r, height) * width + inside(c, width)];\n  };\n"
            "  y[row * width + col] = at(row, col) + rate * (at(row, col - 1) + at(row, col + 1) +\n"
            "      at(row - 1, col) + at(row + 1, col) - 4 * at(row, col));\n}\n")
        self.replace("stencil.jsonc", '"entry": "naive"',
                     '"language": "hip", "source": "naive.hip", "entry": "naive"')
        result = self.verify_stencil("--device", "vulkan:0", "--sample", "3")
        self.assertEqual(result.returncode, 0, result.stderr)
        (self.folder / "naive.comp").write_text(
            "#version 450\n#extension GL_EXT_buffer_reference : require\n"
            "layout(buffer_reference, std430, buffer_reference_align = 4) buffer F { float v[]; };\n"
            "layout(push_constant) uniform Arguments { F a, b, c; int n; };\n"
            "void vector_add_naive() {\n  const int i = int(gl_GlobalInvocationID.x);\n"
            "  if (i < n) c.v[i] = a.v[i] + b.v[i];\n}\n")
        self.replace("vector_add.jsonc", '"entry": "vector_add_naive"',
                     '"language": "glsl", "source": "naive.comp", "entry": "vector_add_naive"')
        arguments = ["verify", self.file, "--n", "3000", "--device", "hip-host:0"]
        result = self.run_tune(*arguments, "--sample", "2")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.replace("naive.comp", "a.v[i] + b.v[i]", "a.v[i] - b.v[i]")
        self.assertEqual(self.run_tune(*arguments).returncode, 1)

    def test_glsl_is_compiled_to_spirv(self):
        spirv = self.folder / "stencil.spv"
        compiled = self.run_tune("compile", self.folder / "stencil.jsonc", "--arch", "spirv",
                                 "--code-object", spirv)
        self.assertEqual(compiled.returncode, 0, compiled.stderr)
        self.assertEqual(spirv.read_bytes()[:4], b"\x03\x02\x23\x07")
        result = self.run_tune("compile", self.folder / "stencil.jsonc", "--arch", "gfx942")
        self.refused(result, 2, "the device runs no glsl")


if __name__ == "__main__":
    unittest.main()
