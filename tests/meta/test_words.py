"""Protects: user-visible text uses the field's terms. A list names the expressions that are not used, each
with the preferred words. It applies to the string literals of the C++ sources, to documentation, presets,
and scripts."""

import ast
import re
import unittest

from test_repository import ROOT, tracked_files

# Expressions that are not used, and the preferred words.
WORDS = [(re.compile(expression, re.IGNORECASE), preferred) for expression, preferred in [
    (r"\bfor sure\b", "significantly"),
    (r"\bceilings?\b", "measured peak"),
    (r"\bstand-ins?\b", "proxy problem; of a library: replacement"),
    (r"\bright\b(?! of global)", "correct, passed"),
    (r"\bso (?:many|much)\b", "number of, amount of"),
    (r"\bbehind\b", "after, past"),
    (r"\b(?:told|telling)\b|(?<!/)\btells?\b(?![-(])", "report"),
    (r"\bcan't tell\b|\bunsure\b", "inconclusive, not significantly different"),
    (r"\bcircumstances?\b", "environment"),
    (r"\bplain(?:er|est)\b", "simplest"),
    (r"\bturned\b", "transposed"),
    (r"\balternating turns?\b", "alternating runs"),
    (r"\b(?:left|leaves?|leaving) (?:\w+ )?out\b", "skip, omit"),
    (r"\bwaves? of\b", "subgroup size"),
    (r"\banew\b|\bbegun again\b", "again, restarted"),
    (r"\bnot met\b|\b(?:cases|kernels) met\b|\bit met\b", "covered"),
    (r"\byardsticks?\b", "baseline"),
    (r"\bspelt\b", "spelling"),
    (r"\bsomebody\b", "someone, a developer"),
    (r"\bheeds?\b", "use, read"),
    (r"\btrouble\b", "error"),
    (r"\blikeliest\b", "most likely"),
    (r"\bcarr(?:y|ies) over\b", "can be converted"),
    (r"\bis sound\b|\bsound rows?\b", "intact"),
    (r"\bwould go\b|\bonly say\b", "dry run: would be removed, report"),
    (r"\bthere twice\b|\bis there already\b", "occurs twice, already exists"),
    (r"(?<!there )\bis no (?!longer)", "is not a"),
    (r"\bmemory of (?:its|their) own\b", "out-of-place; a separate allocation"),
    (r"\band (?:its|the) like\b", "similar"),
    (r"\bwhat is fused\b", "fused epilogue"),
    (r"\broom for\b", "capacity, space"),
    (r"\bas many as\b|\bhow many\b", "the number of"),
]]

# Values of JSON fields, which programs read.
VALUES = {"timed anew", "nothing is right any more"}

TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|R"(?P<tag>\w*)\((?P<raw>.*?)\)(?P=tag)"|"(?P<text>(?:[^"\\\n]|\\.)*)"'
                   r"|'(?:[^'\\\n]|\\.)+'", re.DOTALL)
BETWEEN = re.compile(r"\s*(?://[^\n]*\s*)*")
SQL = re.compile(r"\b(?:SELECT|FROM|JOIN|WHERE|INSERT|UPDATE|DELETE|PRAGMA|TABLE|ORDER BY|AND|IN|ON)\b|\w = \{\}")


def literals(source):
    """Yields line and text of C++ string literals, adjacent ones as one."""
    line, text, end = 0, "", None
    for token in TOKEN.finditer(source):
        part = token["raw"] if token["raw"] is not None else token["text"]
        if part is None:
            continue
        if end is None or not BETWEEN.fullmatch(source, end, token.start()):
            yield line, text
            line, text = source.count("\n", 0, token.start()) + 1, ""
        text, end = text + part, token.end()
    yield line, text


def sentences(source):
    """Returns the literals that are text: names have no spaces, and SQL has keywords in capitals."""
    return [(line, text) for line, text in literals(source)
            if " " in text.strip() and not SQL.search(text) and text not in VALUES]


