"""``python3 -m phasor …`` is the ``infer`` program of the package."""

import os
import sys

from ._library import PREFIX

os.execv(PREFIX / "bin" / "infer", ["infer", *sys.argv[1:]])
