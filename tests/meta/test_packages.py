"""Protects: cpack's Debian packages can be installed and used, and keep the rules of Debian's policy that lintian counts
as errors. Uses the built programs as they are."""

import functools
import gzip
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

BUILD = pathlib.Path(os.environ["GRETA_BUILD"])
MAINTAINER = {"DEBFULLNAME": "Ford Prefect", "DEBEMAIL": "ford@example.org"}
NAMES = ["greta", "libgreta-dev", "libgreta1", "python3-greta"]


def said(*words, **options):
    return subprocess.run(words, check=True, capture_output=True, text=True, **options).stdout


def elf_files(root):
    for file in sorted(root.rglob("*")):
        if file.is_file() and not file.is_symlink():
            with file.open("rb") as stream:
                if stream.read(4) == b"\x7fELF":
                    yield file


def needed(file):
    return re.findall(r"\(NEEDED\).*\[(.*)\]", said("readelf", "--dynamic", "--wide", file))


@functools.cache  # the search reads the list of files of every package
def owners(library):
    found = subprocess.run(["dpkg-query", "--search", f"*/{library}"], capture_output=True, text=True).stdout
    return {line.split(":")[0] for line in found.splitlines()}


class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="greta_packages_")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        # Without compression, which takes most of the time.
        said(*cls.cpack(), "-D", "CPACK_DEBIAN_COMPRESSION_TYPE=none", cwd=cls.folder,
             env=dict(os.environ, SOURCE_DATE_EPOCH="1700000000", **MAINTAINER))
        cls.files = {said("dpkg-deb", "--field", file, "Package").strip(): file
                     for file in (cls.folder / "cpack").glob("*.deb")}
        cls.root, cls.parts = cls.folder / "root", {}
        for name, file in cls.files.items():
            cls.parts[name] = cls.folder / name
            said("dpkg-deb", "--raw-extract", file, cls.parts[name])
            said("dpkg", "--extract", file, cls.root)
        shutil.rmtree(cls.folder / "cpack/_CPack_Packages")

    @classmethod
    def cpack(cls):
        return ("cpack", "-G", "DEB", "--config", BUILD / "CPackConfig.cmake", "-B", cls.folder / "cpack",
                "-D", "CPACK_PACKAGE_CONTACT=")

    def field(self, name, field):
        return said("dpkg-deb", "--field", self.files[name], field).strip()

    def packages_in(self, name, field):
        return {re.sub(r"[ :(].*", "", one) for one in re.split(r"[,|] *", self.field(name, field))}

    def test_there_is_one_for_each_purpose(self):
        self.assertEqual(sorted(self.files), NAMES)
        for name, file in self.files.items():
            architecture = "all" if name == "python3-greta" else said("dpkg", "--print-architecture").strip()
            self.assertRegex(file.name, rf"^{name}_\d+\.\d+\.\d+_{architecture}\.deb$")
        for name in set(NAMES) - {"libgreta1"}:
            self.assertIn(f"libgreta1 (= {self.field(name, 'Version')})", self.field(name, "Depends"))

    def test_without_a_maintainer_there_are_none(self):
        for given in ({}, {"DEBEMAIL": "ford@example.org"}, {"DEBFULLNAME": "Ford", "DEBEMAIL": "ford@localhost"},
                      {"DEBEMAIL": "Ford <ford>"}):
            with self.subTest(given):
                env = {name: value for name, value in os.environ.items() if name not in MAINTAINER}
                result = subprocess.run([*self.cpack(), "-B", self.folder / "none"], cwd=self.folder, text=True,
                                        capture_output=True, env=env | given)
                self.assertNotEqual(result.returncode, 0)
                self.assertRegex(" ".join(result.stderr.split()), "need a maintainer.* set DEBFULLNAME and DEBEMAIL")
                self.assertEqual(list(self.folder.glob("none/*.deb")), [])

    def test_no_file_is_in_two_packages(self):
        seen = {}
        for name, part in self.parts.items():
            for file in part.rglob("*"):
                path = file.relative_to(part)
                if path.parts[0] != "DEBIAN" and (file.is_symlink() or not file.is_dir()):
                    self.assertNotIn(path, seen, f"in {name}, too")
                    seen[path] = name
        self.assertEqual(seen[pathlib.Path("usr/bin/greta-tune")], "greta")
        self.assertEqual(seen[pathlib.Path("usr/lib/libgreta.so.1")], "libgreta1")
        self.assertEqual(seen[pathlib.Path("usr/lib/libgreta.so")], "libgreta-dev")
        self.assertEqual(seen[pathlib.Path("usr/libexec/greta/greta-compile-helper")], "libgreta1")
        self.assertEqual(seen[pathlib.Path("usr/lib/greta/preload/libgreta-capture.so")], "greta")
        self.assertEqual(seen[pathlib.Path("usr/include/greta.h")], "libgreta-dev")
        self.assertEqual(seen[pathlib.Path("usr/lib/python3/dist-packages/greta/__init__.py")], "python3-greta")

    def test_dependencies_contain_every_library_that_is_linked(self):
        """Each library's package here is a dependency, so that it is there after an installation."""
        checked = 0
        for name in ("greta", "libgreta1"):
            depends = self.packages_in(name, "Depends")
            for file in elf_files(self.parts[name]):
                for library in needed(file):
                    self.assertTrue(owners(library) & depends,
                                    f"{file.name}: {library} of {owners(library)}, not in {depends}")
                    checked += 1
        self.assertGreater(checked, 20)
        self.assertIn("libvulkan1", self.packages_in("greta", "Depends"))
        # What the CMake package finds.
        config = (self.root / "usr/lib/cmake/greta/greta-config.cmake").read_text()
        packages = {"Threads": "libc6-dev", "fmt": "libfmt-dev", "nlohmann_json": "nlohmann-json3-dev",
                    "SQLiteCpp": "libsqlitecpp-dev", "SPIRV-Tools-opt": "spirv-tools", "glslang": "glslang-dev",
                    "ZLIB": "zlib1g-dev"}
        found = re.findall(r"find_dependency\(([\w-]+)", config)
        self.assertEqual(set(found), set(packages))
        depends = self.packages_in("libgreta-dev", "Depends") | {"libc6-dev"}
        self.assertEqual({packages[one] for one in found} - depends, set())
        self.assertIn("glslang-tools", depends, "glslang's CMake package requires its programs")

    def test_control_files(self):
        for name, part in self.parts.items():
            control = part / "DEBIAN"
            lines = (control / "control").read_text().splitlines()
            start = next(n for n, line in enumerate(lines) if line.startswith("Description: "))
            synopsis, extended = lines[start].removeprefix("Description: "), lines[start + 1:start + 3]
            self.assertTrue(len(synopsis) < 80 and not synopsis.endswith("."), synopsis)
            self.assertFalse(synopsis.lower().startswith(f"{name} "))
            for line in extended:
                self.assertRegex(line, r"^ [A-Za-z].{10,79}$")
            self.assertEqual(self.field(name, "Priority"), "optional")
            self.assertIn(self.field(name, "Section"), ("utils", "libs", "libdevel", "python"))
            self.assertEqual(self.field(name, "Maintainer"), "Ford Prefect <ford@example.org>")
            for line in (control / "md5sums").read_text().splitlines():
                digest, path = line.split(maxsplit=1)
                self.assertEqual(hashlib.md5((part / path).read_bytes()).hexdigest(), digest, path)
        library = self.parts["libgreta1"] / "DEBIAN"
        self.assertEqual((library / "triggers").read_text(), "activate-noawait ldconfig\n")
        declared = {tuple(line.split()[:3]) for line in (library / "shlibs").read_text().splitlines()}
        self.assertEqual(declared, {(f"libgreta{kind}", "1", "libgreta1") for kind in ("", "-tuner", "-hip-host")})
        for name in set(NAMES) - {"libgreta1"}:
            self.assertFalse((self.parts[name] / "DEBIAN/shlibs").exists())
        # cpack's own call ldconfig. Python's make, and remove, what it compiles.
        scripts = {(name, file.name) for name in NAMES for file in (self.parts[name] / "DEBIAN").iterdir()
                   if file.stat().st_mode & 0o111}
        self.assertEqual(scripts, {("libgreta1", "postinst"), ("libgreta1", "postrm"), ("python3-greta", "postinst"),
                                   ("python3-greta", "prerm")})

    def test_documents(self):
        for name, part in self.parts.items():
            folder = part / "usr/share/doc" / name
            self.assertIn("License: Apache-2.0\n", (folder / "copyright").read_text())
            self.assertIn("/usr/share/common-licenses/Apache-2.0", (folder / "copyright").read_text())
            with gzip.open(folder / "changelog.gz", "rt") as stream:
                log = stream.read()
            head = re.escape(f"greta ({self.field(name, 'Version')}) unstable; urgency=medium\n\n  * ")
            self.assertRegex(log, "^" + head)
            self.assertIn(f"\n -- {self.field(name, 'Maintainer')}  Tue, 14 Nov 2023 22:13:20 +0000\n", log)
            self.assertLessEqual(max(map(len, log.splitlines())), 80)
        with gzip.open(self.root / "usr/share/doc/greta/CHANGELOG.md.gz", "rt") as stream:
            self.assertIn("# Changelog", stream.read())
        programs = sorted(file.name for file in (self.root / "usr/bin").iterdir())
        self.assertEqual(programs, ["greta-bench", "greta-db", "greta-report", "greta-run", "greta-tune"])
        share = self.root / "usr/share"
        for program in programs:
            page = share / f"man/man1/{program}.1.gz"
            self.assertEqual(page.read_bytes()[4:8], bytes(4), "gzip -n stores no time")
            self.assertIn(f".TH {program} 1", gzip.decompress(page.read_bytes()).decode())
            for completion in (f"bash-completion/completions/{program}", f"zsh/vendor-completions/_{program}",
                               f"fish/vendor_completions.d/{program}.fish"):
                self.assertTrue((share / completion).is_file(), completion)
        self.assertEqual([str(file) for file in share.glob("man/man*/*") if file.suffix != ".gz"], [])

    def test_owners_and_permissions(self):
        for name, file in self.files.items():
            with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", file], stdout=subprocess.PIPE) as process:
                with tarfile.open(fileobj=process.stdout, mode="r|") as archive:
                    for entry in archive:
                        self.assertEqual((entry.uname, entry.gname), ("root", "root"), entry.name)
                        program = "/bin/" in entry.name or "/libexec/" in entry.name
                        mode = 0o755 if entry.isdir() or program else 0o644
                        if not entry.issym():
                            self.assertEqual(oct(entry.mode), oct(mode), entry.name)
                        self.assertTrue(entry.name.startswith("./usr") or entry.name in (".", "./"), entry.name)

    def test_binaries_are_stripped_and_have_no_search_path(self):
        found = list(elf_files(self.root))
        self.assertGreater(len(found), 6)
        for file in found:
            sections = said("readelf", "--section-headers", "--wide", file)
            self.assertNotIn(" .debug_info", sections, file.name)
            self.assertNotIn(" .symtab", sections, file.name)
            self.assertNotRegex(said("readelf", "--dynamic", "--wide", file), r"\((?:RPATH|RUNPATH)\)", file.name)
        static = sorted((self.root / "usr/lib").glob("*.a"))
        self.assertGreater(len(static), 4)
        self.assertNotIn(" .debug_info", said("readelf", "--section-headers", "--wide", static[0]))

    def test_the_first_command_works_as_installed(self):
        home = self.folder / "home"
        env = {"HOME": str(home), "PATH": os.environ["PATH"], "GALLIVM_PERF": "nopt"}
        report = said(self.root / "usr/bin/greta-tune", "gemm", "--m", "64", "--n", "48", "--k", "40", "--budget", "2",
                      "--device", "vulkan:0", "--flush", "1", "--no-lock", env=env)
        self.assertRegex(report, r"\n  winner +\w+ ")
        self.assertRegex(report, r"\n  stored in +.*\.local/share/greta/tuned\.db")
        info = said(self.root / "usr/bin/greta-db", "info", env=env)
        self.assertIn(str(self.root / "usr/share/greta/tuned/lavapipe/lavapipe.db"), info)
        listed = said(self.root / "usr/bin/greta-bench", "--preset", "smoke", "--device", "vulkan:0", "--flush", "1",
                      "--no-lock", "--compute-only", "--benchmark_list_tests", env=env)
        self.assertIn("gemm", listed)

    def test_the_python_package_finds_its_library(self):
        script = "import greta; print(greta.__file__); print(greta.version())"
        printed = said(sys.executable, "-c", script, env={
            "PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": str(self.root / "usr/lib/python3/dist-packages")}).splitlines()
        self.assertTrue(printed[0].startswith(str(self.root)), printed)
        self.assertEqual(printed[1], self.field("python3-greta", "Version"))


if __name__ == "__main__":
    unittest.main()
