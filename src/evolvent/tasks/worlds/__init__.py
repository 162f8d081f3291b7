"""Worlds that programs are written for: a goal, a seed program and a strict verifier each, by name."""

WORLDS = {  # name -> `world(size)`; sizes to try
    "circle-packing": ("evolvent.tasks.worlds.circle_packing:world", "26, 32"),
}
