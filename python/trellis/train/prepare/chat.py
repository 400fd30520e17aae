"""Chats as one text, by a tokenizer's template, and which stretches of it the assistant says."""

import datetime
import json
from typing import Any

from trellis.train.prepare.wrong import Wrong, needed

__all__ = ["Template"]


def _json(value: Any, ensure_ascii: bool = False, indent: int | None = None,
          separators: tuple[str, str] | None = None, sort_keys: bool = False) -> str:  # fmt: skip
    """The filter `tojson`, with the arguments that transformers' has."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


class Template:
    """A template of Jinja, as Hugging Face's tokenizers have it."""

    def __init__(self, text: str, words: dict[str, str]) -> None:
        sandbox = needed("jinja2.sandbox", "a chat template")
        self._errors: type[Exception] = needed("jinja2", "a chat template").TemplateError

        def refuse(message: str) -> None:
            raise self._errors(message)

        environment = sandbox.ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])  # fmt: skip
        environment.filters["tojson"] = _json
        environment.globals["raise_exception"] = refuse
        environment.globals["strftime_now"] = lambda form: datetime.datetime.now().strftime(form)
        self._words = words
        self.skipped = 0  # messages of the assistant that are not predicted
        try:
            self._template = environment.from_string(text)
        except self._errors as e:
            raise Wrong(f"the chat template: {e}") from e

    def _text(self, messages: list[dict[str, Any]], where: str, prompt: bool) -> str:
        try:
            rendered = self._template.render(messages=messages, add_generation_prompt=prompt, **self._words)
        except Exception as e:  # a template's own code may raise anything
            raise Wrong(f"{where}: the chat template: {e}") from e
        return str(rendered)

    def render(self, messages: list[dict[str, Any]], where: str) -> tuple[str, list[tuple[int, int]]]:
        """The text, and the stretches that follow the prompts for an assistant's messages."""
        whole = self._text(messages, where, False)
        counted = []
        for i, message in enumerate(messages):
            if message["role"] != "assistant":
                continue
            try:
                before = self._text(messages[:i], where, True)
            except Wrong:
                if any(each["role"] == "user" for each in messages[:i]):
                    raise
                # Templates may refuse a prompt of nothing, or one in which nobody asks.
                self.skipped += 1
                continue
            after = self._text(messages[: i + 1], where, False)
            if not whole.startswith(after) or not after.startswith(before):
                # A template may drop from earlier messages what later ones make needless.
                if i + 1 < len(messages):
                    self.skipped += 1
                    continue
                raise Wrong(f"{where}: the chat template renders message {i + 1} otherwise with the rest than alone")
            counted.append((len(before), len(after)))
        return whole, counted
