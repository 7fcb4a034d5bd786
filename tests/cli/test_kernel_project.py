"""Protects: greta-db export --kernel. The projects are built with CMake and run; they must pass, and fail with a wrong
result or a wrong kernel."""
import os
import struct
import unittest

from cli_case import Case

CMAKE = os.environ["GRETA_CMAKE"]
HIP_HOST = os.environ["GRETA_HIP_HOST"]
# Several workgroups per row, with counters in a workspace; an output with gaps between rows; one that is also read.
ARGMAX = ["argmax", "--rows", "1", "--cols", "20000", "--variant", "split"]
SOFTMAX = ["softmax", "--rows", "5", "--cols", "70", "--y-stride", "80"]
GEMM = ["gemm", "--m", "33", "--n", "48", "--k", "40", "--dtype", "f16", "--beta", "0.5"]


class KernelProject(Case):
    known_devices = "hip-host:2"

    def tune(self, device, *words):
        result = self.run_tune(*words, "--device", device, "--db", self.db, "--budget", "1")
        self.assertEqual(result.returncode, 0, result.stderr)

    def export(self, folder, *words):
        result = self.run_db("export", "--kernel", folder, *words)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def build(self, folder, *options):
        build = folder / "build"
        for words in ([CMAKE, "-S", folder, "-B", build, f"-DCMAKE_LIBRARY_PATH={HIP_HOST}",
                       "-DCMAKE_CXX_FLAGS=-Wall -Wconversion -Wshadow -Werror", *options],
                      [CMAKE, "--build", build]):
            made = self.run_words(*map(str, words))
            self.assertEqual(made.returncode, 0, made.stdout + made.stderr)
        return str(build / "run")

    def test_kernels_of_two_platforms_are_built_run_and_checked(self):
        self.tune("hip-host:2", *ARGMAX)
        self.tune("hip-host:2", *SOFTMAX)
        self.tune("vulkan:0", *GEMM)
        folder = self.folder / "kernels"
        said = self.export(folder)
        self.assertIn("kernels/argmax_split.hip", said)
        projects = sorted(folder.iterdir())
        self.assertEqual(len(projects), 3)
        for project, options in zip(projects, ([], ["-DKERNELS_FROM_SOURCE=ON"], [])):
            program = self.build(project, *options)
            ran = self.run_words(program, "--runs", "3")
            self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
            self.assertIn("checked elements are within their bounds", ran.stdout)
            self.assertIn("median of 3 runs", ran.stdout)
            self.check_that_a_wrong_value_is_found(project, program)
        source = next((projects[1] / "kernels").glob("*.comp")).read_text()
        self.assertNotIn("#include", source)
        self.assertRegex(source, r"#define BM \d+")
        self.assertRegex((projects[1] / "README.md").read_text(), r"\| time \| .* ± ")
        self.check_refusals(projects[0])

    def check_that_a_wrong_value_is_found(self, project, program):
        (expected,) = (project / "data").glob("*.expected")
        bytes_of = expected.read_bytes()
        index, value, bound = struct.unpack("<Qdd", bytes_of[-24:])
        expected.write_bytes(bytes_of[:-24] + struct.pack("<Qdd", index, value + 2 * bound + 1, bound))
        ran = self.run_words(program)
        self.assertEqual(ran.returncode, 1, ran.stdout)
        self.assertIn(f"[{index}] is", ran.stdout)
        # A reference that expects any number has NaN within any bound.
        expected.write_bytes(bytes_of[:-24] + struct.pack("<Qdd", index, float("nan"), float("inf")))
        ran = self.run_words(program)
        self.assertEqual(ran.returncode, 0, ran.stdout)
        expected.write_bytes(bytes_of)

    def check_refusals(self, project):
        """A project is not replaced without --force, and other folders never are."""
        again = ["export", "--op", "argmax", "--kernel"]
        self.refused(self.run_db(*again, project), 2, str(project), "--force")
        self.assertEqual(self.run_db(*again, project, "--force").returncode, 0)
        self.refused(self.run_db(*again, self.folder), 2, "something other")
        self.refused(self.run_db(*again, self.db), 2, "not a folder")
        self.refused(self.run_db(*again, self.folder / "no" / "where"), 2, "--kernel", "no folder")
        new = self.folder / "new"
        self.refused(self.run_db("export", "--kernel", new, "argmax", "rows=4"), 2, "argmax rows=4")
        self.refused(self.run_db("export", "--kernel", new, "--ship"), 2, "--kernel", "--ship")
        self.refused(self.run_db("export", "argmax", "--ship", "--out", new), 2, "argmax", "--kernel")
        self.assertFalse(new.exists())
        self.assertIn("argmax", self.export(new, "argmax", "rows=1", "dtype=f32"))
        self.assertIn("softmax", self.export(self.folder / "gaps", "softmax", "y_stride=80"))
        self.refused(self.run_db("export", "--kernel", new, "softmx"), 2, "softmx", "softmax")
        self.refused(self.run_db("export", "--kernel", "gemm", "m=33"), 2, "m=33", "operation")
        self.refused(self.run_db("export", "--kernel", ""), 2, "--kernel")
        self.refused(self.run_db("export", "--kernel", new, "--force"), 2, str(new), "3 results")
        # Another problem in its place: no file of the first one is left.
        self.assertIn("gemm", self.export(new, "gemm", "--force"))
        self.assertEqual(list(new.rglob("*argmax*")) + list(new.glob("gpu_hip.cpp")), [])
        self.assertFalse(new.with_name("new.partial").exists())


if __name__ == "__main__":
    unittest.main()
