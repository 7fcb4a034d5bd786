"""Protects: greta-tune kernel FILE tunes a kernel that somebody brings, in worker processes and with
its reference, and says in one line what is wrong with a file."""
import json
import re
import shlex
import shutil
import unittest

from cli_case import BENCH, SOURCE, Case
from described_case import DATA, DescribedCase


class DescribedKernels(DescribedCase):
    def test_a_winner_is_found_verified_and_stored(self):
        report = self.tuned("--budget", "6")
        self.assertEqual(report["problem"]["key"], "vector_add dtype=f32 out=f32 n=5000")
        self.assertEqual(report["space"], {"cartesian": 96, "valid": 84})
        self.assertEqual(report["trials"], {"ok": 6, "total": 6})
        names = [name for name, _ in report["winner"]["config"]["values"]]
        self.assertEqual(names, ["BLOCK", "ITEMS", "MODE", "UNROLL"])
        self.assertEqual(self.query("select count(*) from winners"), [(1,)])

    def test_a_default_that_constraints_reject_is_named(self):
        self.replace("vector_add.jsonc", '"UNROLL": false}', '"UNROLL": true}')
        notes = self.tuned("--budget", "2")["notes"]  # others are of times that drift, and so on
        (note,) = (note for note in notes if note.startswith("constraints"))
        self.assertRegex(note, r"^constraints reject all defaults of vector_add here, .*there is nothing to unroll; ")

    def test_wrong_results_never_win(self):
        self.replace("vector_add.cu", "c[at] = a[at] + b[at];\n  }", "c[at] = a[at];\n  }")
        report = self.tuned("--budget", "3", code=1)
        self.assertEqual(report["trials"], {"correctness": 3, "ok": 0, "total": 3})
        ((message,), *_) = self.query("select message from trials")
        self.assertIn(", expected ", message)

    def failure(self):
        """Verifies one configuration, which must fail, and returns what is said."""
        result = self.run_tune("verify", self.file, "--n", "5000", "--sample", "1", "--seed", "1", "--device",
                               "hip-host:0")
        self.assertNotEqual(result.returncode, 0, result.stdout)
        return result.stderr

    def test_inputs_must_stay_as_they_are(self):
        self.replace("vector_add.cu", "c[at] = a[at] + b[at];\n  }",
                     "c[at] = a[at] + b[at]; if (at == 7) ((float*)b)[at] = 9;\n  }")
        self.assertIn("wrote element 7 of the input b", self.failure())

    def test_what_the_reference_leaves_unwritten_is_no_result(self):
        self.replace("vector_add.cu", "if (at < n)", "if (at < n && at != 3)")
        self.assertRegex(self.failure(), r"reference leaves .*c")

    def test_arrays_in_files_must_have_the_operand_s_type(self):
        header = b"{'descr': '<i4', 'fortran_order': False, 'shape': (5000,), }".ljust(117) + b"\n"
        (self.folder / "a.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header +
                                            bytes(4 * 5000))
        self.replace("vector_add.jsonc", '"type": "f32", "shape": "n"},\n    {"name": "b"',
                     '"type": "f32", "shape": "n", "fill": {"file": "a.npy"}},\n    {"name": "b"')
        self.assertRegex(self.failure(), r"a\.npy.*<i4.*f32")

    def test_scalars_must_fit_their_types(self):
        self.replace("vector_add.jsonc", '{"type": "i32"}', '{"type": "i32", "value": "n * 2**32"}')
        self.assertRegex(self.failure(), r"line \d+.*of type i32, which has no such value: n \* 2\*\*32 is 21474836480000")

    def test_each_configuration_runs_on_three_inputs_unless_told_otherwise(self):
        """-2 is an end of the range of b, which only inputs of other problems or other inputs have."""
        self.replace("vector_add.cu", "c[at] = a[at] + b[at];\n  }",
                     "c[at] = a[at] + b[at] + (b[at] == -2);\n  }")
        self.assertEqual(self.tuned("--budget", "2", code=1)["trials"],
                         {"correctness": 2, "ok": 0, "total": 2})
        # There are no other sizes.
        self.replace("vector_add.jsonc", '"n": {"default": 1000000, "help": "elements", "examples": [1, 1000, 4099]}',
                     '"n": {"default": 5000, "least": 5000, "most": 5000}')
        report = self.tuned("--budget", "2", code=1)
        self.assertEqual(report["trials"], {"correctness": 2, "ok": 0, "total": 2})
        self.assertIn("with other inputs",
                      self.query("select message from trials order by id desc")[0][0])
        self.replace("vector_add.jsonc", '"tolerance"', '"inputs": 1, "tolerance"')
        self.assertEqual(self.tuned("--budget", "2")["trials"], {"ok": 2, "total": 2})

    def test_compilers_tell_what_is_wrong(self):
        self.replace("vector_add.cu", "const int step", "const integer step")
        report = self.tuned("--budget", "2", code=1)
        self.assertEqual(report["trials"], {"compile": 2, "ok": 0, "total": 2})
        ((log,), *_) = self.query("select log from trials")
        self.assertRegex(log, "integer.* (does not name a type|not declared)")

    def test_options_are_those_of_the_file(self):
        text = self.run_tune("kernel", self.file, "--help").stdout
        self.assertIn("--n N", text)
        self.assertIn("[1000000]", text)

    def test_verify_and_compile_take_files(self):
        verified = self.run_tune("verify", self.file, "--n", "3000", "--sample", "2",
                                 "--device", "hip-host:0", "--json")
        self.assertEqual(verified.returncode, 0, verified.stderr)
        self.assertEqual(json.loads(verified.stdout)["variants"],
                         [{"right": 2, "types": "f32 to f32", "variant": "described", "wrong": 0}])
        compiled = self.run_tune("compile", self.folder / "scale.jsonc", "--arch", "host-sm_80")
        self.assertEqual(compiled.returncode, 0, compiled.stderr)
        self.assertIn("shop::scale<double, ITEMS>", compiled.stdout)

    def test_sanitizers_show_where_a_kernel_reads_out_of_bounds(self):
        self.replace("vector_add.cu", "const int step", "__shared__ int none[4];\n"
                     "  none[threadIdx.x % 4 + (n == 3000)] = n;\n  const int step")
        result = self.run_tune("verify", self.file, "--n", "3000", "--device", "hip-host:0",
                               "--sanitize")
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertRegex(result.stderr, "(global-buffer-overflow|out of bounds)")
        self.assertRegex(result.stderr, r"vector_add\.cu:7")

    def test_sanitizers_find_races_that_change_no_result(self):
        """What is read by the thread after is never the number it is compared with, in whatever order threads run."""
        self.replace("vector_add.cu", "const int step", "__shared__ int seen[BLOCK];\n"
                     "  seen[threadIdx.x] = n;\n"
                     "  if (threadIdx.x > 0 && seen[threadIdx.x - 1] == n + 1) return;\n"
                     "  const int step")
        arguments = ["verify", self.file, "--n", "3000", "--device", "hip-host:0"]
        unnoticed = self.run_tune(*arguments)
        self.assertEqual(unnoticed.returncode, 0, unnoticed.stderr)
        result = self.run_tune(*arguments, "--sanitize")
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertRegex(result.stderr, r"crash: hip-host: data-race at vector_add\.cu:8 in ")
        self.assertRegex(result.stderr, r"READ by thread \(1,0,0\)\n *#0 .* vector_add\.cu:8\n"
                         r"previous WRITE by thread \(0,0,0\)\n *#0 .* vector_add\.cu:7\n"
                         r"no __syncthreads\(\)")
        self.assertIn("of 'seen' (", result.stderr)

    def test_a_wrong_result_does_not_hide_a_race(self):
        self.replace("vector_add.cu", "const int step", "__shared__ int seen[BLOCK];\n"
                     "  seen[threadIdx.x] = n;\n"
                     "  if (seen[(threadIdx.x + 1) % BLOCK] != n) return;\n  const int step")
        result = self.run_tune("verify", self.file, "--n", "3000", "--device", "hip-host:0",
                               "--sanitize")
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertIn("crash: hip-host: data-race at vector_add.cu:", result.stderr)

    def test_t1_with_a_reference_beside_it(self):
        self.know_ceilings("hip-host:0")
        result = self.run_tune("kernel", self.folder / "vector_add_t1.json", "--db", self.db,
                               "--device", "hip-host:0", "--no-lock", "--flush", "1", "--json",
                               "--budget", "3")
        self.assertEqual(result.returncode, 0, result.stderr)
        report = json.loads(result.stdout)
        self.assertEqual(report["problem"]["key"], "vector_add dtype=f32 out=f32 problem_size_x=5000")
        self.assertEqual(report["trials"], {"ok": 3, "total": 3})

    def test_a_new_kernel_can_be_verified_at_once(self):
        result = self.run_tune("kernel", "--new", "mine", cwd=self.folder)
        self.assertEqual(result.returncode, 0, result.stderr)
        verified = self.run_tune("verify", "mine.jsonc", "--n", "5000", "--sample", "2",
                                 "--device", "hip-host:0", cwd=self.folder)
        self.assertEqual(verified.returncode, 0, verified.stderr)
        again = self.run_tune("kernel", "--new", "mine", cwd=self.folder)
        self.assertEqual(again.returncode, 2)
        self.assertIn("mine.jsonc exists", again.stderr)
        self.assertIn("no digit first", self.complaint("--new", "2d"))

    def test_a_new_kernel_in_each_language(self):
        for language, kernel, device in (("hip", "warm.hip", "hip-host:0"),
                                         ("glsl", "cold.comp", "vulkan:0")):
            name = kernel.split(".")[0]
            result = self.run_tune("kernel", "--new", name, "--language", language, cwd=self.folder)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn(f"wrote {name}.jsonc and {kernel}", result.stdout)
            verified = self.run_tune("verify", f"{name}.jsonc", "--n", "5000", "--sample", "2",
                                     "--device", device, cwd=self.folder)
            self.assertEqual(verified.returncode, 0, verified.stderr)
        self.assertIn("--language", self.complaint("--new", "x", "--language", "opencl"))
        self.assertIn("--new", self.complaint("--language", "glsl"))

    def test_descriptions_in_the_users_folder_have_names(self):
        kernels = self.folder / "config" / "greta" / "kernels"
        kernels.mkdir(parents=True)
        for name in ("vector_add.jsonc", "vector_add.cu"):
            shutil.copy(self.folder / name, kernels)
        env = dict(self.env, XDG_CONFIG_HOME=str(self.folder / "config"))
        self.assertIn("--n N", self.run_tune("kernel", "vector_add", "--help", env=env).stdout)
        self.assertIn("No such file", self.complaint("vector_add"))

    def test_reports_and_options_have_the_words_of_parameters(self):
        self.know_ceilings("hip-host:0")
        tune = ("kernel", self.file, "--n", "5000", "--device", "hip-host:0", "--db", self.db,
                "--no-lock", "--flush", "1", "--quiet")
        limits = ("--fix", "MODE=blocked", "--range", "BLOCK=64,128", "--budget", "4",
                  "--try", "described BLOCK=64 ITEMS=2 MODE=blocked UNROLL=0")
        result = self.run_tune(*tune, *limits)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"winner +described BLOCK=\d+ ITEMS=\d MODE=(blocked|strided)")
        self.assertEqual(self.query("select count(*) from trials where config like '%\"MODE\",0%'"
                                    " and phase = 'search'"), [(0,)])
        wrong = self.run_tune(*tune, "--fix", "MODE=blacked")
        self.assertEqual(wrong.returncode, 2)
        self.assertIn("--fix MODE=blacked: must be", wrong.stderr)

    def test_kernels_of_a_folder_are_known_to_all_tools(self):
        kernels = self.folder / "kernels"
        kernels.mkdir()
        for name in ("vector_add.jsonc", "vector_add.cu"):
            shutil.copy(self.folder / name, kernels)
        (kernels / "broken.json").write_text("{")
        preset = self.folder / "mine.json"
        preset.write_text(json.dumps({"problems": [{"op": "vector_add", "n": 3000}],
                                      "iterations": 1, "batch": 2}))
        self.know_ceilings("hip-host:0")
        own = ("--kernels", kernels, "--db", self.db)
        tuned = self.run_tune("preset", preset, *own, "--device", "hip-host:0", "--budget", "3",
                              "--no-lock", "--flush", "1", "--json")
        self.assertEqual(tuned.returncode, 0, tuned.stderr)
        self.assertIn("broken.json: line 1", tuned.stderr)
        self.assertEqual(tuned.stderr.count("this kernel is omitted"), 1)
        (result,) = json.loads(tuned.stdout)["results"]
        self.assertEqual(result["trials"], {"ok": 3, "total": 3})
        timed = self.run_words(BENCH, "--preset", str(preset), *map(str, own), "--device", "hip-host:0",
                               "--both", "--settle", "0", "--no-lock", "--flush", "1",
                               "--processes", "all")
        self.assertEqual(timed.returncode, 0, timed.stderr)
        self.assertIn("kernel/vector_add/f32/n=3000/default", timed.stdout)
        (listed,) = json.loads(self.run_db("list", "--kernels", kernels, "--op", "vector_add", "--json").stdout)
        self.assertEqual(listed["stale"], [])
        unknown = json.loads(self.run_db("list", "--json").stdout)
        self.assertIn("no operation vector_add", unknown[0]["stale"][0])
        self.assertIn("MODE=", self.run_tune("show", *own).stdout)
        named = self.run_tune("verify", "vector_add", "--kernels", kernels, "--n", "3000",
                              "--sample", "1", "--device", "hip-host:0")
        self.assertEqual(named.returncode, 0, named.stderr)
        missing = self.run_db("list", "--kernels", self.folder / "none")
        self.refused(missing, 2, "--kernels", "is not a folder")

    def test_a_shipped_database_carries_kernels(self):
        self.tuned("--budget", "3")
        app = self.folder / "app.db"
        export = ("export", "--ship", "--with-kernels", "--out", app)
        self.refused(self.run_db(*export), 2, "--with-kernels: vector_add is not described")
        done = self.run_db(*export, "--kernels", self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("1 own kernel", done.stdout)
        self.assertEqual(self.run_db("verify", db=app).returncode, 0)
        merged = self.folder / "merged.db"
        self.assertEqual(self.run_db("merge", app, db=merged).returncode, 0)
        self.db = merged
        self.assertEqual(self.query("select name, description from kernels"),
                         [("vector_add", "vector_add.jsonc")])
        (device,) = json.loads(self.run_db("info", "--json").stdout)["devices"]
        self.assertEqual(device["not_used"], [])
        (listed,) = json.loads(self.run_db("list", "--op", "vector_add", "--json").stdout)
        self.assertEqual((listed["stale"], listed["not_used"]), ([], None))

    def test_the_schema_has_the_keys_that_are_read(self):
        schema = json.loads(self.run_tune("kernel", "--schema").stdout)
        self.replace("vector_add.jsonc", '"greta": 1', '"grata": 1')
        known = re.search("there are (.*) or (.*)$", self.complaint(self.file).strip())
        self.assertEqual(set(known[1].split(", ") + [known[2]]), set(schema["properties"]))

    def test_the_commands_of_the_page_run(self):
        page = (SOURCE / "docs" / "your-kernel.md").read_text()
        commands = [line for block in re.findall(r"```sh\n(.*?)```", page, re.S)
                    for line in block.splitlines()]
        self.assertGreater(len(commands), 6)
        shutil.copytree(DATA / "kernels", self.folder / "tests" / "data" / "kernels")
        self.know_ceilings("vulkan:0,hip-host:0")
        for command in commands:
            words = shlex.split(command)
            self.assertEqual(words[0], "greta-tune", command)
            tunes = ["--db", self.db, "--no-lock", "--flush", "1"] if "--budget" in words else []
            result = self.run_tune(*words[1:], *tunes, cwd=self.folder)
            self.assertEqual(result.returncode, 0, f"{command}\n{result.stderr}")

    def test_kernels_compile_for_amd_without_rocm(self):
        """clang has no words of HIP without headers."""
        self.replace("vector_add.cu", "const int step", """__shared__ float tile[BLOCK];
  extern __shared__ float rest[];
  const unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x] = rest[threadIdx.x] = at < n ? a[at] : gridDim.y;
  __syncthreads();
  float v = tile[threadIdx.x ^ 1];
  v = expf(v) + logf(v) + sinf(v) + cosf(v) + tanhf(v) + sqrtf(v) + rsqrtf(v) + fmaf(v, v, v);
  v += __shfl_xor(v, 1) + __shfl_down_sync(~0u, v, 2) + __popcll(__ballot(at & 1)) + __ldg(a);
  __syncwarp();
  atomicAdd(c, v);
  atomicMax(reinterpret_cast<int*>(c), __float_as_int(v));
  const float4 four = make_float4(v, min(1, 2), max(v, 2.0f), fminf(v, 3.0f));
  c[at] = four.x + four.w;
  const int step""")
        self.replace("vector_add.cu", 'extern "C" __global__ void vector_add(',
                     "#include <hip/hip_runtime.h>\n__device__ __forceinline__ int one() { return 1; }\n"
                     'extern "C" __global__ void __launch_bounds__(1024, 1) vector_add(')
        for arch in ("gfx942", "gfx1100", "gfx1201"):
            for file in ("vector_add.jsonc", "scale.jsonc"):
                with self.subTest(arch=arch, file=file):
                    compiled = self.run_tune("compile", self.folder / file, "--arch", arch)
                    self.assertEqual(compiled.returncode, 0, compiled.stderr)
                    self.assertIn("clang", compiled.stdout)
        self.replace("vector_add.cu", "__syncwarp();", "__syncwarps();")
        wrong = self.run_tune("compile", self.file, "--arch", "gfx942")
        self.assertEqual(wrong.returncode, 1)
        self.assertRegex(wrong.stderr, r"vector_add\.cu:16:3: error: use of undeclared .*__syncwarps")

    def test_mistakes_are_one_line(self):
        self.assertIn("No such file", self.complaint(self.folder / "none.json"))
        self.assertIn("file", self.complaint())
        self.assertIn("cannot be verified", self.with_source("blur_t1.json", "blur.cu"))
        self.replace("vector_add.jsonc", '"role": "output"', '"role": "out"')
        self.assertIn("line 23, column 27, operands[2].role: must be input, output or input_output",
                      self.complaint(self.file))
        self.replace("vector_add.jsonc", '"name": "vector_add"', '"name": "gemm"')
        self.replace("vector_add.jsonc", '"role": "out"', '"role": "output"')
        self.assertIn("there is an operation gemm", self.complaint(self.file))
        self.assertIn("--m", self.complaint_of_options("--m", "5"))

    def with_source(self, description, source):
        (self.folder / source).write_text("")
        return self.complaint(self.folder / description)

    def complaint_of_options(self, *options):
        self.replace("vector_add.jsonc", '"name": "gemm"', '"name": "vector_add"')
        return self.complaint(self.file, *options)


class DescriptionSchema(Case):
    """Needs the Python package jsonschema."""

    def test_descriptions_follow_it_and_mistakes_do_not(self):
        import jsonschema
        schema = json.loads(self.run_tune("kernel", "--schema").stdout)
        jsonschema.Draft202012Validator.check_schema(schema)
        check = jsonschema.Draft202012Validator(schema)
        self.run_tune("kernel", "--new", "mine", cwd=self.folder)
        files = [*(DATA / "kernels").glob("*.jsonc"), self.folder / "mine.jsonc"]
        for file in files:
            with self.subTest(file=file.name):
                good = json.loads(re.sub(r"^\s*//.*$|  // .*$", "", file.read_text(), flags=re.M))
                check.validate(good)
        for key, value in {"greta": 2, "name": "2d", "language": "c", "dimensions": {"n": 0},
                           "parameters": {"B": [1, True]}, "constraints": [{"if": "B > 1"}],
                           "operands": [], "workgroup": [1, 1, 1, 1], "launches": [], "unknown": 1,
                           "reference": {"entry": "naive"}}.items():
            with self.subTest(key=key):
                self.assertFalse(check.is_valid({**good, key: value}))


if __name__ == "__main__":
    unittest.main()
