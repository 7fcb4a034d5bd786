#!/usr/bin/env python3
"""Compares greta.torch with PyTorch on a GPU: results, and times.

    python3 scripts/measure_torch.py OUTDIR [options]

    OUTDIR           receives CSV files, a summary, and the decisions of greta.torch
    --greta PREFIX   GRETA's installation; by default that which `import greta` finds
    --parts LIST     of calls, operations, compile, small, large; by default all
    --seconds N      in which to finish: parts of the large model that would take longer are skipped; by default 450
    --shapes N       random shapes of each operation and element type; by default 12
    --seed N         of shapes and contents; by default 1
    --layers LIST    of the large model, whose sizes are those of Llama 2 7B; by default 8,32
    --prompt N       tokens of its prompt; by default 512
    --tokens N       that it generates; by default 32
    --tune N         seconds in which the captured problems of the large model are tuned; by default 120, 0: not
    --no-compile     without torch.compile
    --autotune       torch.compile also with max-autotune, last
    --tiny           the large model has small sizes
    --device NAME    "cuda" or "cpu"; by default cuda

Parts:

    calls       what a call of an operation costs on the host, launched many times without waiting, as greta.torch,
                torch.ops.greta and torch run it, and of the call into GRETA's library alone (calls.csv)
    operations  each operation on random shapes: the largest error of GRETA's and of torch's results against
                FP64, and both times, launched from Python and in CUDA graphs (operations.csv)
    compile     torch.compile keeps each operation in its graph, fake kernels agree with real ones, and captured
                graphs compute the same (compile.csv)
    small       a Llama of random weights: logits of the patched model, eager, compiled and as a CUDA graph, against
                those in FP64 (small.csv)
    large       the sizes of Llama 2 7B with random weights, each number of layers: logits, and tokens per second of
                torch and of the patched model, eager and compiled, before and after tuning (large.csv; tuned.csv;
                kernels.csv with those of a token; captured.jsonl for greta-tune from-capture)

Each row is also printed as a line of JSON. A further run with the same OUTDIR adds rows, and uses what was tuned. The parts small and large need transformers. A result passes if its error is
at most twice that of torch plus the roundoff of its type. The exit code is 1 if anything failed. Nothing is downloaded.
"""

import argparse
import copy
import csv
import json
import pathlib
import random
import statistics
import sys
import time
import traceback

from measure_torch_calls import calls_part
from measure_torch_model import large_part, llama

PARTS = ("calls", "operations", "compile", "small", "large")


def options_of(words):
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].strip())
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--greta", type=pathlib.Path)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--shapes", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=450)
    parser.add_argument("--layers", type=lambda text: [int(one) for one in text.split(",")], default=[8, 32])
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--tune", type=float, default=120)
    parser.add_argument("--no-compile", dest="compile", action="store_false")
    parser.add_argument("--autotune", action="store_true")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--device", default="cuda")
    given = parser.parse_args(words)
    unknown = set(given.parts.split(",")) - set(PARTS)
    if unknown:
        parser.error(f"--parts: there are {', '.join(PARTS)}, not {', '.join(sorted(unknown))}")
    return given


class Report:
    """Rows of CSV files, and lines of the summary."""

    def __init__(self, folder):
        self.folder, self.failures, self.files = folder, 0, {}
        folder.mkdir(parents=True, exist_ok=True)
        self.summary = open(folder / "summary.txt", "a")

    def row(self, part, **values):
        if part not in self.files:
            file = open(self.folder / f"{part}.csv", "a", newline="")  # after the rows of an earlier run
            self.files[part] = (file, csv.DictWriter(file, list(values)))
            if file.tell() == 0:
                self.files[part][1].writeheader()
        file, writer = self.files[part]
        writer.writerow(values)
        file.flush()
        print(json.dumps({"part": part, **values}, default=str), flush=True)
        if values.get("passed") is False:
            self.failures += 1
            self.line(f"FAILED {part}: {values}")

    def line(self, text):
        print(text, flush=True)
        print(text, file=self.summary, flush=True)


