"""Rows as `conclave-train rows` writes them, and which of them a pass over the data sees.

A row carries what it teaches (`targets`: name to true or false; what it does not name, it says nothing about), so
that the rules of labelling stand in one place, in crates/conclave-train.
"""
import json
import random

HEADS = ["request", "reply", "crisis", "injection"]
FAULTS = ["encourages", "dismisses", "deceives", "demeans", "binds"]
KINDS = ["violence", "weapons", "drugs", "extremism", "self_harm", "sexual_minors", "sexual", "hate", "harassment",
         "manipulation", "fraud", "cyber", "privacy", "disinformation", "jailbreak"]
TARGETS = HEADS + KINDS + FAULTS
# Of one source and label, a pass sees at most so many rows: no source outweighs the rest.
SOURCE_ROWS = 1500
# Contrasts are few and teach most: how often a pass sees a row of sources that begin so.
OFTEN = {"coconot_": 6, "corpus_requests": 2}


def read(path):
    """Every row, with the number of its line: `at` names it where one row stands in several frames."""
    with open(path, encoding="utf-8") as lines:
        for at, line in enumerate(lines):
            yield {**json.loads(line), "at": at}


def head_and_tail(ids, most):
    """The start says what it is, the end what it wants: both are kept."""
    if len(ids) <= most:
        return ids
    head = most * 2 // 3
    return ids[:head] + ids[len(ids) - (most - head):]


def one_pass(rows, seed, source_rows=SOURCE_ROWS, often=OFTEN):
    """The rows of one pass, shuffled: all of the corpus, a share of each large source."""
    rng = random.Random(seed)
    groups = {}
    for row in rows:
        groups.setdefault((row["source"], row["harmful"]), []).append(row)
    chosen = []
    for (source, _), group in sorted(groups.items()):
        times = next((n for start, n in often.items() if source.startswith(start)), 1)
        most = len(group) if times > 1 or source.startswith("corpus_") else source_rows
        chosen += rng.sample(group, min(len(group), most)) * times
    rng.shuffle(chosen)
    return chosen


def auroc(scores, labels):
    """How often a harmful row is scored above a safe one."""
    order = sorted(range(len(scores)), key=lambda i: scores[i])
    bad = sum(labels)
    good = len(labels) - bad
    if not bad or not good:
        return float("nan")
    ranks, at = 0.0, 0
    while at < len(order):
        end = at
        while end + 1 < len(order) and scores[order[end + 1]] == scores[order[at]]:
            end += 1
        ranks += sum(labels[order[i]] for i in range(at, end + 1)) * ((at + end) / 2 + 1)
        at = end + 1
    return (ranks - bad * (bad + 1) / 2) / (bad * good)


def report(rows, scores):
    """Prints how well each head ranks the rows it is about; `scores` holds one list a row, in the order of TARGETS."""
    parts = {}
    for row, said in zip(rows, scores):
        for at, name in enumerate(TARGETS):
            if name in row["targets"] and name not in KINDS:
                if name not in ("crisis", "injection") or row["task"] == name:
                    language = row["language"] if row["language"] in ("en", "ja", "ko", "zh") else "others"
                    for part in (name, f"{name} {language}", f"{name} {row['source']}"):
                        parts.setdefault(part, []).append((said[at], int(row["targets"][name])))
    shown = []
    for part, pairs in sorted(parts.items()):
        named = part.split(" ")[-1]
        wanted = named in ("xstest", "openai_moderation", "coconot", "xstest_responses", "orbench_hard1k") or len(named) <= 6 or " " not in part
        value = auroc([p[0] for p in pairs], [p[1] for p in pairs])
        if wanted and value == value:
            shown.append(f"{part} {value:.3f} ({len(pairs)})")
    print("  dev: " + "; ".join(shown), flush=True)
