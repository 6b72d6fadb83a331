def test_encode(encoder):
    assert encoder.encode(["Tom bit a dog."]).shape == (1, 128)
