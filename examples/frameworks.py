"""An Encoder in LlamaIndex, Haystack and Chroma. LangChain takes it as it is; txtai takes
`{"method": "external", "transform": lambda texts: encoder.encode(texts)}`.

Each function imports its library, so that the others need not be installed.
"""

from dataclasses import replace

from phasor import Encoder


def for_llama_index(encoder: Encoder):
    """For `Settings.embed_model` or `VectorStoreIndex(nodes, embed_model=...)`."""
    from llama_index.core.embeddings import BaseEmbedding

    class PhasorEmbedding(BaseEmbedding):
        def _get_text_embedding(self, text):
            return self._get_text_embeddings([text])[0]

        def _get_text_embeddings(self, texts):
            return encoder.embed_documents(texts)

        def _get_query_embedding(self, query):
            return encoder.embed_query(query)

        async def _aget_query_embedding(self, query):
            return await encoder.aembed_query(query)

    return PhasorEmbedding(model_name=encoder.name)


def for_haystack(encoder: Encoder):
    """Two components: of documents, which get `embedding`, and of a query."""
    from haystack import Document, component

    @component
    class PhasorDocumentEmbedder:
        @component.output_types(documents=list[Document])
        def run(self, documents: list[Document]):
            vectors = encoder.embed_documents([each.content or "" for each in documents])
            return {"documents": [replace(d, embedding=v) for d, v in zip(documents, vectors)]}

    @component
    class PhasorTextEmbedder:
        @component.output_types(embedding=list[float])
        def run(self, text: str):
            return {"embedding": encoder.embed_query(text)}

    return PhasorDocumentEmbedder(), PhasorTextEmbedder()


def for_chroma(encoder: Encoder):
    """For `create_collection(name, embedding_function=...)`."""
    from chromadb import EmbeddingFunction

    class PhasorFunction(EmbeddingFunction):
        def __init__(self):  # Chroma warns of a class without one
            pass

        @staticmethod
        def name():
            return "phasor"

        def get_config(self):
            return {"model": encoder.name}

        @staticmethod
        def build_from_config(config):
            return for_chroma(encoder)

        def __call__(self, input):
            return encoder.embed_documents(input)

        def embed_query(self, input):
            return [encoder.embed_query(text) for text in input]

    return PhasorFunction()
