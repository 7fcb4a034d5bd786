"""The mutation operators. Each takes a source text and yields replacements (kind, start, end, text)
of parts of it. Only code is changed: no comments, strings, preprocessor conditions or assertions.
Assertions only reject invalid sources and compute nothing."""
import re

NAME = r"[A-Za-z_]\w*(?:(?:\.|->|::)\w+|\[[^][]*\])*"
NUMBER = r"(?<![\w.])\d+(?![\w.])"
REAL = r"(?<![\w.])\d+\.\d*(?:e[-+]?\d+)?[fF]?(?!\w)"
BARRIERS = (r"(?:barrier|block_barrier|wave_barrier|subgroupBarrier|memoryBarrier\w*|subgroupMemoryBarrier\w*"
            r"|__syncthreads|__syncwarp|__threadfence|wait_for_copies|wait_for_products|copy_wait|load_wait)")

# Pairs that are easily confused; each may become the other.
COMPARISONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
NEIGHBOURS = {"row": "col", "col": "row", "rows": "cols", "cols": "rows", "x": "y", "y": "x", "m": "n",
              "n": "k", "k": "m", "BM": "BN", "BN": "BM", "BK": "BM", "TM": "TN", "TN": "TM", "WM": "WN",
              "WN": "WM", "min": "max", "max": "min"}
NARROWER = {"u64": "u32", "uint64_t": "uint", "i64": "int", "int64_t": "int", "double": "float",
            "float": "In", "std::int64_t": "std::int32_t", "std::size_t": "std::uint8_t"}


def code_positions(text):
    """Returns a list with one flag per character: whether it may be changed."""
    code = [True] * len(text)

    def exclude(match):
        code[match.start():match.end()] = [False] * (match.end() - match.start())

    for match in re.finditer(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"", text, re.S):
        exclude(match)
    for match in re.finditer(r"^[ \t]*#[ \t]*(?!define)(?:\\\n|[^\n])*", text, re.M):
        exclude(match)
    for match in re.finditer(r"^[ \t]*#[ \t]*define[ \t]+\w+(?:\([^)\n]*\))?", text, re.M):
        exclude(match)
    for match in re.finditer(r"(?:static_assert\s*\(|template\s*<|layout\s*\(|using |typedef )[^;{]*", text):
        exclude(match)
    return code


def _comparisons(text):
    for match in re.finditer(r" (<=|>=|==|!=|<|>) ", text):
        yield "comparison", match.start(1), match.end(1), COMPARISONS[match[1]]
    for match in re.finditer(r"\bif \((?!constexpr)([^;{}\n]*)\) ", text):
        if match[1].count("(") == match[1].count(")"):
            yield "comparison", match.start(1), match.end(1), f"!({match[1]})"
    for match in re.finditer(r" (&&|\|\|) ", text):
        yield "comparison", match.start(1), match.end(1), "||" if match[1] == "&&" else "&&"


def _boundaries(text):
    for match in re.finditer(r" [-+] 1(?=[\])};,:]| [*/%<>])", text):
        yield "boundary", match.start(), match.end(), ""
    for match in re.finditer(rf"[<>]=? ({NAME}|{NUMBER})(?=[;)])", text):
        for off in (" + 1", " - 1"):
            yield "boundary", match.end(1), match.end(1), off


def _indices(text):
    for match in re.finditer(r"\[([^][\n]+)\]", text):
        if not re.match(r"[A-Z0-9_ */+]+$", match[1]):  # most likely an extent in a declaration
            yield "index", match.start(1), match.end(1), f"({match[1]}) + 1"
    for match in re.finditer(rf" \* ({NAME}|{NUMBER})(?=[\]);,+ ])", text):
        yield "index", match.start(), match.end(), ""
    for match in re.finditer(r"\b(row|col|rows|cols|[mnkxy]|B[MNK]|[TW][MN]|min|max)\b", text):
        yield "index", match.start(), match.end(), NEIGHBOURS[match[1]]


def _barriers(text):
    for match in re.finditer(rf"^[ \t]*((?:\w+\.|\w+::)?{BARRIERS}(?:<[^>\n]*>)?\([^;\n]*\);)", text, re.M):
        yield "barrier", match.start(1), match.end(1), ";"


