Other people's files: a model, a store, a table are data, whoever made them.

A library of a name that the program needs, lying in the folder where it is started, is not loaded.

  $ mkdir trap; for name in $(for file in rankscope librankscope_base.so; do readelf -d "$(dirname "$(readlink -f "$(command -v rankscope)")")/$file"; done | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p'); do echo trap > trap/$name; done
  $ cd trap; rankscope --version > /dev/null; echo $?
  0

A store whose ids are paths is refused, and nothing is written where they lead.

  $ rankscope study run quick rank=1 steps=1 --seeds 1 --out store --quiet > /dev/null
  $ cp -r store foreign; mkdir precious; echo mine > precious/result.json
  $ sqlite3 foreign/study.db "UPDATE trials SET id = '../../precious', state = 'pending'"
  $ rankscope study resume foreign
  error: a trial has the id "../../precious", which is none
    in   foreign/study.db
    try  do not use this store: rankscope did not write it
  [1]
  $ cat precious/*
  mine

Nor is anything written through a link.

  $ cp -r store foreign2; cd foreign2; sqlite3 study.db "UPDATE trials SET state = 'pending'"; rm -r trials/*; ln -s ../../precious "trials/$(sqlite3 study.db 'SELECT id FROM trials')"; rankscope study resume . 2>&1 | sed 's|trials/.*|trials/ID|'
  error: a link or a file in place of a folder stands where a store has none
    in   ./trials/ID
    try  look where it came from; remove it if it is yours
  $ cat precious/*
  mine

Pipes are not waited for, wherever they lie; standard input alone may stream.

  $ mkfifo pipe; mkdir piped; mkfifo piped/config.json
  $ rankscope inspect piped 2>&1 | head -2
  error: this is not a regular file
    in   piped/config.json
  $ rankscope scan --text pipe
  error: this is a pipe, and nobody may ever write into it
    in   pipe
    try  pipe into standard input and name it: zcat texts.gz | rankscope ... -
  [1]
  $ rankscope scan --token-ids pipe 2>&1 | head -1
  error: this is a pipe, and nobody may ever write into it
  $ rankscope verify "$TREE/tests/fixtures/models/bert" --against pipe
  error: this is not a regular file
    in   pipe
  [1]

Nor is one that stands for a model.

  $ rankscope inspect pipe
  error: expected the folder of a checkpoint, but this is neither a folder nor a file
    in   pipe
    try  give the folder that holds config.json
  [1]
  $ rankscope scan "$TREE/tests/fixtures/models/bert" --random-tokens --samples 1 --baseline pipe 2>&1 | head -1
  error: expected the folder of a checkpoint, but this is neither a folder nor a file

Names of a study do not drive the terminal, wherever its figure shows them.

  $ printf 'runner = "train"\n[figure]\nx = "rank"\ny = "m@"\nby = ["k@", "task"]\nlines = ["l@"]\n' | sed 's/@/\\u001b[31m/g' > loud.toml
  $ cp -r store loud; sqlite3 loud/study.db "UPDATE meta SET value = CAST(readfile('loud.toml') AS TEXT) WHERE key = 'study_toml'; UPDATE trials SET config = replace(config, '{', '{\"k\\u001b[31m\":\"v\\u001b[31m\",'), result = replace(result, '{', '{\"m\\u001b[31m\":1,\"l\\u001b[31m\":1,')"
  $ rankscope study show loud > said 2>&1; grep '^k' said; tr -cd '\033' < said | wc -c
  k\x1b[31m=v\x1b[31m
  k\x1b[31m     task  rank  seeds  mean  median
  0

Results are written over results, and over nothing else.

  $ rankscope scan --samples 1 --out / 2>&1 | head -2
  error: this is the root folder
    in   --out /
  $ cp -r "$TREE/tests/fixtures/models/bert" bert; rankscope scan bert --random-tokens --samples 1 --out bert
  error: this is the folder of a model: it has a config.json
    in   --out bert
    try  choose another --out
  [2]
  $ mkdir theirs; printf 'name,value\nmine,1\n' > theirs/metrics.csv; rankscope scan --samples 1 --out theirs
  error: the metrics.csv in this folder is not one of rankscope's
    in   --out theirs
    try  choose another --out
  [2]
  $ cat theirs/metrics.csv
  name,value
  mine,1
  $ rankscope study export store --model "$(sqlite3 store/study.db 'SELECT id FROM trials')" bert
  error: this is the folder of another model: it has a config.json
    in   --model ID bert
    try  choose another folder
  [2]
  $ rankscope inspect bert | head -1
  bert        BERT, MiniLM: post-norm encoder
  $ for i in 1 2; do rankscope study export store --model "$(sqlite3 store/study.db 'SELECT id FROM trials')" trained; done
  wrote trained: rankscope scan trained --random-tokens
  wrote trained: rankscope scan trained --random-tokens
  $ rankscope scan --samples 1 --out ""
  error: an empty word stands behind it
    in   --out
    try  a variable of the shell that is not set is such a word
  [2]
  $ for words in 'scan ""' 'scan --random-tokens -- ""' 'scan --baseline=' 'plan --init "" --budget 1'; do eval "rankscope $words" 2>&1 | sed -n 2p; done
    in   the first
    in   --
    in   --baseline
    in   --init
  $ rankscope study run quick --out / 2>&1 | head -1
  error: this is the root folder
  $ echo text > notes.html; rankscope scan bert --random-tokens --samples 1 --out scanned --quiet > /dev/null; rankscope report scanned --out notes.html
  error: there is something else than a page of that name
    in   --out notes.html
    try  choose another --out
  [2]
  $ cat notes.html
  text

What nobody may write to can be looked at.

  $ cp -r store kept; chmod -R a-w kept; as_anybody="$([ "$(id -u)" = 0 ] && echo setpriv --bounding-set=-all --inh-caps=-all)"; $as_anybody rankscope study show kept 2>&1 >/dev/null; echo $?; $as_anybody rankscope study status kept | head -1; ls kept; chmod -R u+w kept
  no page beside it, where nothing can be written: rankscope report kept --out FILE
  0
  quick: Rank against heads, in a minute
  study.db
  trials

A file that may not grow is an error with a name, and leaves nothing half written.

  $ (ulimit -f 1; rankscope scan bert --random-tokens --samples 1 --out small --quiet > /dev/null)
  error: cannot write the file: File too large
  ...
  [1]
  $ ls small 2>/dev/null | grep part
  [1]

A hang-up ends a study as a termination does: what runs is given back.

  $ rankscope study run quick steps=100000 --seeds 1 --out hung > said 2>&1 & pid=$!; for i in $(seq 300); do rankscope study status hung 2>/dev/null | grep -q '[1-9] running' && break; sleep 0.1; done; kill -HUP $pid; wait $pid; echo $?; grep -c '^stopped: ' said; rankscope study status hung | grep -o '0 running'
  1
  1
  0 running

Too little memory is said before a library loops or aborts for want of it.

  $ (ulimit -v 800000; rankscope scan bert --random-tokens --samples 1)
  error: the engine needs 2048 MB of address space to start, but a limit allows 781 MB
    try  ulimit -v unlimited
  [1]
