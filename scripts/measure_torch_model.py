"""Part `large` of measure_torch.py: a model of the sizes of Llama 2 7B with random weights, as torch and as
greta.torch run it, eager and compiled, before and after tuning."""

import contextlib
import time

# Seconds that a form is expected to need, for each layer. Forms that the time left does not allow are reported so.
EAGER_S, COMPILE_S, AUTOTUNE_S = 0.6, 3.0, 9.0


def llama(m, dtype, **sizes):
    from transformers import LlamaConfig, LlamaForCausalLM
    torch = m.torch
    config = LlamaConfig(attn_implementation="sdpa", **sizes)
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        with m.device if m.cuda else contextlib.nullcontext():
            return LlamaForCausalLM(config).eval()
    finally:
        torch.set_default_dtype(before)


def fields_of(problem):
    fields = dict(word.replace('"', "").split("=", 1) for word in problem.split()[1:])
    if "out" in fields:
        fields["out_dtype"] = fields.pop("out")
    return fields


def generate(m, model, ids, tokens, static, compiled):
    """Returns the seconds of generating tokens after a prompt."""
    options = {"cache_implementation": "static"} if static else {}
    if not compiled:
        options["disable_compile"] = True
    m.synchronize()
    begin = time.perf_counter()
    out = model.generate(ids, attention_mask=m.torch.ones_like(ids), min_new_tokens=tokens, max_new_tokens=tokens,
                         do_sample=False, pad_token_id=0, eos_token_id=None, **options)
    m.synchronize()
    if out.shape[1] != ids.shape[1] + tokens:
        raise RuntimeError(f"{out.shape[1] - ids.shape[1]} tokens instead of {tokens}")
    return time.perf_counter() - begin


def set_compiler(model, mode):
    from transformers import CompileConfig
    model.generation_config.compile_config = CompileConfig(mode=mode)
    model.__dict__.pop("_compiled_call", None)


def speed(m, form, model, ids, layers, mode=None, patched=None):
    """Generation of one token is the prompt's time; the rest is that of the others."""
    tokens, torch = m.options.tokens, m.torch
    if mode is not None:
        torch._dynamo.reset()
        set_compiler(model, mode)
    compiled = mode is not None
    begin = time.perf_counter()
    with torch.no_grad():
        if patched is not None and compiled:  # decides about all problems before they are captured
            generate(m, model, ids, tokens, True, False)
        for _ in range(2):
            generate(m, model, ids, tokens, compiled, compiled)
        ready = time.perf_counter() - begin
        first = min(generate(m, model, ids, 1, compiled, compiled) for _ in range(3))
        whole = min(generate(m, model, ids, tokens, compiled, compiled) for _ in range(3))
    rest = whole - first
    chosen = m.greta.torch.choices() if patched is not None else []
    m.report.row("large", form=form, layers=layers, prompt=ids.shape[1], tokens=tokens, ready_s=ready,
                 prompt_ms=first * 1e3, token_ms=rest * 1e3 / (tokens - 1), tokens_per_s=(tokens - 1) / rest,
                 fused_layers=patched.layers if patched is not None else 0,
                 greta_problems=sum(one.greta or one.greta_in_graphs for one in chosen), problems=len(chosen),
                 error=None, largest=None, passed=True)
    m.report.line(f"large: {layers} layers: {form}: prompt {first * 1e3:.1f} ms, {(tokens - 1) / rest:.1f} tokens/s")
    m.guarded(f"profile of {form}, {layers} layers", lambda: profile(m, form, model, ids, layers, compiled))


def profile(m, form, model, ids, layers, compiled):
    """Writes the kernels of a token: the difference of generating 9 tokens and 1."""
    if not m.cuda or layers != min(m.options.layers):
        return
    from torch.profiler import ProfilerActivity
    totals = {}
    with m.torch.no_grad():
        for tokens, sign in ((9, 1), (1, -1)):
            with m.torch.profiler.profile(activities=[ProfilerActivity.CUDA]) as seen:
                generate(m, model, ids, tokens, compiled, compiled)
            for event in seen.key_averages():
                time_us = getattr(event, "self_device_time_total", 0)
                count, total = totals.get(event.key, (0, 0.0))
                if time_us:
                    totals[event.key] = (count + sign * event.count, total + sign * time_us)
    rows = sorted(totals.items(), key=lambda row: -row[1][1])
    m.report.line(f"large: {form}: a token has {sum(one[0] for one in totals.values()) / 8:.0f} kernels of "
                  f"{sum(one[1] for one in totals.values()) / 8:.0f} us together")
    for name, (count, total) in rows[:40]:
        m.report.row("kernels", form=form, layers=layers, kernel=name[:160], count_of_a_token=count / 8,
                     us_of_a_token=total / 8, passed=True)


