"""``python3 -m phasor …`` and the script ``infer`` are the ``infer`` program of the package."""

import os
import sys
from typing import NoReturn

from ._library import PREFIX


def main() -> NoReturn:
    os.execv(PREFIX / "bin" / "infer", ["infer", *sys.argv[1:]])


if __name__ == "__main__":
    main()
