"""Protects: greta-tune preset --from makes presets of GEMMs that other tools recorded, or tunes them and
compares the times, and names each row that is not converted."""
import json
import unittest

from cli_case import Case

BENCH = ("hipblaslt-bench --api_method c -m 48 -n 64 -k 40 --lda 40 --ldb 40 --ldc 48 --ldd 48 --transA T --transB N "
         "--a_type f32_r --b_type f32_r --c_type f32_r --d_type f32_r --compute_type f32_r\n")
PROBLEM = {"op": "gemm", "dtype": "f32", "layout": "nt", "m": 64, "n": 48, "k": 40}


class GemmLogs(Case):
    def setUp(self):
        super().setUp()
        self.output = self.folder / "gemms.json"

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path

    def done(self, *arguments):
        result = self.run_tune("preset", *arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def test_each_tool_s_files_become_presets(self):
        files = {
            "tunableop_untuned0.csv": "GemmTunableOp_float_TN,tn_48_64_40_ld_40_40_48\n",
            "bf16_untuned_gemm.csv": "M,N,K,bias,dtype,outdtype,scaleAB,bpreshuffle\n"
                                     "64,48,40,False,torch.float32,torch.float32,False,False\n",
            "hipblaslt.log": "loading\n" + BENCH + BENCH,
        }
        for name, text in files.items():
            with self.subTest(name):
                self.output.unlink(missing_ok=True)
                result = self.done("--from", self.write(name, text), "--output", self.output)
                self.assertIn("1 problem of", result.stdout)
                preset = json.loads(self.output.read_text())
                self.assertEqual(preset["problems"], [PROBLEM])
                self.assertEqual(preset["name"], "gemms")
                self.assertEqual(result.stderr, "")

    def test_presets_keep_types_of_results(self):
        log = self.write("t.csv", "M,N,K,dtype,outdtype\n64,48,40,torch.bfloat16,torch.float32\n"
                                  "64,48,40,torch.int8,torch.float32\n")
        result = self.done("--from", log, "--output", self.output, "--json")
        self.assertEqual(json.loads(self.output.read_text())["problems"][0]["out_dtype"], "f32")
        self.assertEqual(json.loads(result.stdout), {
            "preset": str(self.output), "tool": "AITER", "problems": 1,
            "dropped": [{"row": "line 3", "reason": "no type torch.int8 here"}]})
        self.assertEqual(result.stderr, f"{log}: line 3: no type torch.int8 here\n")

    def test_results_compare(self):
        self.know_ceilings("hip-host:0")
        log = self.write("tunableop_results0.csv",
                         "Validator,PT_VERSION,2.8.0\nGemmTunableOp_float_TN,tn_48_64_40,Gemm_Rocblas_7,0.25\n"
                         "GemmTunableOp_float_NN,nn_8_8_8,Default\n")
        options = ("--from", log, "--device", "hip-host:0", "--budget", "2", "--db", self.db, "--no-lock",
                   "--flush", "1")
        result = self.done(*options, "--json")
        report = json.loads(result.stdout)
        self.assertIn("2 rows without leading dimensions", result.stderr)
        self.assertEqual([one["problem"]["key"] for one in report["results"]],
                         ["gemm dtype=f32 out=f32 layout=nt m=64 n=48 k=40", "gemm dtype=f32 out=f32 m=8 n=8 k=8"])
        row, = report["compared"]
        self.assertEqual((row["tool"], row["solution"], row["tool_us"], row["device"]),
                         ("PyTorch TunableOp", "Gemm_Rocblas_7", 250, "hip-host:0"))
        self.assertEqual(row["greta_us"], report["results"][0]["winner"]["median_us"])
        self.assertRegex(self.done(*options).stdout, r"PyTorch TunableOp: 250 us, [0-9.e+-]+ times GRETA's\s+[0-9.]+ us")

    def test_mistakes_are_one_line(self):
        log = self.write("a.log", BENCH)
        self.output.write_text("{}")
        for arguments, message in (
                ((), "either a preset or --from FILE"),
                (("smoke", "--from", log), "either a preset or --from FILE"),
                (("smoke", "--output", self.folder / "x"), "--output: needs --from"),
                (("--from", log, "--output", self.output), "--output .*gemms.json: exists"),
                (("--from", self.folder / "none"), "none: No such file"),
                (("--from", self.write("b.log", "a,b,c\n")), "no row can be converted; line 1: not a row of"),
                (("--from", self.write("c.log", "")), "c.log: has no rows"),
                (("--from", self.write("d.csv", "M,N,K\n1,2,3\n")), "line 2: the table has no column dtype")):
            result = self.run_tune("preset", *arguments)
            self.assertEqual(result.returncode, 2, arguments)
            self.assertRegex(result.stderr.splitlines()[-1], message)


if __name__ == "__main__":
    unittest.main()
