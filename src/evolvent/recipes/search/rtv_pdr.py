"""RTV + PDR: a wave of attempts, votes on their summaries in small groups, and a second wave that has read the winners.

    wave 0   n attempts that know of no other
    RTV      groups of G = 2, V = 8 votes each, the majority's winner goes on, until K are left
    wave 1   n attempts, begun afresh with the K summaries before them
    RTV      until one is left: that one is handed in

arXiv 2604.16529. Summaries are compared, never traces. Where there is no model a scripted agent makes the attempts and
votes are simulated (`search.attempts.tournament`), so that evidence of it is of a simulated world.
`--set propose.waves=1` is RTV alone, `--set propose.distil=false` PDR without what it is named for.
"""

from evolvent.core.claim import up
from evolvent.core.grid import grid_claim
from evolvent.core.recipe import put, recipe
from evolvent.recipes.search.se_agent import se_agent
from evolvent.search.attempts.tournament import Tournament
from evolvent.search.attempts.waves import Waves

ACCURACY = "propose.tournament.accuracy"
EIGHT = {"propose.n": 8}  # twice
SINGLE = {"propose.tournament.votes": 1}
SIXTEEN = {"recipe": "rtv-pdr", "propose.n": 16, "propose.waves": 1, "propose.tournament.group": 16, **SINGLE}
PATCHES = {"task": "program:patches:12", "budget": "192 evaluations", "model": "none"}

rtv_pdr = recipe(
    "rtv-pdr",
    se_agent,
    put("propose", Waves),
    put("propose.tournament", Tournament),
    title="Scaling Test-Time Compute for Agentic Coding",
    paper="arXiv 2604.16529",
    mechanism=grid_claim(
        "The majority of eight votes is right about which attempt is better more often than one vote is.",
        up("train.judged_right/wave-0", 0.05, "one-vote"),
        arms={"ours": EIGHT, "one-vote": {"recipe": "rtv-pdr", **EIGHT, **SINGLE}},
        where=({ACCURACY: 0.65}, {ACCURACY: 0.75}),
        nowhere=({ACCURACY: 0.5},),
        **PATCHES,
    ),
    outcome=grid_claim(
        "With as many attempts it repairs more bugs than the best of 16 by a single vote, by hidden tests.",
        up("final.rescored", 0.1, "best-of-16"),
        arms={"ours": EIGHT, "best-of-16": SIXTEEN},
        where=({ACCURACY: 0.65}, {ACCURACY: 0.75}),
        nowhere=({ACCURACY: 0.5, "propose.distil": False},),
        **PATCHES,
    ),
)
