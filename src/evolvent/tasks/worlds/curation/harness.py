"""Runs inside the sandbox: a program's strategies on raw documents. Text; it is never imported outside."""

import program


def clean(jobs):
    """For each job (category, documents) what is kept of the documents."""
    return [[getattr(program, "clean_" + category)(text) for text in texts] for category, texts in jobs]
