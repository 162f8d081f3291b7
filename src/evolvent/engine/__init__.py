"""The engine protocol and its implementations. Here: models by name that have no weights to load."""

SPECIAL = {  # name -> `opened(task, ledger)`, which gives policy and engine
    "simulated": "evolvent.engine.simulated:opened",
    "none": "evolvent.engine.absent:opened",
}
