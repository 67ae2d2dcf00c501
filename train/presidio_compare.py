"""Rows of task `pii` judged by Presidio's pattern recognizers, for comparison with our finder.

Usage: pip install presidio-analyzer; python presidio_compare.py FOLDER
FOLDER holds train.jsonl.gz and dev.jsonl.gz. No language model is used, so Presidio finds no names and
no addresses, and does not raise scores by context.
"""

import gzip
import json
import pathlib
import sys
import time

from presidio_analyzer import predefined_recognizers as known

NAMES = """Email Phone CreditCard Crypto Iban Ip MacAddress Url UsSsn UsItin UsPassport UsLicense UsBank
    AbaRouting UkNino Nhs AuTfn AuMedicare EsNif EsNie ItFiscalCode InAadhaar""".split()
SCORE_MIN = 0.5


def rows(path):
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        parsed = (json.loads(line) for line in lines)
        return [row for row in parsed if row["task"] == "pii"]


def main():
    folder = pathlib.Path(sys.argv[1])
    recognizers = [getattr(known, f"{name}Recognizer")() for name in NAMES]

    def flagged(text):
        found = (hit for one in recognizers for hit in one.analyze(text, one.supported_entities, None) or [])
        return any(hit.score >= SCORE_MIN for hit in found)

    for name in ("train", "dev"):
        data = rows(folder / f"{name}.jsonl.gz")
        start = time.perf_counter()
        pairs = [(row["label"] == "harmful", flagged(row["text"])) for row in data]
        seconds = time.perf_counter() - start
        hits, alarms = pairs.count((True, True)), pairs.count((False, True))
        misses, spared = pairs.count((True, False)), pairs.count((False, False))
        print(
            f"{name}: {len(pairs)} rows, F1 {2 * hits / (2 * hits + alarms + misses):.3f}, "
            f"recall {hits / (hits + misses):.3f}, FPR {alarms / (alarms + spared):.3f}, "
            f"{len(pairs) / seconds:.0f} texts/s"
        )


if __name__ == "__main__":
    main()
