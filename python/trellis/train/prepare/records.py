"""What a record is made of: stretches of text, each to be predicted or not; or tokens that are there already."""

from dataclasses import dataclass
from typing import Any

from trellis.train.prepare.chat import Template
from trellis.train.prepare.wrong import Wrong

__all__ = ["Document", "Reader", "FORMS"]

FORMS = ("text", "prompt", "messages", "tokens")
_RESPONSES = {"prompt": ("response", "completion"), "instruction": ("output", "response"), "question": ("answer",)}
_CHATS = ("messages", "conversations")


@dataclass
class Document:
    """Text with the stretches of it that are to be predicted, or tokens with their mask."""

    text: str = ""
    counted: list[tuple[int, int]] | None = None  # None: all of it
    tokens: list[int] | None = None
    mask: list[int] | None = None
    ended: bool = False  # by a template


def _string(record: dict[str, Any], key: str, where: str) -> str:
    value = record.get(key)
    if not isinstance(value, str):
        raise Wrong(f"{where}: {key!r} is {type(value).__name__}: expected text")
    return value


class Reader:
    """Reads records of one form, which the first one shows where it is not said."""

    def __init__(self, form: str = "", column: str = "", template: Template | None = None) -> None:
        self.form, self.column, self.template = form, column, template

    @property
    def masked(self) -> bool:
        """Whether parts of documents are not to be predicted."""
        return self.form in ("prompt", "messages")

    def _guess(self, record: dict[str, Any], where: str) -> str:
        if self.column:
            return "text"
        if any(key in record for key in _CHATS):
            return "messages"
        if any(prompt in record and any(r in record for r in responses) for prompt, responses in _RESPONSES.items()):
            return "prompt"
        if "input_ids" in record:
            return "tokens"
        if "text" in record:
            return "text"
        raise Wrong(
            f"{where} has {', '.join(sorted(map(str, record))) or 'nothing'}: expected text, prompt and response, "
            f"messages, or input_ids; --column names another column of text"
        )

    def read(self, record: dict[str, Any], where: str) -> Document:
        self.form = self.form or self._guess(record, where)
        if self.form == "text":
            return Document(_string(record, self.column or "text", where))
        if self.form == "prompt":
            return self._prompt(record, where)
        if self.form == "messages":
            return self._messages(record, where)
        return self._tokens(record, where)

    def _prompt(self, record: dict[str, Any], where: str) -> Document:
        for prompt, responses in _RESPONSES.items():
            for response in responses:
                if prompt in record and response in record:
                    before, after = _string(record, prompt, where), _string(record, response, where)
                    more = record.get("input") or record.get("context") or ""
                    if prompt == "instruction" and more:
                        before += "\n" + str(more)
                    if prompt == "instruction":
                        before += "\n"
                    return Document(before + after, [(len(before), len(before) + len(after))])
        raise Wrong(f"{where} has {', '.join(sorted(map(str, record)))}: expected prompt and response")

    def _messages(self, record: dict[str, Any], where: str) -> Document:
        key = next((key for key in _CHATS if key in record), "")
        messages = record.get(key)
        if not isinstance(messages, list) or not messages:
            raise Wrong(f"{where}: {key or 'messages'!r} is {type(messages).__name__}: expected a list of messages")
        plain = []
        for message in messages:
            if not isinstance(message, dict):
                raise Wrong(f"{where}: a message is {type(message).__name__}: expected role and content")
            if "from" in message:
                roles = {"human": "user", "gpt": "assistant"}
                said = str(message["from"])
                message = {"role": roles.get(said, said), "content": message.get("value")}
            _string(message, "role", where)
            plain.append({name: value for name, value in message.items() if value is not None})
        if self.template is None:
            raise Wrong(f"{where}: messages need a chat template: expected chat_template in the tokenizer's "
                        f"tokenizer_config.json, or --chat-template FILE")  # fmt: skip
        return Document(*self.template.render(plain, where), ended=True)

    def _tokens(self, record: dict[str, Any], where: str) -> Document:
        tokens, labels = record.get("input_ids"), record.get("labels")
        for name, values in (("input_ids", tokens), ("labels", labels)):
            whole = isinstance(values, list) and all(isinstance(value, int) for value in values)
            if not whole and not (name == "labels" and values is None):
                raise Wrong(f"{where}: {name!r} is {type(values).__name__}: expected a list of whole numbers")
        assert isinstance(tokens, list)
        if labels is not None and len(labels) != len(tokens):
            raise Wrong(f"{where}: {len(labels)} labels of {len(tokens)} input_ids")
        return Document(tokens=tokens, mask=None if labels is None else [int(label != -100) for label in labels])
