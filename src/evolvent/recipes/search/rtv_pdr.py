"""RTV + PDR: a wave of attempts, votes on their summaries in small groups, and a second wave that has read the winners.

    wave 0   n attempts that know of no other
    RTV      groups of G = 2, V = 8 votes each, the majority's winner goes on, until K are left
    wave 1   n attempts, begun afresh with the K summaries before them
    RTV      until one is left: that one is handed in

arXiv 2604.16529. Summaries are compared, never traces. Where there is no model a scripted agent makes the attempts and
votes are simulated (`search.attempts.tournament`), so that evidence of it is of a simulated world.
`--set propose.waves=1` is RTV alone, `--set propose.distil=false` PDR without what it is named for.
"""

from evolvent.core.recipe import put, recipe
from evolvent.recipes.search.se_agent import se_agent
from evolvent.search.attempts.tournament import Tournament
from evolvent.search.attempts.waves import Waves

rtv_pdr = recipe(
    "rtv-pdr",
    se_agent,
    put("propose", Waves),
    put("propose.tournament", Tournament),
    title="Scaling Test-Time Compute for Agentic Coding",
    paper="arXiv 2604.16529",
)
