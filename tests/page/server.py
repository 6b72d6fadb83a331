"""infer serve, for a browser."""

import json
import re
import subprocess
import urllib.request


class Server:
    """A server on a port that was free; as a context manager it is ended."""

    def __init__(self, infer, *options):
        self.process = subprocess.Popen([infer, "serve", "--port", "0", *options], text=True,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.address = None
        said = ""
        while self.address is None:
            line = self.process.stderr.readline()
            if not line:
                raise RuntimeError(f"infer serve has ended: {said}")
            said += line
            self.address = (re.findall(r"http://\S+", line) or [None])[0]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.stderr.close()
        self.process.wait()

    def observe(self, **asked):
        """The answer of POST /observe."""
        request = urllib.request.Request(f"{self.address}/observe", json.dumps(asked).encode(),
                                         {"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)
