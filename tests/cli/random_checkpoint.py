"""Writes small checkpoints of random weights in the form of Hugging Face, of all architectures that greta-run has."""
import array
import json
import math
import struct

ARCHITECTURES = ("llama", "mistral", "qwen2", "qwen3", "mixtral", "qwen2_moe", "qwen3_moe")


def has_experts(kind):
    return kind == "mixtral" or kind.endswith("_moe")


def random_sizes(random):
    """Sizes whose rows are whole groups of 128, so that every quantisation changes all projections. The vocabulary is
    that of tok512.bin."""
    heads = random.choice((2, 4, 8))
    return {"dim": 128, "hidden": random.choice((128, 256)), "layers": random.randint(1, 2), "heads": heads,
            "kv_heads": random.choice([n for n in (1, 2, 4, 8) if n <= heads]), "vocabulary": 512,
            "experts": random.randint(2, 5), "top_k": random.randint(1, 2), "expert_hidden": 128, "shared": 128}


def config(kind, s):
    told = {"model_type": kind, "hidden_size": s["dim"], "intermediate_size": s["hidden"],
            "num_hidden_layers": s["layers"], "num_attention_heads": s["heads"],
            "num_key_value_heads": s["kv_heads"], "vocab_size": s["vocabulary"], "max_position_embeddings": 64,
            "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu", "tie_word_embeddings": False,
            "torch_dtype": "float32"}
    if kind.startswith("qwen3"):
        told["head_dim"] = s["dim"] // s["heads"]
    if kind == "mixtral":
        told.update(num_local_experts=s["experts"], num_experts_per_tok=s["top_k"])
    elif has_experts(kind):
        told.update(num_experts=s["experts"], num_experts_per_tok=s["top_k"], moe_intermediate_size=s["expert_hidden"],
                    norm_topk_prob=kind == "qwen3_moe", decoder_sparse_step=1, mlp_only_layers=[])
    if kind == "qwen2_moe":
        told["shared_expert_intermediate_size"] = s["shared"]
    return told


class Checkpoint:
    """Tensors by name: shapes and values."""

    def __init__(self, kind, sizes, random):
        self.kind, self.sizes, self.random, self.tensors = kind, sizes, random, {}
        dim, vocabulary = sizes["dim"], sizes["vocabulary"]
        self.matrix("model.embed_tokens", vocabulary, dim, 3)
        self.norm("model.norm", dim)
        self.matrix("lm_head", vocabulary, dim)
        for layer in range(sizes["layers"]):
            self.layer(f"model.layers.{layer}.")

    def add(self, name, shape, spread, middle=0.0):
        gauss = self.random.gauss
        self.tensors[name] = shape, array.array("f", (gauss(middle, spread) for _ in range(math.prod(shape))))

    def matrix(self, name, rows, cols, factor=1.0):
        self.add(name + ".weight", (rows, cols), factor / math.sqrt(cols))

    def norm(self, name, count):
        self.add(name + ".weight", (count,), 0.1, 1.0)

    def feed_forward(self, at, hidden, names=("gate_proj", "up_proj", "down_proj")):
        for name in names[:2]:
            self.matrix(at + name, hidden, self.sizes["dim"])
        self.matrix(at + names[2], self.sizes["dim"], hidden)

    def layer(self, at):
        s, kind = self.sizes, self.kind
        dim, head = s["dim"], s["dim"] // s["heads"]
        self.norm(at + "input_layernorm", dim)
        self.norm(at + "post_attention_layernorm", dim)
        for name, heads in (("q", s["heads"]), ("k", s["kv_heads"]), ("v", s["kv_heads"])):
            self.matrix(at + f"self_attn.{name}_proj", heads * head, dim)
            if kind.startswith("qwen2"):
                self.add(at + f"self_attn.{name}_proj.bias", (heads * head,), 0.3)
            if kind.startswith("qwen3") and name != "v":
                self.norm(at + f"self_attn.{name}_norm", head)
        self.matrix(at + "self_attn.o_proj", dim, dim)
        if not has_experts(kind):
            return self.feed_forward(at + "mlp.", s["hidden"])
        mixtral = kind == "mixtral"
        block = at + ("block_sparse_moe." if mixtral else "mlp.")
        self.matrix(block + "gate", s["experts"], dim)
        for expert in range(s["experts"]):
            to = f"{block}experts.{expert}."
            if mixtral:
                self.feed_forward(to, s["hidden"], ("w1", "w3", "w2"))
            else:
                self.feed_forward(to, s["expert_hidden"])
        if kind == "qwen2_moe":
            self.feed_forward(block + "shared_expert.", s["shared"])
            self.matrix(block + "shared_expert_gate", 1, dim)
        return None

    def write(self, folder):
        folder.mkdir()
        header, end = {}, 0
        for name, (shape, values) in self.tensors.items():
            header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [end, end + 4 * len(values)]}
            end += 4 * len(values)
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        with open(folder / "model.safetensors", "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text)
            for _, values in self.tensors.values():
                file.write(values.tobytes())
        (folder / "config.json").write_text(json.dumps(config(self.kind, self.sizes)))