class Measured:
    """What all parts use: torch, greta, the options and the report."""

    def __init__(self, options, report):
        if options.greta is not None:
            sys.path.insert(0, str(options.greta / "lib/python3/dist-packages"))
        import torch
        import greta.torch
        self.torch, self.greta, self.options, self.report = torch, greta, options, report
        self.device = torch.device(options.device, 0) if options.device == "cuda" else torch.device("cpu")
        self.random, self.end = random.Random(options.seed), time.perf_counter() + options.seconds
        torch.manual_seed(options.seed)
        self.configure("measured")
        name = torch.cuda.get_device_name(0) if self.cuda else "CPU"
        report.line(f"greta {greta.version()}, torch {torch.__version__}, {name}")

    @property
    def cuda(self):
        return self.device.type == "cuda"

    def configure(self, mode, **others):
        """Decisions and the database are those of this folder, so that a run measures each problem itself."""
        from greta.torch import execution
        out = self.options.out
        execution.default_database = lambda: out / "tuned.db"  # used if it exists
        self.greta.torch.configure(mode=mode, decisions=out / "decisions.json", cache=out / "cache", **others)

    def left(self):
        """Returns the seconds that are left."""
        return self.end - time.perf_counter()

    def guarded(self, what, run, seconds=0.0):
        """Runs a part, unless the time left does not allow it. A failure is reported, and the rest goes on."""
        if seconds > self.left():
            self.report.line(f"skipped: {what}: needs about {seconds:.0f} s, {self.left():.0f} s are left")
            return
        try:
            run()
        except Exception:
            self.report.failures += 1
            self.report.line(f"FAILED {what}:\n{traceback.format_exc()}")

    def synchronize(self):
        if self.cuda:
            self.torch.cuda.synchronize()

    def normal(self, *shape, dtype):
        return self.torch.randn(*shape, device=self.device, dtype=self.torch.float32).to(dtype)

    def error(self, result, exact):
        return float((result.double() - exact).abs().max())


