// What users of OpenAI's, Cohere's and Hugging Face's clients do, and what they must see.
import assert from "node:assert/strict";
import {InferenceClient} from "@huggingface/inference";
import {CohereClient} from "cohere-ai";
import OpenAI, {APIError} from "openai";

const [embedder, reranker] = process.argv.slice(2).map((port) => `http://127.0.0.1:${port}`);
const openai = new OpenAI({apiKey: "key", baseURL: `${embedder}/v1`, maxRetries: 0});
const texts = ["Tom bit a dog.", "Hello", "Françoise’s café 🎉"];

// The client asks for base64 unless it is told otherwise, and both are the same float32 numbers.
const coded = await openai.embeddings.create({model: "sinusoidal", input: texts});
const plain = await openai.embeddings.create({model: "sinusoidal", input: texts, encoding_format: "float"});
assert.equal(coded.data.length, texts.length);
for (const [i, {index, embedding}] of coded.data.entries()) {
  assert.equal(index, i);
  assert.deepEqual(Float32Array.from(embedding), Float32Array.from(plain.data[i].embedding));
  assert.ok(Math.abs(Math.hypot(...embedding) - 1) < 1e-5);
}
assert.equal(coded.model, "sinusoidal");
assert.ok(coded.usage.prompt_tokens >= texts.length * 3);
const short = await openai.embeddings.create({model: "sinusoidal", input: texts[0], dimensions: 8});
assert.equal(short.data[0].embedding.length, 8);
assert.deepEqual((await openai.models.list()).data.map(({id}) => id), ["sinusoidal"]);

// Many at once, each with its own answer.
const all = await Promise.all(
  Array.from({length: 200}, (_, i) => openai.embeddings.create({model: "sinusoidal", input: texts[i % 3]})),
);
all.forEach(({data}, i) => assert.deepEqual(data[0].embedding, coded.data[i % 3].embedding));

// Mistakes are the client's own kinds of errors.
for (const [input, status] of [["", 400], [[], 400], [[1, 2, 3], 422]]) {
  await assert.rejects(
    openai.embeddings.create({model: "sinusoidal", input}),
    (error) => error instanceof APIError && error.status === status && error.message.length > 10,
  );
}
const stranger = new OpenAI({apiKey: "other", baseURL: `${embedder}/v1`, maxRetries: 0});
await assert.rejects(stranger.models.list(), OpenAI.AuthenticationError);

const cohere = new CohereClient({token: "key", environment: reranker});
const documents = ["a b c", "d e", {text: "x y z"}];
const ranked = await cohere.rerank({model: "relevance", query: "a d", documents, topN: 2, returnDocuments: true});
assert.equal(ranked.results.length, 2);
assert.ok(ranked.results[0].relevanceScore >= ranked.results[1].relevanceScore);
for (const {index, document} of ranked.results) {
  assert.equal(document.text, documents[index].text ?? documents[index]);
}
await assert.rejects(cohere.rerank({query: "a", documents: []}), ({statusCode}) => statusCode === 400);

const hugging = new InferenceClient("key").endpoint(embedder);
const [first] = await hugging.featureExtraction({inputs: texts[0]});
assert.deepEqual(Float32Array.from(first), Float32Array.from(plain.data[0].embedding));
const inputs = {source_sentence: texts[0], sentences: texts};
const cosines = await hugging.sentenceSimilarity({inputs});
assert.ok(cosines.length === 3 && Math.abs(cosines[0] - 1) < 1e-5 && cosines[1] < 0.99);
console.log("the clients got what they asked for");
