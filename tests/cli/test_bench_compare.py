"""Protects: greta-bench compare as a user runs it."""
import csv
import json
import pathlib
import re
import subprocess
import sys
import unittest

from bench_case import GEMM, BenchCase
from cli_case import BENCH, SOURCE


class Baselines(BenchCase):
    """Generates files."""

    def baseline(self, name, factor=1.0, device="card", us=100, processes="", op="gemm", **others):
        header = subprocess.run([BENCH, "--version"], capture_output=True).stdout  # whether it can be run
        self.assertTrue(header)
        file = self.folder / name
        columns = ("op,dtype,out_dtype,problem,attributes,backend,device,config,origin,status,us,low_us,"
                   "high_us,p99_us,spread_pct,tflops,gbps,roofline,error,bound,speedup,speedup_low,"
                   "speedup_high,cache,samples,driver,compiler,greta_version,date,clocks,samples_us,control_us,"
                   "cpu_us,cpu_control_us,processes")
        with file.open("w") as out:
            writer = csv.DictWriter(out, columns.split(","), restval="", lineterminator="\n")
            writer.writeheader()
            for n in range(8):
                times = [(1 + n / 100 + s / 10000) * us * (factor if n == 5 else 1) for s in range(10)]
                writer.writerow({"op": op, "dtype": "f32", "problem": f"m={n}", "backend": "hip",
                                 "device": device, "origin": "winner", "status": "ok",
                                 "us": times[5], "low_us": times[4], "high_us": times[7],
                                 "processes": processes, "cache": "cold", "samples": 100,
                                 "samples_us": "|".join(10 * [" ".join(map(str, times))]), **others})
        return file


class BenchCompare(Baselines):
    """Compares generated files. The tests of the library cover the statistics."""

    def test_a_slowdown_is_found_first_and_exits_with_4(self):
        result = self.bench("compare", self.baseline("a.csv"), self.baseline("b.csv", 1.1))
        self.assertEqual(result.returncode, 4, result.stderr + result.stdout)
        first = result.stdout.splitlines()[1]
        self.assertTrue(first.startswith("slower"), first)
        self.assertIn("m=5", first)
        self.assertIn("+10.0 %", first)
        self.assertIn("1 slower by more than 5 %", result.stdout)

    def test_no_change_is_none(self):
        base = self.baseline("a.csv")
        for other, options in ((base, []), (self.baseline("b.csv", 1.04), []),
                               (self.baseline("c.csv", 1.1), ["--threshold", "15%"])):
            result = self.bench("compare", base, other, *options)
            self.assertEqual(result.returncode, 0, result.stderr + result.stdout)
            self.assertIn("8 the same", result.stdout)
        self.assertEqual(self.bench("compare", base, self.baseline("b.csv", 1.04), "--threshold",
                                    "2").returncode, 4)

    def test_files_with_lines_of_cr_and_lf_are_read(self):
        base = self.baseline("a.csv")
        other = self.folder / "crlf.csv"
        other.write_bytes(base.read_bytes().replace(b"\n", b"\r\n"))
        result = self.bench("compare", base, other)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("8 the same", result.stdout)

    def test_other_devices_and_files_are_refused(self):
        base, other = self.baseline("a.csv"), self.baseline("b.csv", 1.1, "another card")
        self.refused(self.bench("compare", base, other), 2, "different devices", "--any-device")
        self.assertEqual(self.bench("compare", base, other, "--any-device").returncode, 4)
        text = self.folder / "text.csv"
        text.write_text("op,us\ngemm,1\n")
        self.refused(self.bench("compare", base, text), 2, "text.csv", "other columns")
        self.refused(self.bench("compare", base, "none.csv"), 2, "none.csv")
        self.refused(self.bench("compare", base, base, "--threshold", "-3"), 2, "--threshold")
        self.refused(self.bench("compare", base, base, "--benchmark_format=json"), 2,
                     "--benchmark_format")
        self.refused(self.bench_run("--untuned", "compare", base, base), 2, "--untuned", "compare")

    def test_recorded_runs_of_the_same_code_are_silent(self):
        """Files of an earlier version, from one process each."""
        folder = SOURCE / "results/2026-11-21-nvidia-h200-processes"
        for files in (("short_1.csv", "short_2.csv"), ("short_2.csv", "short_1.csv")):
            result = self.bench("compare", *(folder / file for file in files))
            self.assertEqual(result.returncode, 0, result.stdout)
            self.assertIn("76 rows: 0 slower by more than 5 %, 0 failing, 0 faster", result.stdout)

    def test_short_kernels_need_several_processes(self):
        for before, after, code in ((10, 10, 4), ("", "", 0), ("", 10, 0), (10, "", 0), (5, 5, 0)):
            with self.subTest(before=before, after=after):
                base = self.baseline("a.csv", us=4, processes=before)
                fresh = self.baseline("b.csv", 1.1, us=4, processes=after)
                result = self.bench("compare", base, fresh)
                self.assertEqual(result.returncode, code, result.stdout)
                self.assertIn("7 the same", result.stdout)