def operation_cases(m):
    """Yields each operation's name, its arguments and the names of tensors among them, on random shapes."""
    torch, choice, upto = m.torch, m.random.choice, m.random.randint
    halves = (torch.bfloat16, torch.float16) if m.cuda else (torch.bfloat16,)  # torch's CPU code may lack f16
    for dtype in (*halves, torch.float32):
        for _ in range(m.options.shapes):
            rows, cols = choice([1, 2, 8, upto(1, 300), 512, 2048]), 8 * upto(2, 700)
            k, n = 8 * upto(4, 512), 8 * upto(4, 512)
            x, w = m.normal(rows, k, dtype=dtype), m.normal(n, k, dtype=dtype) / k ** 0.5
            bias = m.normal(n, dtype=dtype) if upto(0, 1) else None
            residual = m.normal(rows, n, dtype=dtype) if upto(0, 1) else None
            yield "linear", (x, w, bias, residual, None, choice(["none", "silu", "gelu"]))
            few, norm = m.normal(upto(1, 8), k, dtype=dtype), m.normal(k, dtype=dtype)
            yield "linear", (few, w[:n // 16 * 16], None, None, norm, choice(["none", "swiglu"]), 1e-5)
            yield "silu_mul", (m.normal(rows, 2 * cols, dtype=dtype),)
            yield "rope", (m.normal(2, rows, kv := choice([1, 8]), 128, dtype=dtype),
                           torch.arange(2 * rows, dtype=torch.int32, device=m.device),
                           m.normal(2 * rows + kv, 128, dtype=torch.float32), "half")
            x, weight = m.normal(rows, cols, dtype=dtype), m.normal(cols, dtype=dtype)
            yield "rms_norm", (x, weight if upto(0, 1) else None, choice([1e-5, 1e-6]))
            yield "layer_norm", (x, weight, m.normal(cols, dtype=dtype) if upto(0, 1) else None, 1e-5)
            yield "softmax", (x, choice([1.0, 0.125]))
            batch, kv_heads, dim = choice([1, 2, 4]), choice([1, 2, 8]), choice([64, 128])
            heads, keys = kv_heads * choice([1, 4]), upto(1, 1500)
            queries = choice([1, keys, min(keys, upto(1, 64))])
            q = m.normal(batch, queries, heads, dim, dtype=dtype)
            key, value = (m.normal(batch, kv_heads, keys, dim, dtype=dtype) for _ in range(2))
            lengths = torch.tensor([upto(queries, keys) for _ in range(batch)], dtype=torch.int32,
                                   device=m.device) if upto(0, 1) else None
            yield "attention", (q, key, value, lengths, None, bool(upto(0, 1)))


def in_fp64(m, name, arguments):
    """Computes an operation by torch in FP64 from the same inputs."""
    wide = [one.double() if isinstance(one, m.torch.Tensor) and one.is_floating_point() else one
            for one in arguments]
    return of_torch(m, name, wide)


def of_torch(m, name, arguments):
    from greta.torch import fallbacks
    if name == "linear":  # whose order is that of torch.ops.greta
        x, weight, bias, residual, norm, activation, *eps = arguments
        return fallbacks.linear_of_torch(x, weight, bias, residual, activation, norm, *eps)
    return getattr(fallbacks, name + "_of_torch")(*arguments)


def passes(m, ours, theirs, exact, dtype):
    roundoff = m.torch.finfo(dtype).eps
    return ours <= 2 * theirs + 2 * roundoff * max(1.0, float(exact.abs().max()))


def operations_part(m):
    from greta.torch import execution
    ratios = []
    m.configure("greta")
    for name, arguments in operation_cases(m):
        function, dtype = getattr(m.torch.ops.greta, name), arguments[0].dtype
        with m.torch.no_grad():
            exact = in_fp64(m, name, arguments)
            theirs = m.error(of_torch(m, name, arguments), exact)
            known = len(m.greta.torch.choices())
            ours = m.error(function(*arguments), exact)
            if len(m.greta.torch.choices()) == known:
                continue  # a shape that was there before
            choice = m.greta.torch.choices()[-1]
            if not choice.greta:
                m.report.row("operations", operation=name, dtype=str(dtype), problem=choice.problem, error=None,
                             torch_error=theirs, passed=True, greta_us=None, torch_us=None, greta_graph_us=None,
                             torch_graph_us=None, origin="refused: " + choice.why, config=None)
                continue
            times = execution.measure(m.device, choice.answer["config"], lambda: function(*arguments),
                                      lambda: of_torch(m, name, arguments))
        good = passes(m, ours, theirs, exact, dtype)
        m.report.row("operations", operation=name, dtype=str(dtype), problem=choice.problem, error=ours,
                     torch_error=theirs, passed=good, greta_us=times.greta_us, torch_us=times.framework_us,
                     greta_graph_us=times.greta_graph_us, torch_graph_us=times.framework_graph_us,
                     origin=choice.answer["origin"], config=choice.answer["config"])
        ratios.append((name, times.regret(in_graph=True) + 1))
    for name in sorted({one for one, _ in ratios}):
        each = [ratio for one, ratio in ratios if one == name]
        m.report.line(f"operations: {name}: {len(each)} shapes, GRETA's time / torch's in graphs: median "
                      f"{statistics.median(each):.3f}, best {min(each):.3f}, worst {max(each):.3f}")


def compile_part(m):
    torch = m.torch
    m.configure("greta")
    seen = set()
    for name, arguments in operation_cases(m):
        if name in seen or arguments[0].dtype != torch.bfloat16:
            continue
        seen.add(name)
        operation = getattr(torch.ops.greta, name).default
        kept = []

        def backend(module, inputs):
            kept.extend(str(node.target) for node in module.graph.nodes)
            return module.forward

        with torch.no_grad():
            eager = operation(*arguments)
            compiled = torch.compile(lambda *given: operation(*given) * 2, backend=backend, fullgraph=True)
            inductor = torch.compile(lambda *given: operation(*given) * 2, fullgraph=True)
            same = close(m, compiled(*arguments), eager * 2) and close(m, inductor(*arguments), eager * 2)
            torch.library.opcheck(operation, arguments, test_utils=("test_schema", "test_faketensor"))
            captured = captured_equals(m, operation, arguments, eager) if m.cuda else None
        in_graph = any(f"greta.{name}" in target for target in kept)
        m.report.row("compile", operation=name, in_graph=in_graph, same=same, captured=captured,
                     passed=in_graph and same and captured is not False)
    m.report.line(f"compile: {len(seen)} operations")


def close(m, result, expected):
    """Whether results of one kernel agree: sums of parts may come in another order."""
    return m.error(result, expected.double()) <= 0.01 * float(expected.abs().max())


def captured_equals(m, operation, arguments, eager):
    """Captures a graph on a new stream, changes the inputs in place, and compares the replay."""
    torch = m.torch
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = operation(*arguments)
    graph.replay()
    torch.cuda.synchronize()
    first = close(m, out, eager)
    arguments[0].mul_(0.5)
    expected = operation(*arguments)
    graph.replay()
    torch.cuda.synchronize()
    return first and close(m, out, expected)


def small_part(m):
    torch = m.torch
    for dtype in (torch.bfloat16, torch.float16, torch.float32):
        model = llama(m, dtype, hidden_size=512, intermediate_size=1408, num_hidden_layers=4, num_attention_heads=8,
                      num_key_value_heads=4, vocab_size=2048, max_position_embeddings=1024)
        ids = torch.randint(0, 2048, (2, 77), device=m.device)
        with torch.no_grad():
            exact = copy.deepcopy(model).double()(ids).logits
            theirs = m.error(model(ids).logits, exact)
            for mode in ("greta", "measured"):
                m.configure(mode)
                patched = m.greta.torch.patch(model)
                eager = model(ids).logits
                check_logits(m, "eager", mode, dtype, eager, theirs, exact, patched)
                compiled = torch.compile(model, fullgraph=False)
                check_logits(m, "compiled", mode, dtype, compiled(ids).logits, theirs, exact, patched)
                if m.cuda:
                    check_logits(m, "graph", mode, dtype, captured_logits(m, model, ids), theirs, exact, patched)
                patched.undo()
                torch._dynamo.reset()
            again = model(ids).logits
            m.report.row("small", form="undone", mode="torch", dtype=str(dtype), error=m.error(again, exact),
                         torch_error=theirs, passed=m.error(again, exact) <= theirs * 1.01 + 1e-9, linear=0,
                         rms_norm=0, mlp=0, layers=0, greta_problems=0, problems=0)
    m.report.line("small: done")


def captured_logits(m, model, ids):
    graph = m.torch.cuda.CUDAGraph()
    with m.torch.cuda.graph(graph):
        logits = model(ids, use_cache=False).logits
    graph.replay()
    m.torch.cuda.synchronize()
    return logits


def check_logits(m, form, mode, dtype, logits, theirs, exact, patched, part="small"):
    ours = m.error(logits, exact)
    all_choices = m.greta.torch.choices()
    m.report.row(part, form=form, mode=mode, dtype=str(dtype), error=ours, torch_error=theirs,
                 passed=passes(m, ours, theirs, exact, dtype), linear=patched.linear, rms_norm=patched.rms_norm,
                 mlp=patched.mlp, layers=patched.layers, greta_problems=sum(one.greta for one in all_choices), problems=len(all_choices))


def main():
    options = options_of(sys.argv[1:])
    report = Report(options.out)
    m = Measured(options, report)
    parts = {"calls": calls_part, "operations": operations_part, "compile": compile_part, "small": small_part,
             "large": large_part}
    for name in options.parts.split(","):
        begin = time.perf_counter()
        m.guarded(name, lambda name=name: parts[name](m))
        report.line(f"{name}: {time.perf_counter() - begin:.0f} s")
    report.line(f"{report.failures} failed")
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
