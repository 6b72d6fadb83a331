"""What the Python package answers: reads cases as lines of JSON, writes a line of JSON for each."""

import json
import sys

import phasor

# What the methods take, by their names; all other options are refused as unknown arguments.
TAKES = {
    "dense": ["pooling", "normalize", "dimensions", "prompt", "prompt_name", "max_tokens", "overflow",
              "parse_special", "role"],
    "sparse": ["prompt", "parse_special", "role"],
    "tokens": ["prompt", "parse_special", "role"],
    "states": ["prompt", "max_tokens", "overflow", "parse_special"],
    "dense,sparse,tokens": [],
    "classify": ["parse_special"],
    "label": ["parse_special", "aggregation"],
    "rank": ["parse_special"],
    "encode": ["overflow", "positions"],
}
NAMES = {"normalize": "normalize_embeddings", "dimensions": "truncate_dim", "aggregation": "aggregation_strategy"}


def arguments(options):
    values = {"true": True, "false": False}
    for name, value in options.items():
        if name in ("dimensions", "max_tokens") and value != "maybe":
            value = int(value)
        yield NAMES.get(name, name), values.get(value, value)


def items(kind, vectors):
    return {kind + "offsets": vectors.offsets, kind + "vectors": vectors.vectors, kind + "ids": vectors.token_ids,
            kind + "spans": vectors.spans}


def weights(sparse):
    return {"sparse_offsets": sparse.indptr, "sparse_indices": sparse.indices, "sparse_values": sparse.values}


def embed(encoder, kinds, texts, **given):
    if kinds == "dense":
        by_role = {"query": encoder.encode_query, "document": encoder.encode_document}
        method = by_role.get(given.get("role"), encoder.encode)
        if method != encoder.encode:
            del given["role"]
        return {"dense": method(texts, **given)}
    if kinds in ("sparse", "tokens") and given.get("role") in ("any", "query", "document"):
        given["is_query"] = given.pop("role") == "query"
    if kinds == "sparse":
        return weights(encoder.encode_sparse(texts, **given))
    if kinds == "tokens":
        return items("token_", encoder.encode_tokens(texts, **given))
    if kinds == "states":
        return items("state_", encoder.encode_states(texts, **given))
    if kinds != "dense,sparse,tokens":
        return encoder.encode(texts, kinds=kinds)
    made = encoder.encode_all(texts, **given)
    return {"dense": made.dense, **weights(made.sparse), **items("token_", made.tokens)}


def label(found):
    kind = "entity" if any("entity" in span for spans in found for span in spans) else "entity_group"
    every = [span for spans in found for span in spans]
    offsets = [sum(map(len, found[:i])) for i in range(len(found) + 1)]
    return {"offsets": offsets, "labels": [span[kind] for span in every], "scores": [span["score"] for span in every],
            "spans": [place for span in every for place in (span["start"], span["end"])]}


def answer(encoder, case, options):
    call, texts, given = case["call"], case["texts"], dict(arguments(options))
    if call == "embed":
        return embed(encoder, given.pop("kinds", "dense"), texts, **given)
    if call == "classify":
        pairs = isinstance(texts[0], list)
        said = encoder.classify(*zip(*texts), **given) if pairs else encoder.classify(texts, **given)
        return {"labels": said.labels, "logits": said.logits, "probabilities": said.probabilities}
    if call == "label":
        return label(encoder.label_tokens(texts, **given))
    if call == "rank":
        ranking = encoder.rank(texts[0], texts[1:], **given)
        scores = {each["corpus_id"]: each["score"] for each in ranking}
        return {"order": [each["corpus_id"] for each in ranking], "scores": [scores[i] for i in sorted(scores)]}
    states = encoder.forward(texts, **given)
    return {"hidden": [row for each in states for row in each.tolist()], "token_ids": states.token_ids}


def flat(values):
    values = values.tolist() if hasattr(values, "tolist") else list(values)
    return [x for each in values for x in (each if isinstance(each, list) else [each])]


def main():
    encoders = {}
    for line in sys.stdin:
        case = json.loads(line)
        options, folder = case["options"], case["folder"]
        takes = TAKES.get(options.get("kinds", "dense") if case["call"] == "embed" else case["call"], [])
        others = [name for name in options if name not in takes]
        if case["call"] == "embed" and options.get("kinds", "dense") in TAKES:
            others = [name for name in others if name != "kinds"]
        if folder not in encoders:
            encoders[folder] = phasor.Encoder(folder, threads=2)
        try:
            arrays = {name: flat(values) for name, values in answer(encoders[folder], case, options).items()}
            print(json.dumps({"arrays": arrays}))
        except (phasor.Error, TypeError) as error:
            print(json.dumps({"error": str(error), "unknown": others}))


if __name__ == "__main__":
    main()
