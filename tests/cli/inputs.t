Bad texts and ids: what is wrong, where, and exit code 1.

  $ ln -s "$TREE/tests/fixtures/models/bert" bert
  > ln -s "$TREE/models/builtin" builtin
  $ echo 3 4 97 5 > ids.txt; rankscope scan bert --token-ids ids.txt
  error: token id 97 is outside the vocabulary of 97
    in   sample 0, token 2
    try  check that the tokenizer belongs to this model
  [1]
  $ printf '3 4 5\n3 4 5\n6 7 8\n' > ids.txt; rankscope scan bert --token-ids ids.txt --format json | grep -o '1 of 3 samples repeat an earlier one: errors count them as independent' | head -1
  1 of 3 samples repeat an earlier one: errors count them as independent
  $ printf '3 4 5\n7 7 7\n6 7 8\n' > ids.txt; rankscope scan bert --token-ids ids.txt --format json | grep -o '1 of 3 samples is one token repeated: residuals of all are geometric means' | head -1
  1 of 3 samples is one token repeated: residuals of all are geometric means
  $ printf '3 3 3\n7 7 7 7\n' > ids.txt; rankscope scan bert --token-ids ids.txt --format json | grep -o 'every sample is one token repeated: positions alone can tell its tokens apart' | head -1
  every sample is one token repeated: positions alone can tell its tokens apart
  $ ln -s "$TREE/tests/fixtures/models/t5" t5; rankscope scan t5 --token-ids ids.txt --format json | grep -o 'every sample of the [a-z]* is one token repeated' | sort -u
  every sample of the decoder is one token repeated
  every sample of the encoder is one token repeated
  $ echo 5 > ids.txt; rankscope plan builtin --token-ids ids.txt
  error: a plan is judged by the loss, and no sample has a next token
    in   token ids ids.txt, 1 samples
    try  samples of two tokens or more
  [1]
  $ echo 3 4 -1 5 > ids.txt; rankscope scan bert --token-ids ids.txt
  error: expected ids from 0 to 2147483647, but got -1
    in   ids.txt, line 1
  [1]
  $ printf '3 4\n3 four\n' > ids.txt; rankscope scan bert --token-ids ids.txt
  error: "four" is not a token id
    in   ids.txt, line 2
    try  ids are whole numbers separated by blanks or commas
  [1]
  $ echo '{"ids": [1.5]}' > ids.txt; rankscope scan bert --token-ids ids.txt
  error: id 0 of the list is not a whole number
    in   ids.txt, line 1
  [1]
  $ : > empty.txt; rankscope scan bert --token-ids empty.txt
  error: the file has no token ids
    in   empty.txt
    try  give one sample per line, as 101 2023 102
  [1]
  $ rankscope scan bert --token-ids nowhere.txt
  error: cannot open the file: No such file or directory
    in   nowhere.txt
    try  check the path
  [1]
  $ rankscope scan bert --token-ids .
  error: expected a file, but got a folder
    in   .
    try  name a file
  [1]
  $ printf '\n \n\n' > blank.txt; rankscope scan --text blank.txt
  error: the text is empty
    in   blank.txt
    try  give one sample per line
  [1]
  $ rankscope scan bert --text blank.txt
  error: there is no tokenizer here: neither tokenizer.json, nor vocab.txt, nor vocab.json with merges.txt
    in   bert
    try  add the model's tokenizer.json, or pass --token-ids
  [1]
  $ truncate -s 5G huge.txt; rankscope scan --text huge.txt
  error: the file has 5368709120 bytes, more than the 1073741824 allowed here
    in   huge.txt
  [1]
  $ printf '{"text": "a"}\n{"text": 5}\n' > bad.jsonl; rankscope scan --text bad.jsonl
  error: "text" should be a string
    in   bad.jsonl, line 2
  [1]
  $ printf '{"text": "a"}\n{"text": \n' > bad.jsonl; rankscope scan --text bad.jsonl
  error: this line is not valid JSON
    in   bad.jsonl, line 2
    try  JSONL has one JSON value per line
  [1]
  $ printf '{"text": ""}\n' > bad.jsonl; rankscope scan --text bad.jsonl
  error: the text holds no tokens
    in   bad.jsonl
  [1]

