"""What users of OpenAI's Python client do, and what they must see."""

import math
import sys

import openai

port = sys.argv[1]
client = openai.OpenAI(api_key="key", base_url=f"http://127.0.0.1:{port}/v1", max_retries=0)
texts = ["Tom bit a dog.", "Hello", "Françoise’s café 🎉"]

# The client asks for base64 unless it is told otherwise, and both are the same numbers.
coded = client.embeddings.create(model="sinusoidal", input=texts)
plain = client.embeddings.create(model="sinusoidal", input=texts, encoding_format="float")
assert [item.index for item in coded.data] == [0, 1, 2]
for a, b in zip(coded.data, plain.data):
    assert len(a.embedding) == len(b.embedding) == 128
    assert all(math.isclose(x, y, rel_tol=1e-6, abs_tol=1e-12) for x, y in zip(a.embedding, b.embedding))
    assert math.isclose(math.hypot(*a.embedding), 1, rel_tol=1e-5)
assert coded.usage.prompt_tokens == coded.usage.total_tokens >= 3 * len(texts)
assert [model.id for model in client.models.list()] == ["sinusoidal"]
assert client.models.retrieve("sinusoidal").id == "sinusoidal"

for wrong, error in (("", openai.BadRequestError), ([1, 2, 3], openai.UnprocessableEntityError)):
    try:
        client.embeddings.create(model="sinusoidal", input=wrong)
    except error as problem:
        assert problem.body["message"], problem
    else:
        raise AssertionError(f"{wrong!r} was taken")
try:
    client.with_options(api_key="other").models.list()
except openai.AuthenticationError:
    pass
else:
    raise AssertionError("the wrong key was taken")
print("OpenAI's Python client got what it asked for")
