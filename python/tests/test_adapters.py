"""An Encoder handed to other libraries as it is."""

import asyncio

import pytest

TEXTS = ["Tom bit a dog.", "It rains.", "The cat slept.", "Nobody had seen the old man."]


def test_langchain(encoder):
    store = pytest.importorskip("langchain_core.vectorstores").InMemoryVectorStore
    found = store.from_texts(TEXTS, encoder).similarity_search("Tom bit a dog.", k=2)
    assert found[0].page_content == TEXTS[0]

    async def search():
        made = await store.afrom_texts(TEXTS, encoder)
        return await made.asimilarity_search("Tom bit a dog.", k=2)

    assert [each.page_content for each in asyncio.run(search())] == [
        each.page_content for each in found
    ]
