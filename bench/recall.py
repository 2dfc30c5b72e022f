"""How much of what a turn needs is among the first twenty: onfile beside other stores on the same vectors.

python -m bench.recall                     all sets, MiniLM, every peer that is installed
python -m bench.recall --sets prefeval     one set
python -m bench.recall --model words       WordLlama's word vectors instead
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import statistics
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench.datasets import DEFAULT_DATA, SETS, DataSet, load, recall_at, reciprocal_rank
from bench.models import MiniLm, Remembered, WordVectors
from bench.peers import PEERS, installed, use_loadable_sqlite
from bench.stand import CTX, RESULTS, fill, machine
from onfile.provider import SearchMemories
from onfile.recall import fusion
from onfile.recall.index import document_text
from onfile.stores import SqlMemoryProvider

LIMIT = 20
FUSED, WORDS, VECTORS = "onfile", "onfile, words only", "onfile, vectors only"


class VectorsOnly:
    """An embedder beside which words weigh nothing, for the ablation."""

    def __init__(self, embedder: Any) -> None:
        self.model, self.dimensions = embedder.model, embedder.dimensions
        self.embed_query, self.embed_documents = embedder.embed_query, embedder.embed_documents
        self.lexical_weight = 0.0
        self.scripts = EveryScript()


class EveryScript:
    """Contains any script."""

    def __contains__(self, _: object) -> bool:
        return True


async def onfile_keys(data: DataSet, embedder: Any | None) -> list[list[str]]:
    """The keys that a search answers, for every question."""
    with tempfile.TemporaryDirectory() as folder:
        provider = SqlMemoryProvider.from_url(f"sqlite:///{folder}/onfile.db", embedder)
        try:
            await fill(provider, data.facts, embed=embedder is not None)
            answers: list[list[str]] = []
            for query in data.queries:
                asked = SearchMemories(scopes=query.scopes, query=query.text, limit=LIMIT, ctx=CTX)
                answers.append([record.key for record in await provider.search(asked)])
            return answers
        finally:
            await provider.aclose()


def peer_keys(data: DataSet, peer: Any) -> list[list[str]] | None:
    """The same, of a peer; None with a line that says why, where it cannot."""
    try:
        peer.fill(data.facts)
        return [peer.keys(query.scopes, query.text, LIMIT) for query in data.queries]
    except Exception as error:  # noqa: BLE001  # the others are measured all the same
        print(f"left out: {peer.name} on {data.name} ({type(error).__name__}: {error})")
        return None
    finally:
        peer.close()


def scores(data: DataSet, answers: Sequence[Sequence[str]]) -> dict[str, Any]:
    """Means over the questions, and the questions' own recall@20 for pairing."""
    pairs = list(zip(answers, data.queries, strict=True))
    each = [recall_at(keys, query, 20) for keys, query in pairs]
    return {
        "recall@20": statistics.mean(each),
        "recall@5": statistics.mean(recall_at(keys, query, 5) for keys, query in pairs),
        "mrr": statistics.mean(reciprocal_rank(keys, query) for keys, query in pairs),
        "each": each,
    }


def paired(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, float]:
    """The mean difference and its standard error over the same questions."""
    differences = [a - b for a, b in zip(ours, theirs, strict=True)]
    return statistics.mean(differences), statistics.stdev(differences) / math.sqrt(len(differences))


def measure(name: str, arguments: argparse.Namespace, encoder: Callable[[], Any]) -> dict[str, Any]:
    """All stores on one data set."""
    data = load(name, folder=arguments.data, half=arguments.half)
    texts = [fact.text for fact in data.facts] + [query.text for query in data.queries]
    texts += [document_text(key=fact.key, text=fact.text) for fact in data.facts]
    embedder = Remembered(encoder(), texts)
    found: dict[str, dict[str, Any]] = {}
    found[FUSED] = scores(data, asyncio.run(onfile_keys(data, embedder)))
    found[VECTORS] = scores(data, asyncio.run(onfile_keys(data, VectorsOnly(embedder))))
    found[WORDS] = scores(data, asyncio.run(onfile_keys(data, None)))
    if not arguments.alone:
        for kind in PEERS:
            peer = installed(kind, embedder)
            answers = None if peer is None else peer_keys(data, peer)
            if answers is not None:
                found[kind.name] = scores(data, answers)
    for store, result in found.items():
        result["lead"], result["se"] = paired(found[FUSED]["each"], result["each"])
        print(
            f"{name:12} {store:26} recall@20 {result['recall@20']:5.1f}   recall@5 {result['recall@5']:5.1f}   "
            f"MRR {result['mrr']:5.1f}   onfile ahead by {result['lead']:+5.1f} ± {result['se']:.1f}",
            flush=True,
        )
    return {store: {k: v for k, v in result.items() if k != "each"} for store, result in found.items()}


def main() -> None:
    """Measure and print; `--json` keeps the numbers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA)
    parser.add_argument("--half", default="dev")
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS)
    parser.add_argument("--model", default="minilm", choices=["minilm", "words"])
    parser.add_argument("--alone", action="store_true", help="without the peers")
    parser.add_argument("--json", type=Path, default=RESULTS / "recall.json")
    arguments = parser.parse_args()
    use_loadable_sqlite()
    encoder: Callable[[], Any] = MiniLm if arguments.model == "minilm" else WordVectors
    results = {name: measure(name, arguments, encoder) for name in arguments.sets}
    setting = {"contextual": fusion.CONTEXTUAL, "static": fusion.STATIC, "unread": fusion.UNREAD}
    kept = {"machine": machine(), "weights": setting, "half": arguments.half, "sets": results}
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")
    print(f"wrote {arguments.json}")


if __name__ == "__main__":
    main()
