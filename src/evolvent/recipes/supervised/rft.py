"""RFT: rejection-sampling fine-tuning, the half of NFT that right answers make.

arXiv 2505.18116 (the baseline with `neg_weight` 0).

    right: -w log pi,    wrong: nothing

The same samples, weights and number of updates as NFT.
"""

from evolvent.core.recipe import put, recipe
from evolvent.recipes.supervised.nft import nft

rft = recipe(
    "rft",
    nft,
    put("learn.surrogate.neg_weight", 0.0),
    title="Rejection-sampling fine-tuning (baseline of NFT)",
    paper="arXiv 2505.18116",
)
