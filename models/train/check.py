"""Reads the built-in model with the real library: same held-out loss, and a sample of its prose.

    python3 check.py MODEL test.bin
"""

import sys
from array import array
from pathlib import Path

import torch
import transformers as hf


def main():
    folder, tokens = Path(sys.argv[1]), array("H")
    tokens.frombytes(Path(sys.argv[2]).read_bytes())
    model = hf.GPT2LMHeadModel.from_pretrained(folder, dtype=torch.float32).eval()
    tokenizer = hf.AutoTokenizer.from_pretrained(folder, model_max_length=10**6)  # demo lines may pass the context
    context = model.config.n_positions
    ids = torch.tensor(list(tokens))
    windows = ids[:len(ids) // context * context].view(-1, context)
    with torch.no_grad():
        losses = [model(w[None], labels=w[None]).loss.item() for w in windows]
    print(f"held-out loss {sum(losses) / len(losses):.5f} nats per token, {len(windows)} windows of {context}")

    lines = (folder / "demo.txt").read_text(encoding="utf-8").splitlines()
    print(len(lines), "demo passages, shortest", min(len(tokenizer(line)["input_ids"]) for line in lines), "tokens")
    torch.manual_seed(0)
    prompt = tokenizer("The whale", return_tensors="pt")
    sample = model.generate(**prompt, max_new_tokens=120, do_sample=True, temperature=0.8, top_k=40, pad_token_id=model.config.eos_token_id)
    print(tokenizer.decode(sample[0]))


if __name__ == "__main__":
    main()
