"""phasor: Transformer encoders on the CPU, with every hidden state observable.

    encoder = phasor.Encoder("sinusoidal")
    vectors = encoder.encode(["Tom bit a dog.", "A dog bit Tom."])   # [2, W]
    output, cache = encoder.run_with_cache("Tom bit a dog.")
    cache["blocks.0.attn.hook_pattern"]                              # [1, H, T, T]
"""

from ._library import BackendError, Cancelled, Error, InvalidArgument, ModelError, NotFound
from ._library import info as _info
from .cache import Encoding, HookPoint
from .encoder import Encoder
from .heads import AllVectors, Classification, SparseVectors, TokenVectors, maxsim
from .inside import Tokens
from .observed import Figure, Observed, Table, compare, observe
from .residual import ActivationCache
from .vectors import TextOptions

__version__: str = _info("version")
__all__ = ["ActivationCache", "BackendError", "Cancelled", "Classification", "Encoder"]
__all__ += ["Encoding", "Error", "Figure", "HookPoint", "InvalidArgument", "ModelError", "NotFound"]
__all__ += ["AllVectors", "Observed", "SparseVectors", "Table", "TextOptions", "TokenVectors",
            "Tokens", "compare", "maxsim", "observe"]
