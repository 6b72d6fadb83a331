"""What the Python package answers: reads cases as lines of JSON, writes a line of JSON for each."""

import inspect
import json
import sys

import phasor

# Python's names of options, of the method of a call or a kind, and of a kind's arrays.
NAMES = {"normalize": "normalize_embeddings", "dimensions": "truncate_dim", "aggregation": "aggregation_strategy"}
METHODS = {"label": "label_tokens", "encode": "forward", "dense": "encode", "sparse": "encode_sparse",
           "tokens": "encode_tokens", "states": "encode_states"}
ROLES = {"any": "", "query": "_query", "document": "_document"}
ARRAYS = {"dense": [""], "sparse": ["_offsets", "_indices", "_values"],
          "tokens": ["_vectors", "_offsets", "_ids", "_spans"]}


def arguments(options):
    values = {"true": True, "false": False}
    for name, value in options.items():
        is_number = value.lstrip("-").isdecimal()
        yield NAMES.get(name, name), int(value) if is_number else values.get(value, value)


def method_of(call, given):
    """A method's name in two parts, of which the first has the arguments. Takes out of `given` what it says."""
    if call != "embed":
        return METHODS.get(call, call), ""
    kinds, name = given.pop("kinds", "dense"), "encode_all"
    if kinds in METHODS:
        name = METHODS[kinds]
    elif set(kinds.split(",")) <= ARRAYS.keys():
        given.update({kind: kind in kinds.split(",") for kind in ARRAYS})
    else:
        given["kinds"] = kinds
    if given.get("role") in ROLES and name != "encode_states":
        role = given.pop("role")
        if name == "encode":
            return name, ROLES[role]
        given["is_query"] = role == "query"
    return name, ""


def unknown(method, given):
    """The arguments that a method does not take."""
    takes = inspect.signature(method).parameters
    options = phasor.TextOptions.__annotations__ if "options" in takes else ()
    return [name for name in given if name not in takes and name not in options]


def arrays(kind, made):
    """Of vectors of a kind, by the library's names."""
    if made is None:
        return {}
    every = zip(ARRAYS.get(kind, ARRAYS["tokens"]), [made] if kind == "dense" else made)
    return {kind.rstrip("s") + name: values for name, values in every}


def label(found):
    kind = "entity" if any("entity" in span for spans in found for span in spans) else "entity_group"
    every = [span for spans in found for span in spans]
    offsets = [sum(map(len, found[:i])) for i in range(len(found) + 1)]
    return {"offsets": offsets, "labels": [span[kind] for span in every], "scores": [span["score"] for span in every],
            "spans": [place for span in every for place in (span["start"], span["end"])]}


def answer(method, name, texts, given):
    if name == "rank":
        ranking = method(texts[0], texts[1:], **given)
        scores = {each["corpus_id"]: each["score"] for each in ranking}
        return {"order": [each["corpus_id"] for each in ranking], "scores": [scores[i] for i in sorted(scores)]}
    pairs = name == "classify" and isinstance(texts[0], list)
    made = method(*zip(*texts), **given) if pairs else method(texts, **given)
    if name == "classify":
        return {"labels": made.labels, "logits": made.logits, "probabilities": made.probabilities}
    if name == "label_tokens":
        return label(made)
    if name == "forward":
        return {"hidden": [row for each in made for row in each.tolist()], "token_ids": made.token_ids}
    if name == "encode_all":
        return {array: values for kind in ARRAYS for array, values in arrays(kind, getattr(made, kind)).items()}
    return arrays(next(kind for kind in METHODS if METHODS[kind] == name), made)


def flat(values):
    values = values.tolist() if hasattr(values, "tolist") else list(values)
    return [x for each in values for x in (each if isinstance(each, list) else [each])]


def main():
    encoders = {}
    for line in sys.stdin:
        case = json.loads(line)
        given, folder = dict(arguments(case["options"])), case["folder"]
        if folder not in encoders:
            encoders[folder] = phasor.Encoder(folder, threads=2)
        name, role = method_of(case["call"], given)
        method = getattr(encoders[folder], name + role)
        try:
            made = answer(method, name, case["texts"], given)
            print(json.dumps({"arrays": {array: flat(values) for array, values in made.items()}}))
        except (phasor.Error, TypeError) as error:
            refused = unknown(getattr(encoders[folder], name), given)
            print(json.dumps({"error": str(error), "unknown": refused}))


if __name__ == "__main__":
    main()
