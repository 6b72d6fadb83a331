import pytest

import phasor


@pytest.fixture(scope="session")
def encoder():
    with phasor.Encoder("sinusoidal") as made:
        yield made
