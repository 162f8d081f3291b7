"""Pretraining: the same bits each time, also after an interruption; weights, splits, files."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from evolvent.core.errors import UserError
from evolvent.core.random import stream
from evolvent.models.checkpoint import read_decoder
from evolvent.models.decoder import Decoder, DecoderConfig, initialise
from evolvent.models.mixture import seed_mixture
from evolvent.models.pretrain import (
    CURVES,
    STATE,
    Entry,
    Pool,
    Pools,
    Schedule,
    Shape,
    draw,
    example,
    losses,
    micro_batches,
    pretrain,
)
from evolvent.models.tokenizer import SeedFormat, character_tokenizer
from evolvent.tasks.arith import Arith
from evolvent.tasks.base import Piece, key_of, split_of
from evolvent.tasks.calc import Calc
from evolvent.tasks.roles import Judge

FORMAT = SeedFormat(character_tokenizer())
SHAPE = Shape(layers=2, width=16, inner=32, heads=2, context=64)
SCHEDULE = Schedule(examples=12, tokens=120, pool=40)


def entry(task, share=((0.0, 1.0), (1.0, 1.0)), demo=None, name=None):
    return Entry(name or task.name, task, task.categories[0], share, demo)


MIXTURE = [entry(Arith(("1x1",))), entry(Judge(("2x20",)), ((0.0, 0.0), (0.5, 0.0), (1.0, 2.0))), entry(Calc(("1x2",)))]


def test_two_runs_give_the_same_bits(tmp_path):
    for name in ("a", "b"):
        pretrain(MIXTURE, SHAPE, 3, 15, tmp_path / name, schedule=SCHEDULE)
    for file in ("model.safetensors", "config.json", CURVES, "tokenizer.json"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes(), file
    pretrain(MIXTURE, SHAPE, 4, 15, tmp_path / "c", schedule=SCHEDULE)
    assert (tmp_path / "a/model.safetensors").read_bytes() != (tmp_path / "c/model.safetensors").read_bytes()


class Stop(Exception):
    """An interruption."""


@pytest.mark.parametrize("at", [4, 9])
def test_resume_equals_uninterrupted(tmp_path, at):
    pretrain(MIXTURE, SHAPE, 3, 15, tmp_path / "whole", schedule=SCHEDULE, spans=5)
    seen = []

    def interrupt(step):
        seen.append(step)
        if step == at + 1:
            raise Stop

    folder = tmp_path / "cut"
    with pytest.raises(Stop):
        pretrain(MIXTURE, SHAPE, 3, 15, folder, schedule=SCHEDULE, spans=5, save_every=0, on_step=interrupt)
    assert (folder / STATE).is_file()
    assert not (folder / "model.safetensors").exists()
    resumed = []
    pretrain(MIXTURE, SHAPE, 3, 15, folder, schedule=SCHEDULE, spans=5, on_step=resumed.append)
    assert resumed[0] in (at + 1, at + 2)
    assert not (folder / STATE).exists()
    for file in ("model.safetensors", CURVES):
        assert (folder / file).read_bytes() == (tmp_path / "whole" / file).read_bytes(), file


def test_a_state_of_another_run_is_refused(tmp_path):
    def interrupt(step):
        if step == 5:
            raise Stop

    with pytest.raises(Stop):
        pretrain(MIXTURE, SHAPE, 3, 15, tmp_path, schedule=SCHEDULE, save_every=0, on_step=interrupt)
    with pytest.raises(UserError, match="another run"):
        pretrain(MIXTURE, SHAPE, 4, 15, tmp_path, schedule=SCHEDULE)


def test_training_learns(tmp_path):
    pretrain([entry(Arith(("1x1",)))], SHAPE, 0, 150, tmp_path, schedule=Schedule(examples=32, rate=0.01))
    curve = json.loads((tmp_path / CURVES).read_text())["loss"]["arith:1x1"]
    assert curve[0] > 3.5  # ln 100 is 4.6
    assert np.mean(curve[-5:]) < 1.5


def test_an_example_counts_what_the_policy_writes():
    demo = [Piece("ab", weight=5.0), Piece("cd", policy=False), Piece("e")]
    made = example(Arith(("1x1",)).draw("train", stream(0)), demo, FORMAT)
    length = len(made.tokens) - 6
    assert made.tokens[0] == FORMAT.bos
    assert made.tokens[-1] == FORMAT.eos
    assert made.weights.tolist() == [0.0] * length + [5.0, 5.0, 0.0, 0.0, 1.0, 1.0]


def test_a_turn_that_ends_in_a_call_has_no_eos():
    task = Calc(("1x2",))
    problem = task.draw("train", stream(1))
    made = example(problem, task.gold(problem), FORMAT)
    assert (made.tokens == FORMAT.eos).sum() == 1
    text = FORMAT.decode(made.tokens)
    written = FORMAT.decode(made.tokens[made.weights > 0])
    for line in problem.data["lines"]:
        call, result = line.rsplit("=", 1)
        assert f"[{call}]{result}" in text
        assert f"[{call}]" in written
    assert text.endswith(f"={problem.data['answer']}")


@torch.no_grad()
def test_the_loss_is_the_weighted_mean_over_the_step():
    """Against a plain forward pass of each example alone, without padding."""
    model = Decoder(DecoderConfig.read(SHAPE.config(FORMAT.size)))
    initialise(model, torch.Generator().manual_seed(0))
    examples = [(i, one) for i, e in enumerate(MIXTURE) for one in draw(e, 5, 0, FORMAT)]
    batches = micro_batches(examples, 100)
    assert len(batches) > 2
    assert all(b.tokens.numel() <= 100 or len(b.tokens) == 1 for b in batches)
    total = sum(float(b.weights.sum()) for b in batches)
    mine = sum(float((nll * w).sum()) for nll, w, _ in (losses(model, b) for b in batches)) / total
    wanted, weight = 0.0, 0.0
    for _, one in examples:
        tokens = torch.from_numpy(one.tokens.astype(np.int64))[None]
        logp = F.log_softmax(model.head(model(tokens)), -1)[0]
        for t in range(1, tokens.shape[1]):
            wanted -= float(one.weights[t] * logp[t - 1, tokens[0, t]])
            weight += float(one.weights[t])
    assert mine == pytest.approx(wanted / weight, rel=1e-5)
    rows = {int(i) for b in batches for i in b.entries}
    assert rows == {0, 1, 2}


def test_pools_give_back_what_they_were_given():
    examples = [one for e in MIXTURE for one in draw(e, 7, 0, FORMAT)]
    kept = Pool(examples)
    assert len(kept) == 21
    for i, one in enumerate(examples):
        assert kept[i].tokens.tolist() == one.tokens.tolist()
        assert kept[i].weights.tolist() == one.weights.tolist()


def test_shares_follow_the_schedule():
    pools = Pools(MIXTURE, Schedule(examples=400, pool=20), 0, 100, FORMAT, lambda note: None)
    early = np.bincount([i for i, _ in pools.step(0)], minlength=3)
    late = np.bincount([i for i, _ in pools.step(99)], minlength=3)
    assert early[1] == 0
    assert late[1] == pytest.approx(200, abs=45)
    assert late.sum() == early.sum() == 400


def test_a_mixture_with_a_hole_is_refused():
    with pytest.raises(UserError, match="no entry has a share"):
        Pools([entry(Arith(("1x1",)), ((0.0, 1.0), (0.5, 0.0), (1.0, 0.0)))], SCHEDULE, 0, 10, FORMAT, print)


class Recorded:
    """A task that keeps the problems that were drawn from it."""

    def __init__(self, task):
        self.task, self.problems = task, []

    def __getattr__(self, name):
        return getattr(self.task, name)

    def draw(self, split, rng, category=None):
        problem = self.task.draw(split, rng, category)
        self.problems.append((split, problem))
        return problem


def test_no_key_of_gate_or_test_is_ever_drawn():
    for one in seed_mixture():
        recorded = Recorded(one.task)
        list(draw(Entry(one.name, recorded, one.level, one.share, one.demo), 12, 0, FORMAT))
        assert recorded.problems
        for split, problem in recorded.problems:
            assert split == "train"
            assert split_of(problem.key) == "train"
            if "target" in problem.data:
                assert (
                    split_of(key_of("countdown", [sorted(problem.data["numbers"]), problem.data["target"]])) == "train"
                )


def test_the_rate_warms_up_and_decays_to_zero():
    schedule = Schedule(rate=1.0, warmup=0.1, decay=0.5)
    assert [schedule.rate_at(p) for p in (0, 0.05, 0.1, 0.5, 0.75, 1)] == pytest.approx([0, 0.5, 1, 1, 0.5, 0])


def test_the_folder_is_one_that_loads(tmp_path):
    model = pretrain(MIXTURE, SHAPE, 3, 3, tmp_path, schedule=SCHEDULE)
    loaded = read_decoder(tmp_path)
    tokens = torch.tensor([FORMAT.encode("12+34=")])
    assert torch.equal(loaded.head(loaded(tokens)), model.head(model(tokens)))