class CompareAccept(Baselines):
    """Protects: slowdowns that a file accepts don't fail a comparison; each form names them; what is expired, unused or
    exceeded is told."""

    def accepted(self, *entries):
        file = self.folder / "accepted.json"
        file.write_text(json.dumps({"accepted": [
            {"benchmark": "gemm f32 m=5, tuned, hip", "slower": "12 %", "reason": "driver 580", "until": "9999-12-31",
             **entry} for entry in entries]}))
        return file

    def compare(self, *entries, factor=1.1, form="text", **others):
        files = self.baseline("a.csv", **others), self.baseline("b.csv", factor, **others)
        return self.bench("compare", *files, "--accept", self.accepted(*entries), "--format", form)

    def test_an_accepted_row_is_no_regression(self):
        result = self.compare({"device": "card"})
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertRegex(result.stdout.splitlines()[1],
                         r"^accepted .*\+10\.0 %.*m=5.*\(accepted until 9999-12-31: driver 580\)")
        self.assertIn("8 rows: 0 slower by more than 5 %, 0 failing, 0 faster, 7 the same, 0 inconclusive, 1 accepted",
                      result.stdout)
        markdown = self.compare({}, form="markdown")
        self.assertEqual(markdown.returncode, 0)
        self.assertIn("| accepted |", markdown.stdout.split("<details>")[0])
        found = json.loads(self.compare({}, form="json").stdout)
        self.assertEqual((found["regressions"], found["counts"]["slower"], found["counts"]["accepted"]), (0, 0, 1))
        self.assertEqual((found["results"][0]["finding"], found["results"][0]["accepted"]),
                         ("accepted", {"reason": "driver 580", "until": "9999-12-31"}))
        self.assertEqual(found["acceptances"], [
            {"benchmark": "gemm f32 m=5, tuned, hip", "device": "*", "slower": 0.12, "reason": "driver 580",
             "until": "9999-12-31", "state": "used", "rows": 1}])
        github = json.loads(self.compare({}, form="github").stdout)
        self.assertIn("finding: accepted until 9999-12-31: driver 580", github[0]["extra"])
        self.assertIn("gemm f32 m=5, tuned, hip", json.loads(self.compare({}, form="bmf").stdout))

    def test_what_does_not_hold_any_more_is_told(self):
        for entry, factor, code, expected in (
                ({"until": "2020-01-31"}, 1.1, 4, "expired on 2020-01-31 (driver 580)"),
                ({"slower": "8 %"}, 1.1, 4, "up to 8 % is exceeded"),
                ({"device": "another"}, 1.1, 4, "is unused: no row matches"),
                ({}, 1.0, 0, "is unused: no row is slower")):
            for form in ("text", "markdown"):
                with self.subTest(expected=expected, form=form):
                    result = self.compare(entry, factor=factor, form=form)
                    self.assertEqual(result.returncode, code, result.stdout)
                    self.assertIn(expected, result.stdout)
        self.assertEqual(self.compare({"benchmark": "gemm f32 m=3*"}, {"benchmark": "*m=5*"}).returncode, 0)

    def test_bad_files(self):
        base = self.baseline("a.csv")
        bad = self.folder / "bad.json"
        bad.write_text('{"accepted": [{"benchmark": "*"}]}')
        self.refused(self.bench("compare", base, base, "--accept", bad), 2, "--accept: ", "bad.json: accepted[0].slower")
        self.refused(self.bench("compare", base, base, "--accept", "none.json"), 2, "none.json: No such file")


# No newline: fields of a baseline can't have one.
HOSTILE = 'a|b\x1b\x0b| fails | <img src=x onerror="1"> `c` [d](e) *f* & "g" \\'


