"""`evolvent serve`."""

from __future__ import annotations

import os

import click

from evolvent.cli import complete
from evolvent.cli.options import open_store, store_option, use_threads
from evolvent.core.errors import UserError


@click.command()
@click.argument("subject", metavar="RUN|MODEL", shell_complete=complete.runs_and_models)
@click.option("--version", "number", type=int, help="a version of the run (default: its head)")
@click.option("--host", default="127.0.0.1", show_default=True, help="address to listen on; others can reach 0.0.0.0")
@click.option("--port", type=click.IntRange(1, 65535), default=8000, show_default=True)
@click.option("--name", help="name of the model in the API (default: the run's or model's)")
@click.option("--key-env", metavar="VARIABLE", help="environment variable with the key that clients must send")
@click.option(
    "--threads",
    type=click.IntRange(1),
    help="threads of the processor (default: all cores, at most 8; 1 for small models)",
)
@store_option
def serve(
    subject: str,
    number: int | None,
    host: str,
    port: int,
    name: str | None,
    key_env: str | None,
    threads: int | None,
    store_: str,
) -> None:
    """Serve a run's model, or any model, over the OpenAI API: chat, completions, streaming, log-probs, usage.

    \b
    evolvent serve last --port 8000
    curl localhost:8000/v1/completions \\
        -d '{"model": "last", "prompt": "3,5,7>22:", "max_tokens": 12}'

    Clients of the openai package use base_url="http://127.0.0.1:8000/v1".
    """
    use_threads(threads)
    from evolvent.core.ledger import Ledger
    from evolvent.engine.huggingface import local_engine
    from evolvent.lineage.runs import run_names
    from evolvent.models.load import load_policy
    from evolvent.serve.app import bind, create_app, serve_at

    key = os.environ.get(key_env) if key_env else None
    if key_env and not key:
        raise UserError(f"the environment variable {key_env} is not set; put the key that clients must send into it")
    if host not in ("127.0.0.1", "localhost", "::1") and not key:
        raise UserError(f"{host} can be reached by others; give a key with --key-env, or keep to 127.0.0.1")
    store = open_store(store_) if os.path.isdir(store_) else None
    if store and (subject == "last" or subject in run_names(store)):
        from evolvent.lineage.versions import load_version

        policy = load_version(store, subject, number)
    else:
        policy = load_policy(subject)
    app = create_app(policy, local_engine(policy, Ledger()), name or subject, key=key)
    with bind(host, port) as listening:  # before anything is promised
        click.echo(f"serving {name or subject} on http://{host}:{port}/v1 (Ctrl-C ends it)", err=True)
        serve_at(app, listening)
