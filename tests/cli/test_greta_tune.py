"""Protects: the behaviour of greta-tune: exit codes, one-line errors, and results with a concurrent
second process."""
import csv
import json
import sqlite3
import unittest

from cli_case import SMALL, SOURCE, TUNE, Case, limit, whole
from sealed_database import rewrite


class BadInput(Case):
    def check(self, arguments, *words, code=2):
        result = self.run_tune(*arguments, "--db", self.db)
        self.refused(result, code, *words)
        self.assertFalse(self.db.exists(), "a refused command must change nothing")

    def test_dimensions(self):
        for value in ("0", "-1", "1e20", "99999999999999999999", "4.5", "many", "", "0x10"):
            with self.subTest(value=value):
                self.check(["gemm", f"--m={value}", "--n", "8", "--k", "8"], "--m", value)

    def test_missing_dimension(self):
        self.check(["gemm", "--m", "8", "--n", "8"], "--k")

    def test_unknown_values_name_what_there_is(self):
        self.check([*SMALL, "--dtype", "f64"], "--dtype", "f64", "f32")
        self.check([*SMALL, "--layout", "xx"], "--layout", "xx", "nt")
        self.check([*SMALL, "--strategy", "magic"], "--strategy", "magic", "random")
        self.check([*SMALL, "--device", "vulkan:99"], "--device", "vulkan:99", "vulkan:0")
        self.check([*SMALL, "--device", "vulkan:0,nonesuch"], "--device", "nonesuch", "vulkan:0")
        self.check([*SMALL, "--epilogue", "relu"], "--epilogue", "relu")
        self.check([*SMALL, "--dtype", "f32", "--out-dtype", "f16"], "--out-dtype", "f16")

    def test_words_of_the_parser_are_our_own(self):
        self.refused(self.run_words(TUNE, "gemm", "--m"), 2, "--m: needs a value, N")
        self.check([*SMALL, "--seed", "1", "--seed", "2"], "--seed: given 2 times, allowed once")
        self.check([*SMALL, "--json=yes"], "--json: takes no value")
        self.refused(self.run_tune("--nonesuch"), 2, "--nonesuch: a command is needed first", "gemm")
        for words in (("--", "gemm"), ("--",)):
            self.refused(self.run_words(TUNE, *words), 2, "greta-tune: ", "a command is needed first: devices, ", "gemm")
        for words in (("remote",), ("remote", "--quiet"), ("remote", "--")):
            self.refused(self.run_words(TUNE, *words), 2, "greta-tune: remote: needs HOST")
        self.assertRegex(self.run_tune("-V").stdout, "^greta-tune [0-9.]+$")

    def test_a_permission_is_given_once_or_more_and_contradicted_by_name(self):
        rounded = ["quantized_gemm", "--m", "3", "--n", "8", "--k", "128", "--dtype", "f32", "--allow", "rounded_weights"]
        for more in ((), ("--allow", "rounded_weights"), ("--math", "rounded_weights")):
            self.check([*rounded, *more], "--math rounded_weights: needs dtype f16 or bf16")
        tf32 = [*SMALL, "--dtype", "f16", "--allow", "tf32x3"]
        self.check([*tf32, "--allow", "vendor"], "--math tf32x3: needs dtype f32")
        self.check([*rounded, "--math", "exact"], "--allow rounded_weights contradicts --math exact")
        self.check([*SMALL, "--dtype", "f16", "--allow", "tf32x3", "--math", "tf32x3"], "--math tf32x3: needs dtype f32")
        self.check([*SMALL, "--allow", "tf32x3", "--math", "exact"], "--allow tf32x3 contradicts --math exact")

    def test_files_in_folders_that_do_not_exist(self):
        missing = self.folder / "missing"
        for option in ("--csv", "--csv-wide"):
            self.check([*SMALL, option, missing / "file"], f"{option} {missing}/file", "there is no folder")
        self.refused(self.run_tune(*SMALL, "--db", missing / "tuned.db"), 2, "--db", "there is no folder")
        self.assertFalse(missing.exists())
        kept = self.folder / "kept.csv"
        kept.write_text("mine")
        self.check([*SMALL, "--csv-wide", kept], "--csv-wide", "exists")
        self.assertEqual(kept.read_text(), "mine")
        self.refused(self.run_tune("model", missing), 2, f"model {missing}", "no such file or folder")
        self.refused(self.run_tune("preset", self.folder), 2, "is a folder")

    def test_limits_that_the_space_does_not_have(self):
        self.check([*SMALL, "--variant", "tile"], "--variant tile", "did you mean tiled?")
        self.check([*SMALL, "--fix", "BM"], "--fix BM", "BM=128")
        self.check([*SMALL, "--fix", "BM=16,32"], "--fix BM=16,32")
        self.check([*SMALL, "--range", "BM=7"], "BM=7", "16, 24, 32, 40")
        self.check([*SMALL, "--range", "XY=1"], "XY", "BM")
        self.check([*SMALL, "--range", "BM=16,32", "--fix", "BM=64"], "BM is limited twice")
        self.check([*SMALL, "--variant", "tiled", "--try", "naive THREADS=64"], "--try", "outside the limits")
        self.check([*SMALL, "--quiet", "--verbose"], "--quiet: not with --verbose")

    def test_budgets(self):
        for value in ("0", "0s", "-5", "ten", "5x", "", "0%", "1e99s", "1e3", "nan", "inf"):
            with self.subTest(value=value):
                self.check([*SMALL, f"--budget={value}"], "--budget", value)

    def test_seed_and_flush(self):
        self.check([*SMALL, "--seed", "x"], "--seed", "x", "whole number")
        self.check([*SMALL, "--flush", "0"], "--flush", "0")
        self.check([*SMALL, "--flush", "8", "--warm"], "--flush", "--warm")

    def test_values_in_quotes(self):
        # Problem keys quote them.
        self.check([*SMALL, "--alpha", '"0"'], "--alpha", "finite number", "without quotes")

    def test_larger_than_memory_names_both_sizes(self):
        self.check(["gemm", "--m", 2000000, "--n", 2000000, "--k", 64, "--csv",
                    self.folder / "a.csv"], "TiB", "iB")
        self.assertFalse((self.folder / "a.csv").exists())

    def test_a_device_that_is_named_twice(self):
        self.check([*SMALL, "--device", "vulkan:0,vulkan:0"], "--device", "vulkan:0", "twice")

    def test_unknown_option_and_command(self):
        self.check([*SMALL, "--speed", "9", "--height", "8"], "greta-tune: --speed: gemm has no")
        self.check([*SMALL, "--out_dtype=f16"], "--out_dtype: gemm has no", "did you mean --out-dtype?")
        self.check(["attention", "--out_dtype", "f16"], "--out_dtype", "did you mean --out-dtype?")
        self.check([*SMALL, "--bugdet", "1"], "--bugdet: gemm has no such option; did you mean --budget?")
        self.check(["gem", "--m", "8"], "gem: no such command; did you mean gemm?")
        self.check(["verify", "sofmax"], "verify sofmax: no such operation; did you mean softmax?")
        self.check(["nonsense"], "nonsense: no such command; there are")
        self.check([*SMALL, "--nonsense", "1"], "--nonsense: gemm has no such option; --help lists them")
        self.check(["--device", "vulkan:0", *SMALL], "--device: belongs after the command gemm")
        self.check([*SMALL, "more", "words"], "greta-tune: more: ")
        self.refused(self.run_tune("gemmm"), 2, "gemmm")
        self.refused(self.run_tune(), 2)

    def test_a_file_that_is_no_database_is_left_alone(self):
        self.db.write_text("important notes\n" * 100)
        before = self.db.read_bytes()
        self.refused(self.run_tune(*SMALL, "--db", self.db), 2, "--db", str(self.db))
        self.assertEqual(self.db.read_bytes(), before)

    def test_show_without_a_database(self):
        self.check(["show"], "--db", str(self.db))

    def test_a_database_that_cannot_be_opened_is_bad_usage(self):
        self.know_ceilings()
        self.assertEqual(self.run_tune(*SMALL, "--budget", "2", "--db", self.db).returncode, 0)
        sound = self.db.read_bytes()
        for contents in (sound[:len(sound) // 2], sound[:100], b"", b"junk" * 100):
            with self.subTest(bytes=len(contents)):
                self.db.write_bytes(contents)
                self.refused(self.run_tune("show", "--db", self.db), 2, "--db", str(self.db))
                self.assertEqual(self.db.read_bytes(), contents)

    def test_show_of_a_device_that_has_no_winners(self):
        self.know_ceilings()
        self.assertEqual(self.run_tune(*SMALL, "--budget", "2", "--db", self.db, "--device",
                                       "vulkan:0").returncode, 0)
        result = self.run_tune("show", "--db", self.db, "--device", "nosuch")
        self.refused(result, 2, "--device nosuch", "vulkan:0")
        self.assertEqual(self.run_tune("show", "--db", self.db, "--device", "vulkan:0").returncode, 0)

    def test_csv_of_other_columns_is_left_alone(self):
        file = self.folder / "other.csv"
        file.write_text("a,b\n1,2\n")
        self.refused(self.run_tune(*SMALL, "--db", self.db, "--csv", file), 2, "--csv")
        self.assertEqual(file.read_text(), "a,b\n1,2\n")


class Devices(Case):
    def test_lists_a_usable_device_and_says_what_it_is(self):
        result = self.run_tune("devices")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("vulkan:0", result.stdout)
        self.assertRegex(result.stdout, r"llvmpipe(.|\n)*CPU")  # always present, and not a GPU

    def test_says_of_each_platform_what_is_there_or_why_not(self):
        words = " ".join(self.run_tune("devices").stdout.split())
        backends = json.loads(self.run_tune("devices", "--json").stdout)
        hip = next(b for b in backends if b["backend"] == "hip")
        platforms = {line.split(":")[0] for line in hip["missing"]}
        self.assertTrue(platforms <= {"amd", "nvidia"})
        self.assertTrue(hip["devices"] or platforms == {"amd", "nvidia"})
        for line in hip["missing"]:
            self.assertIn("absent " + " ".join(line.split()), words)
        host = next(b for b in backends if b["backend"] == "hip-host")
        self.assertEqual(len(host["devices"]), 5)
        self.assertIn("runs on the CPU, for checking kernels", words)
        self.assertIn("matrix operations f16 and bf16 16x8x16", words)  # hip-host:0 as sm_80

    def test_json(self):
        backends = json.loads(self.run_tune("devices", "--json").stdout)
        vulkan = next(b for b in backends if b["backend"] == "vulkan")
        self.assertTrue(vulkan["available"])
        self.assertTrue(any(device["usable"] for device in vulkan["devices"]))

    def test_no_driver_is_exit_code_3_with_a_reason(self):
        # hip-host needs a compiler on the PATH to run kernels.
        env = dict(self.env, VK_ICD_FILENAMES="/nonexistent.json",
                   VK_DRIVER_FILES="/nonexistent.json", PATH=str(self.folder))
        listed = self.run_tune("devices", env=env)
        self.assertEqual(listed.returncode, 3)
        self.assertIn("absent", listed.stdout)
        tuned = self.run_tune(*SMALL, "--db", self.db, env=env)
        self.refused(tuned, 3)
        self.assertFalse(self.db.exists())

    def test_part_of_a_name_selects(self):
        backends = json.loads(self.run_tune("devices", "--json").stdout)
        vulkan = next(b for b in backends if b["backend"] == "vulkan")
        name = vulkan["devices"][0]["name"]
        self.know_ceilings()
        result = self.run_tune(*SMALL, "--db", self.db, "--budget", "2", "--device",
                               name.split()[0].upper())
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_help_and_version(self):
        for arguments in (["--help"], ["gemm", "--help"], ["--version"]):
            result = self.run_tune(*arguments)
            self.assertEqual(result.returncode, 0)
            self.assertTrue(result.stdout)


class Tune(Case):
    known_devices = "auto"

    @whole
    def test_a_later_session_never_stores_less(self):
        known = "row THREADS=64 VEC=4 ITEMS=2 ROWS=8"
        shape = ["argmax", "--rows", 64, "--cols", 16000, "--device", "vulkan:0", "--budget", 1, "--db",
                 self.db, "--json"]
        first = json.loads(self.run_tune(*shape).stdout)["winner"]
        self.assertNotEqual(first["config_text"], known)
        # The fastest depends on the machine.
        rewrite(self.db, "UPDATE winners SET config = ?, is_default = 0", (known,))
        second = json.loads(self.run_tune(*shape).stdout)
        # Known winners compete again, beyond the budget: they are only replaced by faster ones.
        self.assertEqual(second["trials"]["total"], 2)
        tried = self.query("SELECT config FROM trials ORDER BY id DESC LIMIT 2")
        self.assertIn((known,), tried)

    @whole
    def test_what_was_best_for_a_near_shape_is_tried(self):
        """From the user's database, and from a shipped one, which is not changed."""
        other = "row THREADS=64 VEC=4 ITEMS=2 ROWS=8"
        tuned = self.folder / "tuned.db"
        result = self.run_tune("argmax", "--rows", 64, "--cols", 16000, "--device", "vulkan:0", "--budget",
                               1, "--db", tuned)
        self.assertEqual(result.returncode, 0, result.stderr)
        # The fastest depends on the machine.
        rewrite(tuned, "UPDATE winners SET config = ?, is_default = 0", (other,))
        shipped = self.folder / "shipped.db"
        self.assertEqual(self.run_db("export", "--ship", "--out", shipped, db=tuned).returncode, 0)
        for database, options in ((tuned, []), (self.db, ["--shipped", shipped])):
            with self.subTest(options=options):
                result = self.run_tune("argmax", "--rows", 64, "--cols", 12000, "--device", "vulkan:0",
                                       "--budget", 2, "--db", database, *options)
                self.assertEqual(result.returncode, 0, result.stderr)
                with sqlite3.connect(database) as connection:
                    last = connection.execute("SELECT config FROM trials ORDER BY id DESC LIMIT 2")
                    self.assertIn((other,), last.fetchall())
        self.refused(self.run_tune(*SMALL, "--shipped", "none.db", "--db", self.db), 2, "--shipped",
                     "none.db")

    def test_a_search_within_limits_tries_only_what_meets_them(self):
        wide, plain = self.folder / "wide.csv", self.folder / "plain.csv"
        result = self.run_tune(*SMALL, "--budget", "6", "--db", self.db, "--quiet", "--variant", "tiled",
                               "--range", "BM=16,32", "--fix", "BK=8", "--csv-wide", wide, "--csv", plain)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("the search was limited to variant tiled, BK=8, BM=16,32", result.stdout)
        with open(wide, newline="") as file:
            rows = list(csv.DictReader(file))
        with open(plain, newline="") as file:
            both = list(zip(rows, csv.DictReader(file), strict=True))
        for row, other in both:  # the columns that both forms have
            self.assertEqual({name: row[name] for name in row if name in other},
                             {name: other[name] for name in row if name in other})
        tried = [row for row in rows if row["origin"] == "trial"]
        self.assertGreaterEqual(len(tried), 4)
        for row in tried[1:]:  # the first one is the default
            self.assertEqual((row["variant"], row["param_BK"]), ("tiled", "8"))
            self.assertIn(row["param_BM"], ("16", "32"))
            self.assertGreater(int(row["dim_m"]), 0)

    def test_a_tiny_budget_still_tries_the_default(self):
        result = self.run_tune(*SMALL, "--budget", "0.01s", "--db", self.db, "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertTrue(json.loads(result.stdout)["winner"]["is_default"])

    def test_json_object_csv_rows_and_show(self):
        file = self.folder / "out.csv"
        result = self.run_tune(*SMALL, "--budget", "12", "--db", self.db, "--json", "--csv", file,
                               "--seed", "5", "--naive")
        self.assertEqual(result.returncode, 0, result.stderr)
        report = json.loads(result.stdout)
        winner = report["winner"]
        finalists = {one["config_text"]: one for one in report["finalists"]}
        self.assertEqual(finalists[winner["config_text"]]["samples_us"], winner["measurement"]["samples_us"])
        self.assertEqual([one["speedup"] for one in report["finalists"] if one["is_default"]], [1])
        self.assertTrue(winner["verdict"]["passed"])
        self.assertLessEqual(winner["verdict"]["error"], winner["verdict"]["bound"])
        self.assertGreaterEqual(winner["speedup"], 1)
        total = report["trials"]["total"]
        self.assertIn(total, (12, 13))  # the naive kernel may be one of the twelve
        self.assertEqual(report["problem"]["dims"], {"m": 64, "n": 48, "k": 40})
        self.assertGreater(report["ceilings"]["copy_gbps"], 0)
        spent = report["time"]
        parts = sum(spent[key] for key in ("compile_s", "verify_s", "measure_s", "waiting_s", "other_s"))
        self.assertAlmostEqual(parts, spent["wall_s"], places=3)

        rows = list(csv.DictReader(file.read_text().splitlines()))
        self.assertEqual([row["origin"] for row in rows].count("trial"), total)
        self.assertEqual([row["origin"] for row in rows][-1], "winner")
        self.assertEqual(rows[-1]["problem"], "m=64 n=48 k=40")
        self.assertNotIn(None, rows[-1])  # as many fields as columns

        shown = json.loads(self.run_tune("show", "--db", self.db, "--json").stdout)
        self.assertEqual(shown[0]["winner"]["config_text"], winner["config_text"])
        self.assertEqual(self.query("SELECT count(*) FROM trials"), [(total,)])

    def test_csv_appends(self):
        file = self.folder / "out.csv"
        for _ in range(2):
            self.run_tune(*SMALL, "--budget", "2", "--db", self.db, "--csv", file)
        text = file.read_text().splitlines()
        self.assertEqual(sum(line.startswith("op,") for line in text), 1)
        self.assertGreaterEqual(len(text), 7)

    @whole
    def test_half_precision_layouts_and_epilogues(self):
        for extra in (["--dtype", "f16"], ["--dtype", "f16", "--out-dtype", "f32", "--layout", "nt"],
                      ["--layout", "tn", "--epilogue", "bias,residual,silu"],
                      ["--epilogue", "gelu", "--alpha", "0.5", "--beta", "2"]):
            with self.subTest(extra=extra):
                result = self.run_tune("gemm", "--m", 33, "--n", 17, "--k", 19, *extra, "--budget",
                                       "4", "--db", self.db)
                self.assertEqual(result.returncode, 0, result.stderr + result.stdout)
                self.assertIn("4 of 4 passed", result.stdout)

    def test_one_element(self):
        result = self.run_tune("gemm", "--m", 1, "--n", 1, "--k", 1, "--budget", "5", "--db",
                               self.db, "--strategy", "random")
        self.assertEqual(result.returncode, 0, result.stderr + result.stdout)

    def test_two_processes_share_a_database(self):
        runs = [self.start("gemm", "--m", 32 + i, "--n", 32, "--k", 32, "--variant", "naive", "--budget", "5",
                           "--db", self.db) for i in range(2)]
        for run in runs:
            output, errors = run.communicate(timeout=limit(200))
            self.assertEqual(run.returncode, 0, errors)
        self.assertEqual(self.query("SELECT count(*) FROM trials"), [(10,)])
        self.assertEqual(self.query("SELECT count(*) FROM winners"), [(2,)])
        self.assertEqual(self.query("PRAGMA integrity_check"), [("ok",)])

    def test_in_process_and_warm(self):
        result = self.run_tune(*SMALL, "--budget", "3", "--db", self.db, "--in-process", "--warm")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("warm", result.stdout)


class Preset(Case):
    def write(self, text):
        file = self.folder / "preset.json"
        file.write_text(text)
        return file

    def test_tunes_every_problem(self):
        self.know_ceilings()
        file = self.write(json.dumps({"name": "tiny", "budget": "2", "problems": [
            {"op": "gemm", "m": 8, "n": 8, "k": 8},
            {"op": "gemm", "m": 9, "n": 8, "k": 8, "dtype": "f16", "layout": "nt"}]}))
        result = self.run_tune("preset", file, "--db", self.db, "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(len(json.loads(result.stdout)["results"]), 2)
        self.assertEqual(self.query("SELECT count(*) FROM winners"), [(2,)])

    def test_shipped_presets_are_well_formed(self):
        files = [file for file in (SOURCE / "presets").glob("*.json")
                 if "problems" in json.loads(file.read_text())]  # not the schema, and not presets without problems
        self.assertIn(SOURCE / "presets" / "gemm-peers.json", files)
        for file in files:
            with self.subTest(file=file.name):
                # A bad strategy is only rejected after the whole preset was read.
                result = self.run_tune("preset", file, "--db", self.db, "--strategy", "none")
                self.refused(result, 2, "--strategy")

    def test_mistakes_are_named_with_their_place(self):
        problems = '{"problems": [{"op": "gemm", "m": 8, "n": 8, "k": 8}, %s]}'
        for text, words in ((problems % '{"op": "gemm", "m": 8, "n": 8}', ["problems[1].k"]),
                            (problems % '{"op": "conv"}', ["problems[1].op"]),
                            (problems % '{"op": "gemm", "m": 8, "n": 8, "k": 8, "z": 1}',
                             ["problems[1].z"]),
                            (problems % "7", ["problems[1]"]),
                            ('{"problem": []}', ["problem"]), ("{", ["JSON", "line 1, column 2"]), ("[]", ["JSON"])):
            with self.subTest(text=text):
                result = self.run_tune("preset", self.write(text), "--db", self.db)
                self.refused(result, 2, "preset.json", *words)
        self.assertFalse(self.db.exists())

    def test_a_problem_that_is_too_large_is_named_with_its_place(self):
        file = self.write('{"problems": [{"op": "gemm", "m": 8, "n": 8, "k": 8},'
                          ' {"op": "gemm", "m": 2000000, "n": 2000000, "k": 8}]}')
        result = self.run_tune("preset", file, "--db", self.db)
        self.refused(result, 2, "preset.json: problems[1]: gemm", " m=2000000 ", "TiB")

    def test_unknown_preset(self):
        self.refused(self.run_tune("preset", "nonesuch"), 2, "nonesuch")


if __name__ == "__main__":
    unittest.main()