What is no text is named for what it is.

  $ printf 'PAR1....PAR1' > texts.parquet; rankscope scan --text texts.parquet
  error: this is a Parquet file, which is not read here
    in   texts.parquet
    try  python -c "import pandas; pandas.read_parquet('texts.parquet').to_json('texts.jsonl', orient='records', lines=True)", then --text texts.jsonl --column NAME
  [1]
  $ rankscope scan --text "$(readlink -f "$(command -v rankscope)")" 2>&1 | head -1
  error: this is not a text: it holds binary data
  $ echo text | gzip > text.gz; rankscope scan --text text.gz 2>&1 | tail -1
    try  zcat text.gz | rankscope ... --text -
  $ printf 'BZh91AY' > text.bz2; rankscope scan --text text.bz2 2>&1 | tail -1
    try  bzcat text.bz2 | rankscope ... --text -
  $ printf '%%PDF-1.5\n' > text.pdf; rankscope scan --text text.pdf
  error: this is a PDF, which is not read here
    in   text.pdf
    try  pdftotext text.pdf - | rankscope ... --text -
  [1]
  $ rankscope scan --text ""
  error: expected a text file, but got an empty name
    in   --text
  [2]
  $ rankscope scan --text "the whale swims"
  error: there is no file of this name; if it is a sentence, it goes in by standard input
    in   --text the whale swims
    try  echo "the whale swims" | rankscope ... --text -
  [1]
  $ echo "the whale swims" | rankscope scan --text - --lens residual | grep -o '[a-z]* tokens at.*'
  content tokens at ln1.hook_normalized, 1 sample

Tables have columns.

  $ printf 'id,body\n1,"the whale, the sea"\n2,the ship\n' > table.csv; rankscope scan --text table.csv
  error: this is a table: which of its columns holds the texts?
    in   table.csv
    try  --column NAME, one of id, body
  [2]
  $ rankscope scan --text table.csv --column body --lens residual | grep -o '[a-z]* tokens at.*'
  content tokens at ln1.hook_normalized, 2 samples
  $ printf 'id,text\n1,"the whale, the sea"\n' > usual.csv; rankscope scan --text usual.csv --lens residual | grep -o '[a-z]* tokens at.*'
  content tokens at ln1.hook_normalized, 1 sample
  $ printf '"id";"body"\r\n1;"the whale; the sea, the ship"\r\n2;the ship\r\n' > semicolons.csv; rankscope scan --text semicolons.csv
  error: this is a table: which of its columns holds the texts?
    in   semicolons.csv
    try  --column NAME, one of id, body
  [2]
  $ rankscope scan --text semicolons.csv --column body --lens residual | grep -o '[a-z]* tokens at.*'
  content tokens at ln1.hook_normalized, 2 samples
  $ printf '{"content": "the whale swims in the sea", "title": "Whale", "n": 4}\n' > other.jsonl; rankscope scan --text other.jsonl
  error: there is no field "text"
    in   other.jsonl, line 1
    try  --column NAME, one of content, title
  [2]
  $ rankscope scan --text other.jsonl --column content --lens residual | grep -o '[a-z]* tokens at.*'
  content tokens at ln1.hook_normalized, 1 sample
  $ rankscope tokenize builtin --jsonl other.jsonl
  error: there is no field "text"
    in   other.jsonl, line 1
    try  its fields are content, n, title
  [1]
  $ printf 'id\tbody\n1\tthe whale swims in the sea\n' > table.tsv; rankscope scan --text table.tsv --column bdoy
  error: there is no column "bdoy"
    in   table.tsv
    try  body, id
  [2]
  $ rankscope scan --text table.tsv --column body --lens residual | grep -o '[a-z]* tokens at.*'
  content tokens at ln1.hook_normalized, 1 sample