def _orders(text):
    lines = list(re.finditer(r"^([ \t]*)(?![ \t#}{/]|return\b|else\b|break\b|continue\b|case\b)([^\n]*;)$", text, re.M))
    for one, other in zip(lines, lines[1:]):
        if one[1] == other[1] and one.end() + 1 == other.start() and one[2] != other[2]:
            yield "order", one.start(2), other.end(2), f"{other[2]}\n{one[1]}{one[2]}"


def _types(text):
    for match in re.finditer(r"(?<![\w:<])(std::int64_t|std::size_t|u64|uint64_t|i64|int64_t|double|float)\b", text):
        yield "type", match.start(), match.end(), NARROWER[match[1]]


def _constants(text):
    for match in re.finditer(NUMBER, text):
        yield "constant", match.start(), match.end(), str(int(match[0]) + 1)
        if match[0] != "0":
            yield "constant", match.start(), match.end(), "0"
    for match in re.finditer(REAL, text):
        plain = match[0].rstrip("fF")
        suffix = match[0][len(plain):]
        changed = "1.0" if float(plain) == 0 else repr(float(plain) * 1.25)
        yield "constant", match.start(), match.end(), changed + suffix
        if float(plain) != 0:
            yield "constant", match.start(), match.end(), "0.0" + suffix


def _dropped_terms(text):
    for match in re.finditer(rf" ([-+]) (?:{NAME}(?:\([^()\n]*\))?|{NUMBER}|{REAL})(?=[\]);, ])", text):
        yield "dropped term", match.start(), match.end(), ""
    for match in re.finditer(r" ([-+*/|&^]|<<|>>)= ", text):
        yield "dropped term", match.start(1), match.end(), "= "
    for match in re.finditer(r"\bfmaf?\(([^(),\n]+(?:\([^()\n]*\))?), ([^(),\n]+(?:\([^()\n]*\))?), ([^()\n]+)\)", text):
        yield "dropped term", match.start(), match.end(), f"(({match[1]}) * ({match[2]}))"
    for match in re.finditer(r"\b(?:min|max|fminf|fmaxf)\(([^(),\n]+(?:\([^()\n]*\))?), ([^(),\n]+)\)", text):
        yield "dropped term", match.start(), match.end(), f"({match[1]})"
    for match in re.finditer(r"^[ \t]*((?![\w ]*return)(?:\w[\w.\[\]]* [-+*/|&]?= |\w+\()[^;\n]*;)$", text, re.M):
        yield "dropped term", match.start(1), match.end(1), ";"


def _swapped_operands(text):
    for match in re.finditer(rf"({NAME}) ([-/%]|<<|>>) ({NAME}|{NUMBER})(?=[\]);, ])", text):
        yield "swapped operand", match.start(), match.end(), f"{match[3]} {match[2]} {match[1]}"
    for match in re.finditer(rf" \? ([^?:;\n]+) : ([^?:;,\n]+)(?=[;)])", text):
        yield "swapped operand", match.start(), match.end(), f" ? {match[2]} : {match[1]}"
    for match in re.finditer(rf"\b(\w+)\(({NAME}), ({NAME})(?=[,)])", text):
        if match[1] not in ("for", "if", "while", "switch", "min", "max", "fminf", "fmaxf"):
            yield "swapped operand", match.start(2), match.end(3), f"{match[3]}, {match[2]}"
    for match in re.finditer(r" ([-+*/]) (?=[\w(])", text):
        other = {"+": "-", "-": "+", "*": "+", "/": "*"}[match[1]]
        yield "swapped operand", match.start(1), match.end(1), other


OPERATORS = (_comparisons, _boundaries, _indices, _barriers, _orders, _types, _constants, _dropped_terms,
             _swapped_operands)


def mutations(text):
    """Returns all replacements of a text without duplicates."""
    code = code_positions(text)
    seen = set()
    for operator in OPERATORS:
        for kind, start, end, new in operator(text):
            inside = code[start:end] if end > start else code[start:start + 1]
            if not all(inside) or text[start:end] == new or (start, end, new) in seen:
                continue
            seen.add((start, end, new))
            yield kind, start, end, new
