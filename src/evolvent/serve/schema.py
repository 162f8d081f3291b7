"""What requests may say, and errors in the form that OpenAI's clients understand.

A parameter that would change the reply and is not supported is refused, as is one that nobody knows; those that
change nothing here (who asks, where to bill) are ignored.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from evolvent.core.ranges import Count

MOST = 128  # choices of one request
NEUTRAL = {  # accepted only where they change nothing
    *("presence_penalty", "frequency_penalty", "logit_bias", "response_format", "tools", "tool_choice", "modalities"),
    "suffix",
}


class ApiError(Exception):
    """An error reply: HTTP status, message, and OpenAI's type, param and code."""

    def __init__(self, status: int, message: str, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.param, self.code = status, message, param, code

    def body(self) -> dict[str, Any]:
        """The JSON of the reply."""
        kind = "server_error" if self.status >= 500 else "invalid_request_error"
        return {"error": {"message": self.message, "type": kind, "param": self.param, "code": self.code}}


class Strict(BaseModel):
    """No unknown fields, no conversions between types."""

    model_config = ConfigDict(extra="forbid", strict=True)


class TextPart(Strict):
    """A part of a message. Only text is read."""

    type: Literal["text"]
    text: str


class ChatMessage(BaseModel):
    """One message of a conversation; fields of other clients (names, refusals) are ignored."""

    model_config = ConfigDict(strict=True)

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[TextPart] | None = None

    @property
    def text(self) -> str:
        """The content as one string."""
        if isinstance(self.content, list):
            return "".join(part.text for part in self.content)
        return self.content or ""


class StreamOptions(Strict):
    """`include_usage`: a last chunk with the usage."""

    include_usage: bool = False
    include_obfuscation: bool = False


class Generation(Strict):
    """What both APIs share."""

    model: str
    n: Annotated[int, Field(ge=1, le=MOST)] | None = None
    stop: str | Annotated[list[str], Field(max_length=16)] | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    top_k: Annotated[int, Field(ge=-1)] | None = None
    seed: int | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    # of these, only what changes nothing
    presence_penalty: Annotated[float, Field(ge=0, le=0)] | None = None
    frequency_penalty: Annotated[float, Field(ge=0, le=0)] | None = None
    logit_bias: Annotated[dict[str, float], Field(max_length=0)] | None = None
    # ignored
    user: str | None = None
    metadata: dict[str, str] | None = None
    store: bool | None = None
    service_tier: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None

    @property
    def stops(self) -> tuple[str, ...]:
        """The stop strings, empty ones left out."""
        found = [self.stop] if isinstance(self.stop, str) else self.stop or []
        return tuple(s for s in found if s)


class PlainText(BaseModel):
    """The one response format there is."""

    type: Literal["text"]


class ChatRequest(Generation):
    """POST /v1/chat/completions."""

    messages: Annotated[list[ChatMessage], Field(min_length=1)]
    max_tokens: Count | None = None
    max_completion_tokens: Count | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    response_format: PlainText | None = None
    tools: Annotated[list[Any], Field(max_length=0)] | None = None
    tool_choice: Literal["none", "auto"] | None = None
    parallel_tool_calls: bool | None = None
    modalities: list[Literal["text"]] | None = None

    @property
    def limit(self) -> int | None:
        """The most tokens to sample, if it says so."""
        return self.max_completion_tokens or self.max_tokens

    @property
    def alternatives(self) -> int | None:
        """Top alternatives to report beside log-probs; None: no log-probs."""
        if not self.logprobs:
            if self.top_logprobs:
                raise ApiError(400, "top_logprobs needs logprobs to be true", "top_logprobs")
            return None
        return self.top_logprobs or 0


class CompletionRequest(Generation):
    """POST /v1/completions. A prompt is text, tokens, or a list of either."""

    prompt: str | list[str] | list[int] | list[list[int]]
    max_tokens: Count | None = None
    logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    echo: bool | None = None
    best_of: int | None = None
    suffix: None = None

    @property
    def limit(self) -> int:
        """The most tokens to sample; 16 unless it says otherwise."""
        return self.max_tokens or 16

    @property
    def alternatives(self) -> int | None:
        """Top alternatives to report beside log-probs; None: no log-probs."""
        return self.logprobs

    @property
    def prompts(self) -> list[str] | list[list[int]]:
        """The prompts, each text or tokens."""
        if isinstance(self.prompt, str):
            return [self.prompt]
        if self.prompt and isinstance(self.prompt[0], int):
            return [[t for t in self.prompt if isinstance(t, int)]]
        return self.prompt  # type: ignore[return-value]


def parse(model: type[Any], body: bytes) -> Any:
    """A request from its JSON; `ApiError` 400 in OpenAI's words."""
    try:
        return model.model_validate_json(body)
    except ValidationError as reason:
        found = reason.errors(include_url=False)[0]
        param = ".".join(str(p) for p in found["loc"] if not (isinstance(p, str) and ("[" in p or p == "str")))
        if found["type"] == "json_invalid":
            raise ApiError(400, f"the request is not valid JSON: {found['msg']}") from None
        if found["type"] == "extra_forbidden":
            raise ApiError(400, f"Unrecognized request argument supplied: {param}", param) from None
        if found["loc"] and found["loc"][0] in NEUTRAL:
            raise ApiError(400, f"{found['loc'][0]} is not supported", param) from None
        if found["type"] == "missing":
            raise ApiError(400, f"you must provide the parameter {param}", param) from None
        raise ApiError(400, f"{param or 'the request'}: {found['msg']}", param or None) from None
