"""Which heads carry the word order of a sentence: each is set to its mean over the tokens.

    python3 look_inside.py [MODEL] [TEXT]
"""

import sys

import numpy as np

import phasor


def mean_ablated(head):
    """A hook that replaces a head's output at every token by its mean over the tokens."""

    def hook(z, point):  # [1, T, H, D]
        z[:, :, head] = z[:, :, head].mean(axis=1, keepdims=True)

    return hook


def main(model="sinusoidal", text="Tom bit a dog."):
    with phasor.Encoder(model) as encoder:
        sizes = encoder.info["sizes"]
        plain = encoder.forward(text).hidden  # [T, C]
        print(f"change of the last states, head by head, of {np.linalg.norm(plain):.1f}")
        for layer in range(sizes["layers"]):
            changes = []
            for head in range(sizes["heads"]):
                hooks = [(f"blocks.{layer}.attn.hook_z", mean_ablated(head))]
                changed = encoder.forward(text, fwd_hooks=hooks).hidden
                changes.append(np.linalg.norm(changed - plain))
            print(f"block {layer}:", " ".join(f"{change:6.2f}" for change in changes))


if __name__ == "__main__":
    main(*sys.argv[1:])
