"""Best of n (control): sample n answers, let the verifier choose.

    answer = argmax_i r(y_i),  y_1 .. y_n ~ pi

Learns nothing. Its answers need the verifier at answer time, so it is an upper reference for what sampling can reach,
not a competitor of methods that answer once.
"""

from evolvent.core.recipe import put, recipe, wrap
from evolvent.judge.best import BestOf
from evolvent.recipes.control.no_change import no_change

best_of_n = recipe(
    "best-of-n",
    no_change,
    put("propose.n", 16),
    wrap("judge", BestOf),
    title="Best of n (control)",
    notes="needs the verifier at answer time",
)
