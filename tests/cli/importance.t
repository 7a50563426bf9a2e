The loss stands in front of every scan: of the full network and of every variant, with its error.

  $ cat > masked <<'END'
  > sed 's/[▁▂▃▄▅▆▇█]\{1,\}/~/; s/-\{0,1\}[0-9][0-9.]*\(e-[0-9]*\)\{0,1\}/N/g; s/  */ /g'
  > END
  $ rankscope scan --samples 4 --max-length 32 --off skip --lens residual > table.txt; sed -n '1,3p' table.txt | sh masked
  loss full N ± N nats a token (perplexity N), -skip N ± N; the
   next token, N samples

  $ rankscope scan --samples 4 --max-length 32 --off skip --lens residual --format csv | sed -n '1,5p' | cut -d, -f1,2,5
  variant,site,metric
  full,unembed.hook_out,nll
  full,unembed.hook_out,perplexity
  -skip,unembed.hook_out,nll
  -skip,unembed.hook_out,perplexity
  $ rankscope scan --samples 4 --max-length 32 --lens residual --json | grep -o '"loss":"full [0-9]' | cut -c1-12
  "loss":"full

A masked model is asked for 15 % of its tokens, hidden behind the token that its tokenizer names; where none is
known, and where there is no head, nothing is invented.

  $ cp -r "$TREE/tests/fixtures/models/bert" bert; chmod -R u+w bert
  > { printf '[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n'; seq 5 96; } > vocab.txt
  > printf '5 6 7 8 9 10 11 12 13 14 15\n25 24 23 22 21 20 19 18 17\n' > text.txt
  > sed 's/^/5 /' text.txt > ids.txt
  $ rankscope scan bert --token-ids ids.txt --lens residual | grep -c '^loss'
  0
  [1]
  $ rankscope scan bert --token-ids ids.txt --lens residual | grep 'note'
    note      no loss is given: the mask token is not known
  $ cp vocab.txt bert/; rankscope scan bert --text text.txt --lens residual > table.txt; sed -n '1p' table.txt | sh masked; grep note table.txt
  loss full N ± N nats a token; N % of the tokens hidden, N samples
  [1]
  $ rankscope scan "$TREE/tests/fixtures/models/bert-classifier" --token-ids ids.txt --lens residual | grep -c 'loss'
  0
  [1]