class CompareFormats(Baselines):
    """The forms that other programs read."""

    def report(self, form, *files, code=4):
        result = self.bench("compare", *files, "--format", form)
        self.assertEqual(result.returncode, code, result.stderr + result.stdout)
        self.assertEqual(result.stderr, "")
        return result.stdout if form in ("text", "markdown") else json.loads(result.stdout)

    def cells(self, line):
        """Returns the cells of a row of a Markdown table, as GitHub splits it."""
        self.assertRegex(line, r"^\|.*\|$")
        return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]

    def pair(self, **others):
        return self.baseline("a.csv", **others), self.baseline("b.csv", 1.1, **others)

    def test_text_is_the_default(self):
        files = self.pair()
        self.assertEqual(self.report("text", *files), self.bench("compare", *files).stdout)
        self.refused(self.bench("compare", *files, "--format", "xml"), 2, "--format xml", "markdown", "github")

    def test_markdown_has_significant_changes_first(self):
        lines = self.report("markdown", *self.pair()).splitlines()
        self.assertRegex(lines[0], r"^\*\*8 rows: 1 slower .*\*\* on card$")
        rows = [self.cells(line) for line in lines if line.startswith("|")]
        self.assertEqual([row[0] for row in rows], ["finding", "---", "slower", "finding", "---"] + 7 * ["same"])
        self.assertEqual({len(row) for row in rows}, {6})
        self.assertEqual(rows[2][3], "+10.0 %")
        self.assertEqual(rows[2][5], "gemm f32 m=5, tuned, hip")
        closed = lines.index("<details><summary>7 rows without a significant change</summary>")
        self.assertGreater(closed, next(n for n, line in enumerate(lines) if line.startswith("| slower")))
        self.assertEqual(lines[closed + 1], "")  # without it, the table is not one
        self.assertEqual(lines[-1], "</details>")

    def test_markdown_without_changes_has_no_open_table(self):
        text = self.report("markdown", *2 * [self.baseline("a.csv")], code=0)
        self.assertNotIn("|", text.split("<details>")[0])

    def test_json(self):
        base, fresh = self.pair()
        found = self.report("json", base, fresh)
        self.assertEqual(found["format"], "greta-compare 1")
        self.assertEqual((found["base"]["file"], found["new"]["file"]), (str(base), str(fresh)))
        self.assertEqual((found["new"]["device"], found["threshold"], found["regressions"]), ("card", 0.05, 1))
        self.assertEqual(found["counts"], {"slower": 1, "accepted": 0, "fails": 0, "faster": 0, "same": 7,
                                           "inconclusive": 0, "only_before": 0, "only_now": 0})
        first = found["results"][0]
        self.assertEqual((first["finding"], first["problem"], first["cold"]), ("slower", "m=5", True))
        self.assertAlmostEqual(first["ratio"], 1.1, 3)
        self.assertTrue(1.05 < first["ratio_low"] <= first["ratio"] <= first["ratio_high"])
        self.assertAlmostEqual(first["before"]["median_us"] * 1.1, first["now"]["median_us"], 3)
        self.assertEqual(first["now"]["status"], "ok")

    def test_json_has_rows_that_fail_and_rows_of_one_side(self):
        base, fresh = self.pair()
        text = fresh.read_text().replace("m=1,", "m=100,")
        fresh.write_text(re.sub(r"(m=7,.*,winner),ok,[\d.]+,", r"\1,correctness,,", text))
        found = self.report("json", base, fresh)
        rows = {row["problem"]: row for row in found["results"]}
        self.assertEqual(rows["m=7"]["finding"], "fails")
        self.assertEqual(rows["m=7"]["now"]["status"], "correctness")
        self.assertEqual((rows["m=7"]["now"]["median_us"], rows["m=7"]["ratio"]), (None, None))
        self.assertEqual((rows["m=1"]["finding"], rows["m=1"]["now"]), ("only before", None))
        self.assertEqual((rows["m=100"]["finding"], rows["m=100"]["before"]), ("only now", None))
        self.assertEqual((found["regressions"], found["counts"]["fails"]), (2, 1))
        table = [self.cells(line) for line in self.report("markdown", base, fresh).splitlines()
                 if line.startswith("|")]
        self.assertEqual([row[0] for row in table[2:6]], ["fails", "slower", "only before", "only now"])
        for names in (set(self.report("bmf", base, fresh)),
                      {entry["name"] for entry in self.report("github", base, fresh)}):
            self.assertEqual(len(names), 7)
            self.assertIn("gemm f32 m=100, tuned, hip", names)
            self.assertNotIn("gemm f32 m=7, tuned, hip", names)

    def test_bencher(self):
        found = self.report("bmf", *self.pair())
        self.assertEqual(len(found), 8)
        self.assertEqual(found["gemm f32 m=0, tuned, hip"], {
            "latency": {"value": 100050, "lower_value": 100040, "upper_value": 100070}})
        for measures in found.values():
            latency = measures["latency"]
            self.assertTrue(latency["lower_value"] < latency["value"] < latency["upper_value"])

    def test_github_action_benchmark(self):
        found = self.report("github", *self.pair())
        self.assertEqual(len({entry["name"] for entry in found}), 8)
        first = found[0]
        self.assertEqual(set(first), {"name", "unit", "value", "range", "extra"})
        self.assertEqual((first["name"], first["unit"]), ("gemm f32 m=5, tuned, hip", "ns"))
        self.assertAlmostEqual(first["value"], 105.05 * 1.1 * 1000, 1)
        self.assertEqual(first["range"], "± 16.5")
        self.assertIn("device: card\nfinding: slower\nratio to the older baseline: 1.100 (", first["extra"])

    def test_the_name_of_a_benchmark_stays_when_it_is_tuned(self):
        for origin, name in (("winner", "tuned"), ("nearest shape", "tuned"), ("default", "default"),
                             ("static prior", "static prior")):
            file = self.baseline("a.csv", origin=origin)
            self.assertIn(f"gemm f32 m=3, {name}, hip", self.report("bmf", file, file, code=0))
        warm = self.baseline("a.csv", origin="measured", cache="warm")
        self.assertIn("gemm f32 m=3, hip, warm", self.report("bmf", warm, warm, code=0))

    def test_hostile_names_stay_in_their_place(self):
        files = self.pair(op=HOSTILE, device=HOSTILE, driver=HOSTILE)
        text = self.report("markdown", *files)
        rows = [self.cells(line) for line in text.splitlines() if line.startswith("|")]
        self.assertEqual(len(rows), 12)
        self.assertEqual({len(row) for row in rows}, {6})
        self.assertEqual([row[0] for row in rows].count("fails"), 0)
        for line in text.splitlines():
            if not re.fullmatch(r"<details>.*|</details>", line):
                self.assertNotRegex(line, r"[<>]|&(?!amp;|lt;|gt;)|(?<!\\)[`\[\]]")
        self.assertIn(r"a\|b\\x1b\\x0b\| fails \| &lt;img", text)
        found = self.report("json", *files)
        self.assertEqual((found["results"][0]["op"], found["new"]["driver"]), (HOSTILE, HOSTILE))
        for entry in self.report("github", *files):
            self.assertEqual(len(entry["name"].splitlines()), 1)
            self.assertEqual(len(entry["extra"].splitlines()), 3)
        self.assertEqual(len(self.report("bmf", *files)), 8)


