Bad texts and ids: what is wrong, where, and exit code 1.

  $ ln -s "$TREE/tests/fixtures/models/bert" bert
  > ln -s "$TREE/models/builtin" builtin
  $ echo 3 4 97 5 > ids.txt; rankscope scan bert --token-ids ids.txt
  error: token id 97 is outside the vocabulary of 97
    in   sample 0, token 2
    try  check that the tokenizer belongs to this model
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
  error: "text" is empty
    in   bad.jsonl, line 1
  [1]

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
  $ mkdir broken; echo '{"model": {}}' > broken/tokenizer.json; rankscope tokenize broken --text a
  error: the key "type" is missing
    in   broken/tokenizer.json
  [1]
