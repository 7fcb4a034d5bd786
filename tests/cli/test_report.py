"""Protects: greta-report, --report and --plot: the page holds what was tuned, and bad input gives one line and
changes nothing."""
import gzip
import json
import os
import pathlib
import re
import shlex
import signal
import socket
import subprocess
import unittest
import urllib.request

from cli_case import BENCH, SMALL, SOURCE, TUNE, Case
from sealed_database import damage

REPORT = os.environ["GRETA_REPORT"]
QUICK = ["--budget", "3", "--device", "vulkan:0"]
NO_PAGE = "this build has no report page: "


class Report(Case):
    known_devices = "vulkan:0"

    def report(self, *files, out="page.html"):
        return self.run_words(REPORT, *map(str, files), "--out", str(self.folder / out))

    def refused(self, result, word, code=2):
        """Checks that a command ended with one line that names the word."""
        self.assertEqual(result.returncode, code, result.stderr)
        self.assertEqual(result.stdout, "")
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        self.assertIn(word, result.stderr)
        self.assertFalse((self.folder / "page.html").exists())
        self.assertEqual(list(self.folder.glob("*.part")), [])

    def data(self, name="page.html"):
        page = (self.folder / name).read_text()
        return json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL).group(1))

    def has_page(self):
        """Returns whether this build has the page; without it, the reason is one line."""
        result = self.report(self.db, out="probe.html")
        if result.returncode == 0:
            return True
        self.refused(result, NO_PAGE, code=1)
        return False

    def test_only_pages_are_replaced(self):
        """A database or a baseline that is named as the page is lost otherwise."""
        if not self.has_page():
            return
        before = self.db.read_bytes()
        self.refused(self.report(self.db, out=self.db.name), "is not a page")
        csv = self.folder / "kept.csv"
        csv.write_text("a,b\n")
        self.refused(self.report(self.db, out="kept.csv"), "kept.csv: exists and is not a page")
        self.refused(self.run_tune(*SMALL, *QUICK, "--db", self.db, "--report", self.db), "is not a page")
        self.assertEqual((self.db.read_bytes(), csv.read_text()), (before, "a,b\n"))
        # The page of another program is not GRETA's.
        other = self.folder / "other.html"
        other.write_text("<!doctype html>\n<title>Notes</title>")
        self.refused(self.report(self.db, out="other.html"), "other.html: exists and is not a page")
        self.assertIn("Notes", other.read_text())
        # A database that the tune would create is refused before anything runs.
        new = self.folder / "new.db"
        for name in (new, self.folder / "." / "new.db"):
            result = self.run_tune(*SMALL, "--budget", "2", "--device", "hip-host:0", "--db", new, "--report", name)
            self.refused(result, "is not a page")
            self.assertFalse(new.exists())
        rows = self.folder / "new.csv"
        self.refused(self.run_tune(*SMALL, *QUICK, "--db", self.db, "--csv", rows, "--report", rows), "is not a page")
        self.assertEqual(self.report(self.db).returncode, 0)
        self.assertEqual(self.report(self.db).returncode, 0)

    def test_standard_output_is_no_file(self):
        if not self.has_page():
            return
        self.refused(self.run_words(REPORT, str(self.db), "--out", "-"), "--out -: a page is written to a file")
        self.assertFalse((self.folder / "-").exists())

    def test_damage_is_named(self):
        """A page of what is left looked like one of everything."""
        if not self.has_page():
            return
        self.assertEqual(self.run_tune(*SMALL, *QUICK, "--db", self.db).returncode, 0)
        self.assertEqual(self.report(self.db).returncode, 0)
        self.assertEqual(self.data()["made"]["files"][0]["damaged"], 0)
        damage(self.db, "update winners set median_us=1e308")
        result = self.report(self.db)
        self.assertEqual(result.returncode, 1)
        self.assertIn("1 row skipped because of damage", result.stderr)
        self.assertIn("winners: the row of gemm", result.stderr)
        data = self.data()
        self.assertEqual(data["made"]["files"][0]["damaged"], 1)
        self.assertEqual(data["results"], [])

    def test_files_are_told_apart_and_taken_once(self):
        if not self.has_page():
            return
        for name in ("one", "two"):
            (self.folder / name).mkdir()
            (self.folder / name / "tuned.db").write_bytes(self.db.read_bytes())
        self.assertEqual(self.report(self.db).returncode, 0)
        files = [self.folder / "one/tuned.db", self.folder / "two/tuned.db", self.folder / "one/../one/tuned.db", self.db]
        self.assertEqual(self.report(*files).returncode, 0)
        names = [file["name"] for file in self.data()["made"]["files"]]
        if self.db.name == "tuned.db":
            self.assertEqual(names, ["one/tuned.db", "two/tuned.db", f"{self.folder.name}/tuned.db"])
        else:
            self.assertEqual(names, ["one/tuned.db", "two/tuned.db", self.db.name])

    def test_a_tune_writes_the_page_of_its_database(self):
        page = self.folder / "page.html"
        result = self.run_tune(*SMALL, *QUICK, "--db", self.db, "--report", page)
        if not self.has_page():
            self.refused(result, NO_PAGE, code=1)
            return
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(f"report       {page}"[:40], result.stdout)
        data = self.data()
        self.assertEqual(data["searches"][0]["problem"], data["results"][0]["problem"])
        self.assertEqual(data["results"][0]["dims"], "m=64 n=48 k=40")
        self.assertGreaterEqual(data["searches"][0]["trials"], 3)
        self.assertIn("--m 64 --n 48 --k 40", data["results"][0]["command"])
        # The same files again give the same page, except for the time.
        again = self.report(self.db)
        self.assertEqual(again.returncode, 0, again.stderr)
        second = self.data()
        self.assertEqual({**second, "made": 0}, {**data, "made": 0})

    def test_plots_need_utf8(self):
        self.assertEqual(self.run_tune(*SMALL, *QUICK, "--db", self.db).returncode, 0)
        show = [TUNE, "show", "--plot", "--db", str(self.db)]
        self.env["LC_ALL"] = "C"
        self.refused(self.run_words(*show), "UTF-8")
        self.env["LC_ALL"] = "C.UTF-8"
        shown = self.run_words(*show)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertRegex(shown.stdout, "[\u2801-\u28ff]")
        self.assertRegex(shown.stdout, r"roofline +[\u2588-\u2591]{40} [\d.]+ %")
        self.refused(self.run_words(*show, "--json"), "--plot")

    def test_own_kernels_are_known_by_their_folders(self):
        if not self.has_page():
            return
        kernels = SOURCE / "tests/data/kernels"
        tuned = self.run_tune("kernel", kernels / "vector_add.jsonc", "--n", "3000", "--device",
                              "hip-host:0", "--db", self.db, "--budget", "2", "--no-lock", "--flush", "1", "--report",
                              self.folder / "page.html")
        self.assertEqual(tuned.returncode, 0, tuned.stderr)
        self.assertEqual(self.data()["results"][0]["stale"], [])
        # Words stand for values wherever configurations are shown.
        self.assertRegex(self.data()["results"][0]["config"], " MODE=(strided|blocked) ")
        search = self.data()["searches"][0]
        mode = next(one for one in search["parameters"] if one["name"] == "MODE")
        self.assertLessEqual(set(mode["values"]), {"strided", "blocked"})
        self.assertEqual(self.report(self.db).returncode, 0)
        self.assertNotEqual(self.data()["results"][0]["stale"], [])
        self.assertEqual(self.report(self.db, "--kernels", kernels).returncode, 0)
        self.assertEqual(self.data()["results"][0]["stale"], [])

    def test_commands_for_shipped_databases_work(self):
        """Nothing can be written into a database that ships, or that another user owns."""
        if not self.has_page():
            return
        self.assertEqual(self.run_tune(*SMALL, *QUICK, "--db", self.db).returncode, 0)
        shipped = self.folder / "of a card.db"
        self.assertEqual(self.run_db("export", "--ship", "--out", shipped, db=self.db).returncode, 0)
        self.assertEqual(self.report(shipped).returncode, 0)
        command = self.data()["results"][0]["command"]
        self.assertTrue(command.endswith(f" --shipped '{shipped}'"), command)
        self.assertNotIn(" --db ", command)
        program, *words = shlex.split(command)
        self.assertEqual(program, "greta-tune")
        words[words.index("--budget") + 1] = "2"
        before = shipped.read_bytes()
        again = self.run_words(TUNE, *words, "--flush", "1", "--no-lock")
        self.assertEqual(again.returncode, 0, again.stderr)
        own = pathlib.Path(self.env["HOME"], ".local/share/greta/tuned.db")
        self.assertEqual(json.loads(self.run_db("info", "--json", db=own).stdout)["results"], 1)
        self.assertEqual(shipped.read_bytes(), before)
        # What GRETA ships is known without an option.
        inside = self.shipped / "card" / "tuned.db"
        inside.parent.mkdir()
        inside.write_bytes(before)
        self.assertEqual(self.report(inside).returncode, 0)
        self.assertNotIn("--shipped", self.data()["results"][0]["command"])

    def test_baselines_name_the_commit(self):
        if not self.has_page():
            return
        csv = self.folder / "rows.csv"
        self.assertEqual(self.run_tune(*SMALL, *QUICK, "--db", self.db, "--csv", csv).returncode, 0)
        header, row = csv.read_text().splitlines()[:2]
        self.assertTrue(header.endswith(",processes,revision,preset,expect,counters,limiter"))
        revision, *of_benchmarks = row.rsplit(",", 5)[1:]
        self.assertEqual(of_benchmarks, ['""'] * 4)  # the row is of a tune
        self.assertRegex(revision, r"^([0-9a-f]{12}(-dirty)?)?$")
        self.assertEqual(self.report(csv).returncode, 0)
        self.assertEqual(self.data()["baselines"][0]["files"][0]["revision"], revision)
        csv.write_text(header + "\n")
        (self.folder / "page.html").unlink()
        self.refused(self.report(csv), "rows.csv: has no rows")
        csv.write_text(header.partition(",")[0] + ",others\n")
        self.refused(self.report(csv), "rows.csv: is not a CSV file of this version of GRETA: it has other columns")

    def test_served_pages_stay_reachable_and_have_a_port_of_their_own(self):
        if not self.has_page():
            return
        server = subprocess.Popen([REPORT, "serve", str(self.db)], env=self.env, text=True, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE)
        self.addCleanup(server.communicate)
        self.addCleanup(server.send_signal, signal.SIGINT)
        address = server.stdout.readline().strip()
        if not address:
            self.assertIn("cpp-httplib", server.stderr.readline())
            return
        port = int(address.split(":")[2].split("/")[0])
        idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(40)]
        for one in idle:
            self.addCleanup(one.close)
        waiting = [urllib.request.urlopen(address + "events", timeout=30) for _ in range(20)]
        for one in waiting:
            self.addCleanup(one.close)
        with urllib.request.urlopen(address, timeout=30) as page:
            self.assertIn(b"<!doctype html>", page.read(100))
        second = self.run_words(REPORT, "serve", str(self.db), "--port", str(port))
        self.refused(second, f"--port {port}: is in use")

    def test_bad_input_gives_one_line(self):
        if not self.has_page():
            return
        missing = self.folder / "missing.db"
        self.refused(self.report(missing), "missing.db")
        text = self.folder / "notes.txt"
        text.write_text("not,a,baseline\n1,2\n")
        self.refused(self.report(text), "notes.txt")
        trace = self.folder / "trace.json"
        trace.write_text('{"events": []}')
        self.refused(self.report(trace), "trace.json")
        unknown = self.folder / "unknown"
        for content in (bytes(range(128, 255)), b"<!doctype html>\n<title>GRETA report</title>", b'{"traceEvents": [{"ph"',
                        b"not,a,baseline\n1,2\n"):
            unknown.write_bytes(content)
            self.refused(self.report(unknown), "unknown: neither a database, a recording, a baseline nor a trace")
        trace.write_text('{"traceEvents": [{"ph": "X", "pid": 1, "name": "a", "ts": "abc", "dur": 3}]}')
        self.refused(self.report(trace), 'trace.json: event 1: "ts" is not a time')
        trace.write_text('{"traceEvents": [{"ph": "M"}, {"ph": "X", "pid": 1, "name": "a", "ts": 1, "dur": -3}]}')
        self.refused(self.report(trace), 'trace.json: event 2: "dur" is not a time')
        cut = self.folder / "cut.jsonl.gz"
        cut.write_bytes(gzip.compress(b"x" * 1000)[:20])
        self.refused(self.report(cut), "cut.jsonl.gz")
        broken = self.folder / "broken.db"
        broken.write_bytes(b"SQLite format 3\0" + b"x" * 5000)
        self.refused(self.report(broken), "broken.db")
        self.refused(self.report(self.db, out="nowhere/page.html"), "no folder")
        self.refused(self.run_words(REPORT), "files")

    def test_a_page_that_cannot_be_written_is_refused_before_tuning(self):
        before = self.db.read_bytes()
        result = self.run_tune(*SMALL, *QUICK, "--db", self.db, "--report", self.folder / "no" / "page.html")
        self.refused(result, "--report")
        self.assertEqual(self.db.read_bytes(), before)
        bench = self.run_words(BENCH, "--preset", str(SOURCE / "presets" / "smoke.json"), "--db", str(self.db), "--report", "page.html")
        self.refused(bench, "--report: needs --export")


if __name__ == "__main__":
    unittest.main()
