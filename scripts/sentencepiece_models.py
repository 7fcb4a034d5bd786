#!/usr/bin/env python3
"""Makes tests/data/sentencepiece with the library SentencePiece (Debian's python3-sentencepiece, version 0.1.97).

    scripts/sentencepiece_models.py

Trains small models on the project's documentation, and writes the ids and the decoded texts that the library gives. The tests need
these files but not the library.
"""
import json
import os
import pathlib
import random
import tempfile

import sentencepiece

ROOT = pathlib.Path(__file__).resolve().parents[1]
HERE = ROOT / "tests/data/sentencepiece"
RULES = {"A": "a", "\u00bd": "1/2", "\t": " ", "\u3000": " ", "\uff21": "a", "e\u0301": "\u00e9", "\u200b": "", "...": "\u2026"}
MODELS = {
    # As Llama 2 and Mistral have it.
    "bpe": {"model_type": "bpe", "vocab_size": 420, "byte_fallback": True, "normalization_rule_name": "identity",
            "remove_extra_whitespaces": False, "split_digits": True, "allow_whitespace_only_pieces": True,
            "user_defined_symbols": ["<sep>"]},
    "unigram": {"model_type": "unigram", "vocab_size": 260, "character_coverage": 0.99, "normalization_rule_tsv": "rules.tsv",
                "user_defined_symbols": ["a b", "<sep>"]},
}
TEXTS = ["", " ", "   ", "Once upon a time", "  two  spaces ", "The kernel's 12345 numbers: 0.5 \u00bd\u00bd",
         "na\u00efve \U0001f600\U0001f600 \u4f60\u597d\tx\n",
         "A tab\tand\u3000wide \uff21", "e\u0301clair...", "a b<sep>a b ab", "two \u2581\u2581 low lines", "\u200b", "x\u200b y", "q\x7f\x01",
         "matrix multiplication matrices", "\r\n\r\n"]


def main():
    lines = [line[:300] for path in sorted((ROOT / "docs").glob("*.md")) for line in path.read_text().splitlines() if line.strip()]
    draw = random.Random(1)
    texts = TEXTS + [draw.choice(lines)[:80] for _ in range(30)]
    expected = [{"text": text} for text in texts]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # models hold the names of files
        pathlib.Path("corpus").write_text("\n".join(lines))
        pathlib.Path("rules.tsv").write_text("".join(
            f"{' '.join(f'{ord(c):04X}' for c in a)}\t{' '.join(f'{ord(c):04X}' for c in b)}\n" for a, b in RULES.items()))
        for name, options in MODELS.items():
            sentencepiece.SentencePieceTrainer.train(input="corpus", model_prefix=name, minloglevel=2, **options)
            (HERE / f"{name}.model").write_bytes(pathlib.Path(f"{name}.model").read_bytes())
            model = sentencepiece.SentencePieceProcessor(model_file=f"{name}.model")
            for entry in expected:
                ids = model.encode(entry["text"])
                entry[name] = {"ids": ids, "decoded": model.decode(ids)}
        os.chdir(ROOT)
    (HERE / "expected.json").write_text("[" + ",\n ".join(map(json.dumps, expected)) + "]\n")


if __name__ == "__main__":
    main()
