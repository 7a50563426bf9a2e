Parity with saved activations, layer by layer. The errors are of the machine; the rest is fixed.

  $ ln -s "$TREE/tests/fixtures/models" models
  $ rankscope verify models/bert --against models/bert/activations.safetensors > table.txt; echo $?; awk '{ print NR == 1 || /agrees/ ? substr($0, 1, 6) : $1 " " $4 }' table.txt
  0
  tensor
  hidden_states.0 4.324
  attentions.0 0.971
  hidden_states.1 4.174
  attentions.1 0.7242
  hidden_states.2 2.349
  attentions.2 0.3419
  hidden_states.3 2.96
  last_hidden_state 2.96
  logits 14.69
  agrees
  $ rankscope verify models/vit --against models/vit/activations_f64.safetensors --dtype float64 --tolerance 1e-10 | tail -1 | cut -c1-18
  agrees: worst rati

Beyond the tolerance it fails, with exit code 1.

  $ rankscope verify models/bert --against models/bert/activations.safetensors --tolerance 1e-12 > table.txt; echo $?; grep -c FAIL table.txt; tail -1 table.txt | cut -c1-20
  1
  9
  DIFFERS: worst ratio
  $ rankscope verify models/bert --against models/bert/activations.safetensors --tolerance 1e-12 --json > all.json; echo $?; grep -c '"pass": false' all.json
  1
  9

A number that is none never agrees, wherever it stands: table, summary, JSON and exit code say the same. The two
files hold a NaN and an Inf as the first number of hidden_states.1, whose data begin at byte 18756.

  $ for bytes in '\000\000\300\177' '\000\000\200\177'; do cp models/bert/activations.safetensors bad.safetensors; printf "$bytes" | dd of=bad.safetensors bs=1 seek=18756 conv=notrunc status=none; rankscope verify models/bert --against bad.safetensors > table.txt; echo $?; grep FAIL table.txt | cut -d' ' -f1; tail -1 table.txt | sed 's/ratio [-a-z]* //'; rankscope verify models/bert --against bad.safetensors --json > all.json; echo $?; grep -c '"pass": false' all.json; done
  1
  hidden_states.1
  DIFFERS: worst at hidden_states.1, tolerance 2e-05
  1
  1
  1
  hidden_states.1
  DIFFERS: worst at hidden_states.1, tolerance 2e-05
  1
  1
  $ rankscope scan models/bert --random-tokens --samples 2 --verify bad.safetensors --out doubtful --quiet > /dev/null; grep -o '"agrees": false\|"at": "[a-z_0-9.]*"' doubtful/manifest.json
  "agrees": false
  "at": "hidden_states.1"

Files that are not what is asked for.

  $ rankscope verify models/bert --against nowhere
  error: cannot open the file: No such file or directory
    in   nowhere
    try  check the path
  [1]
  $ rankscope verify models/bert --against .
  error: this is not a regular file
    in   .
  [1]
  $ rankscope verify models/bert --against models/bert/model.safetensors
  error: the file holds no tensor "input_ids"
    in   models/bert/model.safetensors
  [1]
  $ rankscope verify models/bert --against models/gpt2/activations.safetensors
  error: token id 98 is outside the vocabulary of 97
    in   sample 0, token 10
    try  check that the tokenizer belongs to this model
  [1]
  $ rankscope verify models/llama --against models/bert/activations.safetensors
  error: hidden_states.0 should have the shape [3, 11, 24], but has [3, 11, 30]
    in   models/bert/activations.safetensors
    try  check that the activations are those of this model
  [1]
  $ rankscope verify models/vit --against models/bert/activations.safetensors
  error: the file holds no tensor "pixel_values"
    in   models/bert/activations.safetensors
  [1]
  $ head -c 3000 models/bert/activations.safetensors > cut.safetensors; rankscope verify models/bert --against cut.safetensors
  error: its data ends at byte 6084, but the file has 3000
    in   cut.safetensors, tensor "attentions.0"
    try  download the file again: it is cut short
  [1]

A scan can look first; what it found stays in the manifest, or that nobody looked and how to.

  $ rankscope scan models/bert --random-tokens --samples 2 --verify models/bert/activations.safetensors --out checked --quiet > /dev/null; grep -o '"agrees": true\|"checked": true' checked/manifest.json
  "agrees": true
  "checked": true
  $ rankscope scan models/bert --random-tokens --samples 2 --out unchecked --quiet > /dev/null; grep -A2 '"parity"' unchecked/manifest.json
    "parity": {
      "checked": false,
      "how": "rankscope scan MODEL --verify ACTIVATIONS.safetensors"
  $ rankscope scan models/llama --random-tokens --verify models/bert/activations.safetensors --out wrong --quiet
  error: hidden_states.0 should have the shape [3, 11, 24], but has [3, 11, 30]
    in   models/bert/activations.safetensors
    try  check that the activations are those of this model
  [1]
  $ ls -d wrong 2>/dev/null
  [2]

Layers that the file alone has would be no match.

  $ cp -r models/bert short; chmod -R u+w short; sed -i 's/\("num_hidden_layers": \)3/\12/' short/config.json
  $ rankscope verify short --against models/bert/activations.safetensors
  error: the file holds attentions.2, and this model has nothing to compare with it
    in   models/bert/activations.safetensors
    try  check that the activations are those of this model
  [1]
