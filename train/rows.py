"""Rows of the public sets and of the corpus, with the targets that each teaches.

A target is 1, 0 or None (this row says nothing about this head). Sources are capped so that no one of
them, and no one kind of harm, outweighs the rest.
"""
import gzip
import json
import random
import zlib
from pathlib import Path

HEADS = ["request", "reply", "crisis", "injection"]
# The public sets' words for a kind of harm, and the engine's closed list.
CATEGORIES = {
    "violence": "violence", "weapons": "weapons", "drugs": "drugs", "extremism": "extremism",
    "self_harm": "self_harm", "sexual_minors": "sexual_minors", "sexual": "sexual",
    "hate_harassment": "hate", "stalking": "harassment", "fraud": "fraud", "illegal": "fraud",
    "cyber": "cyber", "privacy": "privacy", "pii_request": "privacy",
    "misinformation": "disinformation", "political": "disinformation",
    "manipulation_dependency": "manipulation",
}
CATEGORY_NAMES = sorted(set(CATEGORIES.values()))
# What is wrong with how a reply treats somebody: the corpus's words for it, and what the public sets
# collected under a name of their own. The n-gram models learn the same (conclave-train, faults.rs).
FAULTS = {
    "encourages": {"encouraging_harm"},
    "dismisses": {"minimising", "cold", "lecturing", "premature_advice", "needless_refusal"},
    "deceives": {"gaslighting", "flattering_delusion", "claiming_feelings", "saviour", "misinformation"},
    "demeans": {"shaming", "projecting", "hate_harassment"},
    "binds": {"dependency", "isolating", "over_intimate", "grooming"},
}
COLLECTED = {("diasafety", "hate_harassment"): "demeans", ("diasafety", "self_harm"): "dismisses",
             ("diasafety", "specialised_advice"): "deceives",
             ("rtplx_response", "hate_harassment"): "demeans", ("spiral_bench", "delusion"): "deceives"}
TARGETS = HEADS + CATEGORY_NAMES + list(FAULTS)
JAILBREAKS = {"jailbreakhub_2023_05", "jailbreakhub_2023_12", "self_reminder_jailbreaks",
              "gptfuzz_templates"}
CAPS = {"goemotions": 5000, "clinc150": 2500, "banking77": 900, "commonsense_moral_ja": 1500,
        "edos": 3500, "rtplx_prompt": 6000, "rtplx_response": 6000, "hatemoji_build": 2600,
        "multilingual_hatecheck": 3000, "diasafety": 6500, "gptfuzz_responses": 2500,
        "davidson": 2000}


def read(path):
    opener = gzip.open if str(path).endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                yield json.loads(line)


def corpus(folder, split):
    for path in sorted(Path(folder, split).glob("*.jsonl")):
        yield from read(path)


def texts(row):
    """What is read: (what was said before, what is judged)."""
    said = row.get("text") or "\n".join(t["content"] for t in row.get("turns", []))
    if row["task"] == "response":
        return said, row["response"]
    return "", said


def targets(row):
    t = dict.fromkeys(TARGETS)
    harmful = row["label"] == "harmful"
    kinds = set(row.get("categories", []))
    task = row["task"]
    if task in ("prompt", "text"):
        t["request"] = int(harmful)
        if not harmful and not kinds & {"self_harm", "self_harm_topic"}:
            t["crisis"] = 0
        jailbreak = row["source"] in JAILBREAKS
        if jailbreak or not (harmful or "manipulation_prompt" in kinds):
            t["injection"] = int(jailbreak)
        for name in CATEGORY_NAMES:
            t[name] = 0
        if harmful:
            for kind in kinds:
                if kind in CATEGORIES:
                    t[CATEGORIES[kind]] = 1
    elif task == "response":
        t["reply"] = int(harmful)
        for fault in FAULTS:
            t[fault] = shows(row, kinds, harmful, fault)
    elif task == "crisis":
        t["crisis"] = int(harmful)
        t["request"] = 0
    elif task == "injection":
        t["injection"] = int(harmful)
        if not harmful:
            t["request"] = 0
    else:
        return None
    return t


def shows(row, kinds, harmful, fault):
    """Whether a reply has this fault; None where nobody looked."""
    if not harmful:
        return 0
    if row["source"].startswith("corpus_"):
        return int(bool(kinds & FAULTS[fault]))
    collected = {COLLECTED.get((row["source"], kind)) for kind in kinds}
    return 1 if fault in collected else None


def number(name):
    """A number that stands for a name (FNV-1a)."""
    h = 0x811C9DC5
    for byte in name.encode():
        h = (h ^ byte) * 0x01000193 & 0xFFFFFFFF
    return h


def framed(rows):
    """Copies of some requests inside a story, a part or a game, with the same label."""
    lines = (Path(__file__).parent / "frames.txt").read_text(encoding="utf-8").splitlines()
    frames = [line.replace("\\n", "\n").split("\t", 1) for line in lines if "\t" in line]
    for row in rows:
        fitting = [f for language, f in frames if language == row.get("language")]
        said = texts(row)[1] if row["task"] in ("prompt", "injection") else ""
        if fitting and 12 <= len(said.encode()) < 400 and number(row["id"]) % 6 == 0:
            copy = {k: v for k, v in row.items() if k != "turns"}
            copy["text"] = fitting[number(row["id"]) // 6 % len(fitting)].replace("{}", said)
            yield copy


def capped(rows, seed):
    """At most so many rows of each source, chosen by a fixed seed."""
    groups = {}
    for row in rows:
        groups.setdefault(row["source"], []).append(row)
    kept = []
    for source, group in sorted(groups.items()):
        random.Random(seed ^ zlib.crc32(source.encode())).shuffle(group)
        kept.extend(group[: CAPS.get(source, len(group))])
    random.Random(seed).shuffle(kept)
    return kept
