"""Protects: greta-tune from-capture and preset --from tune what libgreta-capture.so recorded, the calls that cost most
first, and say which calls they don't tune and why."""
import json
import re
import unittest

from cli_case import Case

HEAD = {"greta_capture": 2, "greta": "0.1.0", "program": "python3", "process": 7, "libraries": ["/usr/lib/libcublas.so.12"]}
ROW = {"library": "cuBLAS", "function": "cublasGemmEx", "op_a": "T", "op_b": "N", "m": 48, "n": 64, "k": 40, "a_type": "f32",
       "b_type": "f32", "c_type": "f32", "d_type": "f32", "compute": "f32", "scale": "f32", "lda": 40, "ldb": 40,
       "ldc": 48, "ldd": 48, "alpha": 1, "beta": 0, "count": 5}
KEY = "gemm dtype=f32 out=f32 layout=nt m=64 n=48 k=40"


def double(row):
    return row | {name: "f64" for name in ("a_type", "b_type", "c_type", "d_type", "compute")}


class CapturedCalls(Case):
    def capture(self, *rows, name="gemms.jsonl", **head):
        file = self.folder / name
        file.write_text("".join(json.dumps(line) + "\n" for line in (HEAD | head, *rows)))
        return file

    def test_from_capture(self):
        self.know_ceilings("hip-host:0")
        first = self.capture(ROW, double(ROW) | {"count": 7}, double(ROW) | {"m": 8, "count": 1}, uncounted=2)
        second = self.capture(ROW | {"op_a": "N", "m": 8, "lda": 8, "ldc": 8, "ldd": 8, "count": 100000}, ROW, name="2.jsonl")
        result = self.run_tune("from-capture", first, second, "--device", "hip-host:0", "--budget", 2, "--db", self.db,
                               "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(f"{first}: 1 of 3 GEMMs of python3 can be tuned, in 5 of 15 calls\n", result.stderr)
        self.assertIn(f"{first}: 2 calls were not recorded", result.stderr)
        self.assertIn(f"not tuned: 2 GEMMs in 8 calls: no type f64 here ({first}, line 3: cublasGemmEx T N m=48 n=64 k=40 "
                      "f64)\n", result.stderr)
        report = json.loads(result.stdout)
        # The most expensive first: 10⁵ small calls, then 10 of the other.
        self.assertEqual([one["problem"]["key"] for one in report["results"]],
                         ["gemm dtype=f32 out=f32 m=64 n=8 k=40", KEY])
        self.assertEqual(report["captures"], [str(first), str(second)])
        self.assertEqual([(one["line"], one["count"], one["reason"]) for one in report["not_tuned"]],
                         [(3, 7, "no type f64 here"), (4, 1, "no type f64 here")])

    def test_the_budget_follows_measured_times(self):
        """By an estimate the second one would come first."""
        self.know_ceilings("hip-host:0")
        large = ROW | {"m": 480, "ldc": 480, "ldd": 480, "count": 6}
        result = self.run_tune("from-capture", self.capture(ROW | {"timed": 3, "least_us": 4000}, large), "--device", "hip-host:0",
                               "--budget", 2, "--db", self.db, "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual([one["problem"]["key"] for one in json.loads(result.stdout)["results"]],
                         [KEY, KEY.replace("n=48", "n=480")])

    def test_presets_are_made_of_it(self):
        output = self.folder / "p.json"
        result = self.run_tune("preset", "--from", self.capture(ROW, double(ROW)), "--output", output)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("line 3: no type f64 here", result.stderr)
        self.assertEqual(json.loads(output.read_text())["problems"],
                         [{"op": "gemm", "dtype": "f32", "layout": "nt", "m": 64, "n": 48, "k": 40}])

    def test_what_ships_carries_its_kernels(self):
        tuned = self.run_tune("argmax", "--rows", 1, "--cols", 64, "--device", "hip-host:0", "--budget", 1, "--db", self.db)
        self.assertEqual(tuned.returncode, 0, tuned.stderr)
        words = ("export", "--ship", "--binaries", "host-sm_80")
        counts = []
        for more in ((), ("--problems", self.capture(ROW, double(ROW)))):
            ship = self.folder / f"ship{len(counts)}.db"
            result = self.run_db(*words, *more, "--out", ship)
            self.assertEqual(result.returncode, 0, result.stderr)
            counts.append(int(re.search(r"(\d+) kernels? compiled for host-sm_80", result.stdout)[1]))
        self.assertGreater(counts[1], counts[0])
        self.assertIn("not compiled: 1 GEMM in 5 calls: no type f64 here", result.stderr)
        self.refused(self.run_db(*words, "--problems", self.capture(ROW | {"m": 0}, name="a"), "--out", self.folder / "no.db"), 2,
                     "--problems ", "a, line 2: no valid \"m\"")

    def test_import_says_what_it_has(self):
        result = self.run_db("import", self.capture(ROW))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout, "1 GEMM of libgreta-capture, without their times; greta-tune from-capture tunes them, by "
                         "their share of the time\n")
        self.refused(self.run_db("import", self.capture(ROW | {"m": 0}, name="a")), 2,
                     "a: no row can be converted; its calls: the capture, line 2: no valid \"m\"")

    def test_mistakes_are_one_line(self):
        good = self.capture(ROW)
        for file, words in ((self.capture(ROW | {"m": 0}, name="a"), ["a, line 2: no valid \"m\""]),
                            (self.capture(ROW | {"least_us": -1}, name="f"), ["f, line 2: no valid \"least_us\""]),
                            (self.capture({"count": 1}, name="b"), ["b, line 2: no valid \"library\""]),
                            (self.capture(greta_capture=3, name="c"), ["c, line 1: version 3 of the form, this GRETA reads 1"]),
                            (self.capture(libraries=7, name="d"), ["d, line 1: no valid \"libraries\""]),
                            (self.folder / "none", ["none: No such file"])):
            with self.subTest(file.name):
                self.refused(self.run_tune("from-capture", good, file, "--quiet"), 2, *words)
        result = self.run_tune("from-capture", self.capture(double(ROW), name="e"))
        self.assertEqual(result.returncode, 2)
        self.assertRegex(result.stderr.splitlines()[-1], "e: has no problems to tune")


if __name__ == "__main__":
    unittest.main()