Prose is joined, whatever its lines are; single short samples are left out and counted.

  $ (echo 'CHAPTER I'; fold -s -w 70 "$TREE/models/builtin/demo.txt") > prose.txt; rankscope scan --text prose.txt --samples 6 --lens residual > out.txt; grep -o '[a-z]* tokens at.*' out.txt; sed -n '/note/,$p' out.txt | sed 's/of about [0-9]* samples/of about N samples/; s/--samples [0-9]* reads/--samples N reads/'
  content tokens at ln1.hook_normalized, 6 samples
    note      the lines are those of prose: they were joined into 6 windows of up
              to 128 tokens (--lines takes each line as a sample)
    note      6 of about N samples were read: --samples N reads more
  $ for i in 1 2 3 4 5 6 7 8; do echo "{\"text\": \"$(seq -s ' ' $i 60)\"}"; echo "{\"text\": \"only $i\"}"; done > mixed.jsonl; rankscope scan --text mixed.jsonl --samples 4 --lens residual | grep 'note  *[0-9]* of'
    note      3 of 7 samples have fewer than 32 tokens and were left out (--lines
    note      4 of 4 samples were cut to 128 tokens
    note      4 of about 9 samples were read: --samples 9 reads more
  $ (echo '3 4 5'; echo '4 5 6'; echo '5 6 7') > three.txt; for samples in 2 3; do rankscope paths bert --token-ids three.txt --samples $samples | grep note; echo $samples; done
    note      2 of 3 samples were read: --samples 3 reads more
  2
  3
  $ fold -s -w 120 "$TREE/models/builtin/demo.txt" > wide.txt; rankscope scan --text wide.txt --samples 6 --lens residual | grep -A1 'note  *the lines'
    note      the lines are those of prose: they were joined into 6 windows of up
              to 128 tokens (--lines takes each line as a sample)
  $ (echo 'CHAPTER I'; head -6 "$TREE/models/builtin/demo.txt") > lines.txt; rankscope scan --text lines.txt --lens residual > out.txt; grep -o '[a-z]* tokens at.*' out.txt; sed -n '/note/,$p' out.txt
  content tokens at ln1.hook_normalized, 6 samples
    note      1 of 7 samples have fewer than 32 tokens and were left out (--lines
              keeps them)
    note      6 of 6 samples were cut to 128 tokens
  $ rankscope scan --text lines.txt --lines --lens residual | grep -o '[a-z]* tokens at.*'
  content tokens at ln1.hook_normalized, 7 samples

The same of tokenize.

  $ rankscope tokenize builtin --jsonl nowhere.jsonl
  error: cannot open the file: No such file or directory
    in   nowhere.jsonl
    try  check the path
  [1]
  $ rankscope tokenize builtin --jsonl .
  error: expected a file, but got a folder
    in   .
    try  name a file
  [1]
  $ rankscope tokenize builtin --jsonl huge.txt
  error: the file has 5368709120 bytes, more than the 1073741824 allowed here
    in   huge.txt
  [1]
  $ rankscope tokenize builtin
  error: the file has no samples
    in   standard input
    try  give one {"text": ...} per line
  [1]
  $ rankscope tokenize bert --text a
  error: there is no tokenizer here: neither tokenizer.json, nor vocab.txt, nor vocab.json with merges.txt
    in   bert
    try  add the model's tokenizer.json, or pass --token-ids
  [1]
  $ rankscope tokenize nowhere --text a
  error: there is no such folder
    in   nowhere
    try  check the path
  [1]
  $ echo the whale > whale.txt; rankscope tokenize builtin --text whale.txt
  error: --text is the text itself here, and this is the name of a file
    in   --text whale.txt
    try  --text "$(cat whale.txt)", or --jsonl FILE for {"text": ...} lines
  [2]
  $ rankscope tokenize builtin --text "$(cat whale.txt)" | wc -l
  1
  $ rankscope tokenize builtin --text -
  error: --text is the text itself here
    in   --text -
    try  standard input without --text: {"text": ...} lines
  [2]
  $ mkdir broken; echo '{"model": {}}' > broken/tokenizer.json; rankscope tokenize broken --text a
  error: the key "type" is missing
    in   broken/tokenizer.json, model
  [1]

An empty text has no tokens, or the special ones alone.

  $ printf '{"text": ""}\n' | rankscope tokenize builtin --no-special
  {"ids": []}
