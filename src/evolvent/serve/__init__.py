"""Serve: a model over the OpenAI-compatible API."""

from evolvent.serve.app import create_app, serve

__all__ = ["create_app", "serve"]
