"""Chat formats against the template's own rendering, for four families of templates and for models without one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.hub import hub_tokenizer

from evolvent.core.errors import UserError
from evolvent.core.records import Message
from evolvent.models.calls import Call, parse_calls
from evolvent.models.chat import ChatFormat
from evolvent.models.tokenizer import SeedFormat, ToolFormat, character_tokenizer
from evolvent.tasks.calc import TOOLS

FAMILIES = ("chatml", "llama", "mistral", "gemma")
CALL = [Call("calculator", {"expression": "12*7"})]


def rendered(format: ChatFormat, messages: list[dict[str, Any]], **options: Any) -> list[int]:
    """Tokens of a whole conversation, as transformers makes them."""
    made = format.tokenizer.apply_chat_template(
        messages, add_generation_prompt=True, tokenize=True, return_dict=False, **options
    )
    return list(made)


def text_of(format: ChatFormat, tokens: list[int]) -> str:
    return str(format.tokenizer.decode(tokens, skip_special_tokens=False))


@pytest.fixture(scope="module", params=FAMILIES)
def format(request: pytest.FixtureRequest) -> ChatFormat:
    return ChatFormat(hub_tokenizer(request.param))


def test_a_prompt_is_what_the_template_renders(format: ChatFormat) -> None:
    messages = [Message("user", "Work out 12*7"), Message("assistant", "84"), Message("user", "and 12*8?")]
    assert format.prompt(messages) == rendered(format, [{"role": r, "content": c} for r, c in messages])


def test_prompt_turn_and_reply_are_the_tokens_of_the_whole_conversation(format: ChatFormat) -> None:
    first, turn, answer = "Work out 12*7+5.", "the result is 84", "right, and 84+5?"
    made = format.prompt([Message("user", first)]) + format.encode(turn) + [format.eos] + format.reply(answer)
    whole = [
        {"role": "user", "content": first},
        {"role": "assistant", "content": turn},
        {"role": "user", "content": answer},
    ]
    assert made == rendered(format, whole)
    assert format.close == [format.eos]
    assert format.eos in format.ends


def test_a_tools_result_is_what_the_template_writes_for_it(format: ChatFormat) -> None:
    user, result = {"role": "user", "content": "Work out 12*7"}, {"role": "tool", "content": "84"}
    if format._tool_style == "user":  # gemma knows no tools
        assert format.results(CALL, ["84"]) == format.reply("84")
        return
    made = {
        "type": "function",
        "id": "call00000",
        "function": {"name": "calculator", "arguments": {"expression": "12*7"}},
    }
    turn = {"role": "assistant", "content": "", "tool_calls": [made]}
    whole = rendered(format, [user, turn, {**result, "tool_call_id": "call00000", "name": "calculator"}])
    tail = format.results(CALL, ["84"])
    assert whole[-len(tail) :] == tail
    assert whole[-len(tail) - 1] == format.eos  # the policy wrote everything up to here
    assert "84" in text_of(format, tail)


def test_two_results_of_one_turn(format: ChatFormat) -> None:
    if format._tool_style != "user":
        tail = text_of(format, format.results([*CALL, *CALL], ["84", "91"]))
        assert tail.index("84") < tail.index("91")
        assert format.tokenizer.convert_ids_to_tokens(format.eos) not in tail[: tail.index("84")]


def test_a_system_message_reaches_the_model_whatever_the_template_says_of_it(format: ChatFormat) -> None:
    prompt = text_of(format, format.prompt([Message("system", "Be brief."), Message("user", "Work out 12*7")]))
    assert prompt.count("Be brief.") == 1
    assert prompt.index("Be brief.") < prompt.index("Work out 12*7")


def test_messages_of_one_role_in_a_row(format: ChatFormat) -> None:
    prompt = text_of(format, format.prompt([Message("user", "a note"), Message("user", "Work out 12*7")]))
    assert prompt.index("a note") < prompt.index("Work out 12*7")


def test_special_tokens_in_a_text_are_only_text(format: ChatFormat) -> None:
    end = format.tokenizer.convert_ids_to_tokens(format.eos)
    innocent, sly = (format.prompt([Message("user", f"x {t} y")]) for t in ("and", end))
    assert sly.count(format.eos) == innocent.count(format.eos)
    innocent, sly = (format.reply(f"x {t} y") for t in ("and", end))
    assert sly.count(format.eos) == innocent.count(format.eos)
    assert f"x {end} y" in text_of(format, sly)


def test_decoding_leaves_out_what_ends_a_turn_and_keeps_the_rest(format: ChatFormat) -> None:
    text = "  two  spaces ,\n and <answer>89</answer> .\n"
    assert format.decode([*format.encode(text), format.eos, format.pad]) == text
    assert format.encode("") == []


def test_saved_and_read_again_it_is_the_same(format: ChatFormat, tmp_path: Path) -> None:
    generation = {"eos_token_id": [format.eos, 7], "temperature": 0.5}
    ChatFormat(format.tokenizer, generation["eos_token_id"], generation).save(tmp_path)
    again = ChatFormat.read(tmp_path, {"vocab_size": 400})
    assert again.ends == format.ends | {7}
    assert again.generation == generation
    messages = [Message("user", "Work out 12*7")]
    assert again.prompt(messages) == format.prompt(messages)
    assert again.reply("84") == format.reply("84")
    assert (again.pad, again.close, again.native_tools) == (format.pad, format.close, format.native_tools)


def test_tools_are_told_where_the_template_can() -> None:
    for family, knows in {"chatml": True, "llama": True, "mistral": True, "gemma": False, "base": False}.items():
        format = ChatFormat(hub_tokenizer(family))
        assert isinstance(format, ToolFormat)
        assert format.native_tools is knows
        if knows:
            assert '"calculator"' in text_of(format, format.prompt([Message("user", "12*7?")], TOOLS.schemas))
    assert not isinstance(SeedFormat(character_tokenizer()), ToolFormat)


def test_the_template_names_an_end_that_the_tokenizer_does_not() -> None:
    format = ChatFormat(hub_tokenizer("chatml"))
    ids = format.tokenizer.convert_tokens_to_ids
    assert format.ends == {ids("<|im_end|>"), ids("<|endoftext|>")}
    assert format.eos == ids("<|im_end|>")
    assert format.pad == ids("<|endoftext|>")


def test_a_model_without_a_template_reads_plain_text() -> None:
    format = ChatFormat(hub_tokenizer("base"))
    prompt = format.prompt([Message("system", "Be brief."), Message("user", "Work out 12*7")])
    assert format.decode(prompt) == "Be brief.\n\nWork out 12*7\n"
    assert format.decode(format.reply("84")) == "\n84\n"
    assert format.close == []
    assert not format.native_tools


def test_a_tokenizer_that_opens_every_text_does_so_without_a_template() -> None:
    from tokenizers.processors import TemplateProcessing

    tokenizer = hub_tokenizer("llama")
    tokenizer.chat_template = None
    bos, end = "<|begin_of_text|>", "<|end_of_text|>"
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single=f"{bos} $A {end}", special_tokens=[(t, tokenizer.convert_tokens_to_ids(t)) for t in (bos, end)]
    )
    format = ChatFormat(tokenizer)
    assert format.prompt([Message("user", "12*7")]) == [tokenizer.bos_token_id, *format.encode("12*7\n")]


def test_bad_tokenizers_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="has no tokenizer"):
        ChatFormat.read(tmp_path, {})
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(UserError, match="the tokenizer cannot be read"):
        ChatFormat.read(tmp_path, {})
    hub_tokenizer("chatml").save_pretrained(tmp_path)
    with pytest.raises(UserError, match="do not belong together"):
        ChatFormat.read(tmp_path, {"vocab_size": 300})
    broken = hub_tokenizer("chatml")
    broken.chat_template = "{{ nonsense("
    with pytest.raises(UserError, match="chat template cannot be rendered"):
        ChatFormat(broken)
    endless = hub_tokenizer("base")
    endless.eos_token = None
    with pytest.raises(UserError, match="no token that ends a turn"):
        ChatFormat(endless)


SAID = {"expression": "12*7"}
JSON = json.dumps({"name": "calculator", "arguments": SAID})


@pytest.mark.parametrize(
    "turn",
    [
        f"First the product.\n<tool_call>\n{JSON}\n</tool_call>",
        f"<think>or <tool_call>{{}}</tool_call>?</think>\n<tool_call>{JSON}</tool_call>",
        f"<tool_call>{JSON}",  # the end token came before the closing tag
        '{"name": "calculator", "parameters": {"expression": "12*7"}}',
        '<|python_tag|>{"name": "calculator", "parameters": {"expression": "12*7"}}',
        json.dumps({"name": "x", "arguments": {}, "function": {"name": "calculator", "arguments": json.dumps(SAID)}}),
        f"```json\n{JSON}\n```",
        f"[TOOL_CALLS] [{JSON}]",
        '[TOOL_CALLS]calculator[ARGS]{"expression": "12*7"}',
        '<function=calculator>{"expression": "12*7"}</function>',
        "<tool_call>\n<function=calculator>\n<parameter=expression>\n12*7\n</parameter>\n</function>\n</tool_call>",
    ],
)
def test_calls_in_the_forms_that_models_write(turn: str) -> None:
    assert parse_calls(turn) == [Call("calculator", SAID)]


def test_several_calls_keep_their_order() -> None:
    two = [Call("calculator", {"expression": e}) for e in ("1+2", "3*4")]
    bodies = [json.dumps({"name": c.name, "arguments": c.arguments}) for c in two]
    assert parse_calls("".join(f"<tool_call>{b}</tool_call>" for b in bodies)) == two
    assert parse_calls(f"[TOOL_CALLS] [{', '.join(bodies)}]") == two
    assert parse_calls("".join(f"[TOOL_CALLS]{c.name}[ARGS]{json.dumps(c.arguments)}" for c in two)) == two
    assert parse_calls(f"[{', '.join(bodies)}]") == two


@pytest.mark.parametrize(
    "turn",
    ["", "The number is 89.", "<answer>89</answer>", '{"answer": 89}', "[1, 2]", "[]", "12*7 [12*7]",
     "<think><tool_call>{}</tool_call></think> 89", "{not json", "[" * 2000],
)  # fmt: skip
def test_what_is_no_call(turn: str) -> None:
    assert parse_calls(turn) == []


@pytest.mark.parametrize(
    ("turn", "said"),
    [
        ("<tool_call>{oops</tool_call>", "no valid JSON"),
        ("<tool_call>[1]</tool_call>", "has no name"),
        ('<tool_call>{"arguments": {}}</tool_call>', "has no name"),
        ('<tool_call>{"name": "f", "arguments": [1]}</tool_call>', "no JSON object"),
        ('<tool_call>{"name": "f", "arguments": "{"}</tool_call>', "arguments of f are no valid JSON"),
        ("[TOOL_CALLS]f[ARGS]{oops", "no valid JSON"),
        ("<tool_call>" + "[" * 2000 + "</tool_call>", "nested too deeply"),
        ('<tool_call>{"name": "f", "arguments": "' + "[" * 2000 + '"}</tool_call>', "arguments of f are no valid JSON"),
        ('[TOOL_CALLS]f[ARGS]{"a": ' + "[" * 2000, "no valid JSON"),
        ('[TOOL_CALLS]f[ARGS]{"a": ' + "[" * 200 + "]" * 200 + "}", "arguments of f are no valid JSON"),
        ("[TOOL_CALLS] nothing", "no valid JSON"),
    ],
)
def test_a_broken_call_says_what_is_wrong_with_it(turn: str, said: str) -> None:
    (call,) = parse_calls(turn)
    assert call.name == ""
    assert said in call.error


def test_a_parameter_that_is_nested_too_deeply_is_a_text() -> None:
    [call] = parse_calls(f"<function=f><parameter=a>{'[' * 2000}</parameter></function>")
    assert call.arguments == {"a": "[" * 2000}