class CheckComparison(Baselines):
    """The script that measures how reliable the comparison is, on runs that exist already."""

    def check(self, *words):
        script = SOURCE / "scripts/check_comparison.py"
        return subprocess.run([sys.executable, script, self.folder, "--bin", pathlib.Path(BENCH).parent,
                               *map(str, words)], env=self.env, text=True, capture_output=True)

    def runs(self, device, processes, factor=1.0):
        self.baseline(f"first-{device}.csv", us=4, processes=processes)
        self.baseline(f"second-{device}.csv", factor, us=4, processes=processes)

    def test_rows_are_found_if_they_come_from_several_processes(self):
        self.runs("hip-0", 10)
        self.runs("vulkan-0", "")
        result = self.check("--devices", "hip:0")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn("16 of 16 rows of 3 to 16 µs that were made 10 % slower are found", result.stdout)
        self.assertEqual((self.folder / "summary.txt").read_text(), result.stdout)
        result = self.check("--devices", "vulkan:0")
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        self.assertIn("0 of 16 rows", result.stdout)
        self.assertIn("not found in second-vulkan-0: gemm f32 m=3, winner, 4.12 µs", result.stdout)
        self.assertFalse((self.folder / "planted.csv").exists())

    def test_a_report_on_an_honest_pair_is_a_failure(self):
        self.runs("hip-0", 10, 1.2)
        result = self.check("--devices", "hip:0")
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        self.assertIn("+20.0 %", result.stdout)

    def test_no_row_of_these_times_is_a_failure(self):
        self.runs("hip-0", 10)
        result = self.check("--devices", "hip:0", "--shortest", 100, "--longest", 200)
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        self.assertIn("0 of 0 rows", result.stdout)

    def test_usage(self):
        for words, expected in ((["--bin", self.folder], "no greta-bench"), (["--shipped", "none"], "none")):
            result = self.check(*words)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn(expected, result.stderr)

    def test_it_measures_what_is_missing(self):
        preset = self.preset(iterations=6, batch=2, problems=[GEMM])
        words = ("--devices", "vulkan:0", "--preset", preset, "--longest", 1e6, "--found", 0, "--",
                 "--compute-only", "--processes", "all", "--settle", 0, "--flush", 1)
        result = self.check(*words)
        self.assertIn("first run on vulkan:0: exit code 0", result.stdout, result.stderr)
        self.assertIn("of 2 rows", result.stdout)
        log = (self.folder / "log.txt").read_text()
        self.assertEqual(log.count("== "), 2, log)
        for name in ("first-vulkan-0.csv", "second-vulkan-0.csv"):
            self.assertEqual(self.rows(self.folder / name)[0]["processes"], "6")
        result = self.check(*words)
        self.assertNotIn("exit code", result.stdout)
        result = self.check("--devices", "hip:77")
        self.assertEqual(result.returncode, 1)
        self.assertIn("first run on hip:77: exit code 2", result.stdout)
        self.assertIn("hip:77", result.stdout.splitlines()[1])  # what greta-bench says


if __name__ == "__main__":
    unittest.main()
