"""Protects: libgreta.so and libgreta-tuner.so export exactly the functions that their headers
declare: test_exports.py LIBRARY HEADER."""

import pathlib
import re
import subprocess
import sys


def main():
    library, header = sys.argv[1:]
    text = re.sub(r"/\*.*?\*/", "", pathlib.Path(header).read_text(), flags=re.DOTALL)
    declared = set(re.findall(r"GRETA_API[^;(]*?\b(greta_\w+)\(", text))
    listing = subprocess.run(["nm", "--dynamic", "--defined-only", "--format=posix", library],
                             capture_output=True, text=True, check=True).stdout
    exported = {line.split()[0].split("@")[0] for line in listing.splitlines()}
    exported -= {"GRETA_1", "GRETA_TUNE_1"}  # the names of the versions
    print(f"{len(declared)} functions declared")
    if not declared or exported != declared:
        print("not exported:", sorted(declared - exported))
        print("not declared:", sorted(exported - declared))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
