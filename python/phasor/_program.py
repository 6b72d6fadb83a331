"""The ``infer`` program, which the package brings along."""

from __future__ import annotations

import os
import subprocess
from typing import List, Union

from ._library import PREFIX, BackendError, Error, InvalidArgument, ModelError

_ERRORS = {2: InvalidArgument, 3: InvalidArgument, 4: ModelError, 5: BackendError}


def run_infer(arguments: List[Union[str, bytes]]) -> str:
    """What infer prints."""
    done = subprocess.run(
        [os.fsencode(word) for word in [PREFIX / "bin" / "infer", *arguments]],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="surrogateescape",
        check=False,
    )
    if done.returncode != 0:
        message = done.stderr.strip()
        prefix = "infer: "
        message = message[len(prefix) :] if message.startswith(prefix) else message
        raise _ERRORS.get(done.returncode, Error)(message)
    return done.stdout