def prose(markdown):
    """Returns numbered lines without code spans and the targets of links."""
    bare = re.sub(r"`[^`\n]*`|(?<=\])\([^)\s]*\)", "", markdown)
    return list(enumerate(bare.splitlines(), 1))


def commands(script):
    """Returns numbered lines without comments."""
    return [(number, line) for number, line in enumerate(script.splitlines(), 1)
            if not line.lstrip().startswith("#")]


def python_texts(source):
    """Returns the strings of a program that are text, documentation included."""
    return [(node.lineno, node.value) for node in ast.walk(ast.parse(source))
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and re.search(r"\w \w", node.value)]


READERS = [  # the first expression that matches a path decides
    (r"(?:tuner|runtime|kernels|db)/.*\.[ch]pp", sentences),
    (r"(?:docs/.*|presets/.*|README|CONTRIBUTING|CHANGELOG)\.md", prose),
    (r"presets/.*\.json|scripts/(?:ci/)?[^/]*\.sh|cmake/.*", commands),
    (r"scripts/.*\.py", python_texts),
]


def unwanted(texts):
    """Returns "line: words (preferred words)" for each use of an expression of the list."""
    return [f"{line}: {found[0]!r} in {text[max(0, found.start() - 30):found.end() + 30]!r} ({preferred})"
            for line, text in texts for expression, preferred in WORDS
            for found in expression.finditer(text)]


def texts_of(name):
    for path, read in READERS:
        if re.fullmatch(path, name):
            return read((ROOT / name).read_text())
    return []


class Words(unittest.TestCase):
    def test_texts_use_the_terms_of_the_field(self):
        read = 0
        for name in tracked_files():
            texts = texts_of(name)
            read += bool(texts)
            with self.subTest(name):
                self.assertEqual(unwanted(texts), [])
        self.assertGreater(read, 300)


class Readers(unittest.TestCase):
    """A planted expression is found where users read it, and only there."""

    def found(self, texts):
        return [one.split(" in ")[0] for one in unwanted(texts)]

    def test_literals_of_sources(self):
        source = ('// told in a comment\nprint("{} of {} "\n      "left out\\n", "told");\n/* "for sure" */\n'
                  'const char quote = \'"\'; f(R"x(it "is right" here)x");\n'
                  'query("SELECT * FROM circumstances WHERE id = 1");\n')
        self.assertEqual(self.found(sentences(source)), ["2: 'left out'", "5: 'right'"])

    def test_documentation(self):
        page = "The `circumstances` of [it](a-set-of-circumstances.md)\n\n    3 Ceilings are told apart\n"
        self.assertEqual(self.found(prose(page)), ["3: 'Ceilings'", "3: 'told'"])

    def test_scripts(self):
        self.assertEqual(self.found(commands("# behind\necho 'so many runs'\n")), ["2: 'so many'"])
        self.assertEqual(self.found(python_texts("x = 1  # behind\nprint(f'{x} waves of 64')\n")),
                         ["2: 'waves of'"])

    def test_every_expression_finds_what_it_is_for(self):
        samples = ["for sure", "Measured ceilings", "a stand-in", "all right", "so much", "the row behind", "is told",
                   "can't tell", "in the same circumstances", "the plainest kernel", "is turned",
                   "an alternating turn", "it leaves them out", "waves of 64", "timed anew", "cases of the kernels met",
                   "the yardstick", "as it was spelt", "somebody", "what drivers heed", "unknown trouble",
                   "the likeliest token", "a row carries over", "is sound", "it would go", "a key is there twice",
                   "it is no number", "it has memory of its own", "gemm and its like", "what is fused", "room for 3",
                   "how many"]
        self.assertEqual(len(samples), len(WORDS))
        for sample, (expression, _) in zip(samples, WORDS):
            with self.subTest(sample):
                self.assertRegex(sample, expression)
        self.assertEqual(unwanted([(1, "There is no device, and 3 of 4 passed.")]), [])


if __name__ == "__main__":
    unittest.main()
