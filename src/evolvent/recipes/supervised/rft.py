"""RFT: rejection-sampling fine-tuning, the half of NFT that right answers make.

arXiv 2505.18116 (the baseline with `neg_weight` 0).

    right: -log pi,    wrong: nothing

The same samples and number of updates as NFT, and the weight 1 for every problem (appendix C; the released code's
switch, `neg_weight` 0, leaves w = 1 - r unless its weight is switched as well).
"""

from evolvent.core.recipe import put, recipe
from evolvent.learn.negative import equal
from evolvent.recipes.supervised.nft import nft

rft = recipe(
    "rft",
    nft,
    put("credit.weight", equal),
    put("learn.surrogate.neg_weight", 0.0),
    title="Rejection-sampling fine-tuning (baseline of NFT)",
    paper="arXiv 2505.18116",
)
