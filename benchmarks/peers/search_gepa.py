"""One search of GEPA in the present folder. usage: search_gepa.py PORT ITERATIONS SECONDS

The candidate is a text; the same faults are in its adapter's `evaluate`, where users of GEPA put their evaluator.
"""

import http.client
import json
import re
import sys

import faulty
from gepa import optimize
from gepa.core.adapter import EvaluationBatch, GEPAAdapter

MODEL, ITERATIONS = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1])), int(sys.argv[2])
ANSWERS = [0]  # how many the model had given by then, to an earlier process, too


def asked(prompt: object) -> str:
    """The scripted model's answer."""
    messages = prompt if isinstance(prompt, list) else [{"role": "user", "content": prompt}]
    body = json.dumps({"model": "stub", "messages": messages}).encode()
    MODEL.request("POST", "/v1/chat/completions", body, {"Content-Type": "application/json"})
    reply = json.load(MODEL.getresponse())
    ANSWERS.append(int(reply["id"]) + 1)
    return reply["choices"][0]["message"]["content"]


class Adapter(GEPAAdapter):
    """Two numbers for training and two for validation; better with the number of the variant."""

    propose_new_texts = None

    def evaluate(self, batch, candidate, capture_traces=False):
        """Scores; a candidate is at fault the first time that it is evaluated."""
        found = re.findall(r"variant (\d+)", candidate["p"])
        k = int(found[0]) if found else 0
        value = faulty.happens(k, 0.1 + 0.001 * k)
        scores = [value for _ in batch]
        with open("evaluated", "a") as file:
            file.write(f"{k}\n")
        traces = [{"x": x, "s": s} for x, s in zip(batch, scores, strict=True)]
        return EvaluationBatch(outputs=scores, scores=scores, trajectories=traces if capture_traces else None)

    def make_reflective_dataset(self, candidate, batch, components):
        """What the model is shown."""
        rows = [{"Inputs": str(t["x"]), "Generated Outputs": str(t["s"]), "Feedback": ""} for t in batch.trajectories]
        return dict.fromkeys(components, rows)


def enough(state: object) -> bool:
    """Whether so many variants have been asked for."""
    return ANSWERS[-1] >= ITERATIONS


optimize({"p": "seed instruction"}, [1, 2], [3, 4], adapter=Adapter(), reflection_lm=asked, stop_callbacks=enough,
         run_dir="out", seed=0, raise_on_exception=False, display_progress_bar=False)  # fmt: skip