def tune(m, model, ids):
    """Tunes what the patched model runs into the folder's database: all problems share the budget."""
    with m.greta.torch.capture(m.options.out / "captured.jsonl",
                               device="cuda" if m.cuda else "cpu") as captured, m.torch.no_grad():
        generate(m, model, ids, 2, False, False)
        generate(m, model, ids, m.options.tokens, True, False)  # the cache's size depends on the number
    for problem, why in captured.refused.items():
        m.report.line(f"large: refused {problem}: {why}")
    m.report.line(f"large: {len(captured.counts)} problems captured")
    end = time.perf_counter() + min(m.options.tune, m.left() / 2)
    left = [problem for problem, _ in captured.counts.most_common()]
    while left:
        problem, budget = left.pop(0), (end - time.perf_counter()) / (len(left) + 1)
        if budget < 1:
            m.report.line(f"large: no time to tune {problem}")
            continue
        m.guarded(f"tuning of {problem}", lambda: tune_one(m, problem, budget))


def tune_one(m, problem, seconds):
    result = m.greta.tune(problem.split()[0], **fields_of(problem), budget=f"{max(1, int(seconds))}s",
                          device="hip:0" if m.cuda else "hip-host:0", lock=False, db=m.options.out / "tuned.db",
                          cache=m.options.out / "cache")
    m.report.row("tuned", problem=problem, config=result.config, time_us=result.time_us, speedup=result.speedup,
                 passed=True)


def check_logits(m, model, ids, expected, form, layers, patched):
    """The last logits of the patched model against those of torch."""
    with m.torch.no_grad():
        ours = model(ids).logits[:, -8:]
    worst, size = m.error(ours, expected), float(expected.abs().max())
    m.report.row("large", form="logits: " + form, layers=layers, prompt=ids.shape[1], tokens=0, ready_s=None,
                 prompt_ms=None, token_ms=None, tokens_per_s=None, fused_layers=patched.layers, greta_problems=None,
                 problems=None, error=worst, largest=size, passed=worst <= 0.02 * size)


def patched_forms(m, model, ids, expected, layers, modes, suffix):
    """Measures the patched model, and restores it."""
    m.configure("measured")
    patched = m.greta.torch.patch(model)
    try:
        m.guarded("logits", lambda: check_logits(m, model, ids, expected, "greta" + suffix, layers, patched))
        m.guarded("greta eager", lambda: speed(m, "greta eager" + suffix, model, ids, layers, None, patched),
                  EAGER_S * layers)
        for mode, seconds in modes:
            form = f"greta compile {mode}{suffix}"
            m.guarded(form, lambda: speed(m, form, model, ids, layers, mode, patched), seconds * layers)
    finally:
        patched.undo()


def of_layers(m, layers, first):
    torch = m.torch
    sizes = {"hidden_size": 4096, "intermediate_size": 11008, "num_attention_heads": 32, "num_key_value_heads": 32,
             "vocab_size": 32000}
    if m.options.tiny:
        sizes = {"hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 4, "num_key_value_heads": 2,
                 "vocab_size": 50}
    model = llama(m, torch.float16 if m.cuda else torch.float32, num_hidden_layers=layers,
                  max_position_embeddings=4096, **sizes)
    ids = torch.randint(0, sizes["vocab_size"], (1, m.options.prompt), device=m.device)
    with torch.no_grad():
        expected = model(ids).logits[:, -8:].double()
    compiles = [("reduce-overhead", COMPILE_S)] if m.options.compile else []
    m.guarded("torch eager", lambda: speed(m, "torch eager", model, ids, layers), EAGER_S * layers)
    if first and m.options.tune:
        m.guarded("before tuning", lambda: patched_forms(m, model, ids, expected, layers, compiles, ", untuned"))

        def tuned():
            m.configure("torch")
            patched = m.greta.torch.patch(model)
            try:
                tune(m, model, ids)
            finally:
                patched.undo()

        m.guarded("tuning", tuned)
    patched_forms(m, model, ids, expected, layers, compiles, "")
    for mode, seconds in compiles:
        m.guarded(f"torch compile {mode}", lambda: speed(m, f"torch compile {mode}", model, ids, layers, mode),
                  seconds * layers)
    return model, ids, expected


def large_part(m):
    """The smaller model first: its problems are those of the larger one, too. What takes longest comes last."""
    last = None
    for number, layers in enumerate(m.options.layers):
        def one():
            nonlocal last
            last = None  # frees the model before
            last = of_layers(m, layers, number == 0)

        m.guarded(f"{layers} layers", one, (EAGER_S + 2 * COMPILE_S) * layers if number else 0)
    if m.options.autotune and last is not None:
        model, ids, expected = last
        layers = m.options.layers[-1]
        m.guarded("torch compile max-autotune", lambda: speed(m, "torch compile max-autotune", model, ids, layers,
                                                              "max-autotune"), AUTOTUNE_S * layers)
        m.guarded("greta", lambda: patched_forms(m, model, ids, expected, layers,
                                                 [("max-autotune", AUTOTUNE_S)], ", max-autotune"))
