"""An Encoder in the libraries that search with vectors: as it is, and as examples/frameworks.py has it."""

import asyncio

import pytest
from conftest import script

frameworks = script("examples/frameworks.py")
TEXTS = ["Tom bit a dog.", "It rains.", "The cat slept.", "Nobody had seen the old man."]


def test_langchain(encoder):
    store = pytest.importorskip("langchain_core.vectorstores").InMemoryVectorStore
    found = store.from_texts(TEXTS, encoder).similarity_search("Tom bit a dog.", k=2)
    assert found[0].page_content == TEXTS[0]

    async def search():
        made = await store.afrom_texts(TEXTS, encoder)
        return await made.asimilarity_search("Tom bit a dog.", k=2)

    assert [each.page_content for each in asyncio.run(search())] == [each.page_content for each in found]


@pytest.fixture
def nearest(encoder):
    """The two texts that the library finds for the first."""
    return [hit["text"] for hit in encoder.rank(TEXTS[0], TEXTS, top_k=2, return_documents=True)]


def test_llama_index(encoder, nearest):
    index = pytest.importorskip("llama_index.core").VectorStoreIndex
    from llama_index.core.schema import TextNode

    nodes = [TextNode(text=text) for text in TEXTS]
    made = index(nodes, embed_model=frameworks.for_llama_index(encoder))
    retriever = made.as_retriever(similarity_top_k=2)
    assert [each.text for each in retriever.retrieve(TEXTS[0])] == nearest
    assert [each.text for each in asyncio.run(retriever.aretrieve(TEXTS[0]))] == nearest


def test_haystack(encoder, nearest):
    haystack = pytest.importorskip("haystack")
    from haystack.components.retrievers.in_memory import InMemoryEmbeddingRetriever
    from haystack.document_stores.in_memory import InMemoryDocumentStore

    documents, query = frameworks.for_haystack(encoder)
    store = InMemoryDocumentStore(embedding_similarity_function="cosine")
    made = documents.run([haystack.Document(content=text, meta={"kept": 1}) for text in TEXTS])
    store.write_documents(made["documents"])
    pipeline = haystack.Pipeline()
    pipeline.add_component("query", query)
    pipeline.add_component("retriever", InMemoryEmbeddingRetriever(store, top_k=2))
    pipeline.connect("query.embedding", "retriever.query_embedding")
    found = pipeline.run({"query": {"text": TEXTS[0]}})["retriever"]["documents"]
    assert [each.content for each in found] == nearest
    assert all(each.meta == {"kept": 1} for each in found)


def test_chroma(encoder, nearest):
    client = pytest.importorskip("chromadb").EphemeralClient()
    texts = client.create_collection("texts", embedding_function=frameworks.for_chroma(encoder))
    texts.add(ids=["a", "b", "c", "d"], documents=TEXTS)
    assert texts.query(query_texts=[TEXTS[0]], n_results=2)["documents"] == [nearest]


def test_txtai(encoder, nearest, monkeypatch):
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # what txtai imports would fetch one
    embeddings = pytest.importorskip("txtai").Embeddings
    how = {"method": "external", "transform": lambda texts: encoder.encode(texts)}
    made = embeddings({**how, "backend": "numpy"})
    made.index(TEXTS)
    assert [TEXTS[i] for i, _ in made.search(TEXTS[0], 2)] == nearest
