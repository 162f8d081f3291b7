"""Novelty by embeddings: a program is too like another one where a model of texts says so."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from evolvent.core.errors import EngineError
from evolvent.judge.embed_endpoint import EndpointEmbed
from evolvent.search.archive import Archive
from evolvent.search.novelty import neighbours
from evolvent.search.segments import segments


@dataclass
class Embedded:
    """Novelty rule: max over the programs of the island of cos(e(program), e(other)) < threshold, with embeddings e of
    what may change in a program, its EVOLVE blocks (ShinkaEvolve, arXiv 2509.19349, section 3).

    Where no embedding can be had a program passes: only a verdict rejects. Embeddings are made once.

    embed  of texts: `EndpointEmbed`, or on this machine `evolvent.judge.embed:MiniLM` or `:hashed_ngrams`
    """

    threshold: Annotated[float, Field(gt=0, le=1)] = 0.95
    embed: Any = EndpointEmbed
    known: dict[str, np.ndarray] = field(default_factory=dict, init=False, repr=False)

    def __call__(self, program: str, archive: Archive) -> bool:
        """Whether a program is worth an evaluation."""
        texts = ["\n".join(segments(text)) for text in (program, *(c.text for c in neighbours(archive)))]
        new = [text for text in dict.fromkeys(texts) if text not in self.known]
        try:
            self.known |= zip(new, self.embed(new), strict=True) if new else ()
        except EngineError:
            return True
        mine, *others = [self.known[text] for text in texts]
        return all(cosine(mine, other) < self.threshold for other in others)


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    """Of two vectors; 0 where one of them is 0."""
    length = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / length if length else 0.0
