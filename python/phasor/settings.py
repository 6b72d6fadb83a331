"""What an Encoder can be told under the names of sentence-transformers."""

from __future__ import annotations

import dataclasses
from typing import Any, Optional

from ._library import InvalidArgument

#: The arguments that are taken for the sake of callers of other packages and change nothing, by the
#: method of Encoder; docs/python.md says what stands in their place.
WITHOUT_EFFECT = {
    "__init__": ("device", "backend", "trust_remote_code", "local_files_only"),
    "to": ("device",),
    "encode": ("batch_size", "device", "chunk_size", "pool"),
    "rank": ("batch_size",),
    "predict": ("batch_size",),
    "run_with_hooks": ("reset_hooks_end",),
}

SIMILARITIES = {"cosine": 0, "dot": 1, "euclidean": 2, "manhattan": 3}
#: Prompts of documents; the first that there is counts.
OF_DOCUMENTS = ("document", "passage", "corpus")


@dataclasses.dataclass
class Settings:
    """What is used in place of what the model's files say; None, or 0 tokens, leaves that."""

    prompts: dict[str, str]
    default_prompt_name: Optional[str] = None
    truncate_dim: Optional[int] = None
    max_tokens: int = 0
    similarity: Optional[str] = None

    def prompt(self, name: Optional[str], prompt: Optional[str]) -> str:
        """What is put before texts: the prompt, or that of the name, or the default."""
        if prompt is not None:
            return prompt
        if name is None:
            return self.prompts.get(self.default_prompt_name or "", "")
        if name not in self.prompts:
            raise InvalidArgument(f"there is no prompt {name!r}; there are: {', '.join(self.prompts) or 'none'}")
        return self.prompts[name]

    def of_documents(self) -> Optional[str]:
        found = [self.prompts.get(name) for name in OF_DOCUMENTS]
        return next(filter(None, found), found[0])


def on_cpu(device: Any) -> None:
    """Refuses other devices."""
    if device is not None and str(device) != "cpu":
        raise InvalidArgument(f"device is {device}; phasor runs on the CPU alone")


def tensor(values: Any) -> Any:
    """A tensor of torch, over the same memory where that may be written."""
    try:
        import torch
    except ImportError:
        raise InvalidArgument("convert_to_tensor needs torch, which is not installed") from None
    return torch.from_numpy(values if values.flags.writeable else values.copy())
