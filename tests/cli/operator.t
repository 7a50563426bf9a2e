The network as one linear map: spectrum with residuals, ranks, which token is made of which, how far to trust it.

  $ cat > masked <<'END'
  > sed 's/-\{0,1\}[0-9][0-9.]*\(e-[0-9]*\)\{0,1\}/N/g; s/  */ /g'
  > END
  $ ln -s "$TREE/tests/fixtures/models/bert" bert
  > printf '3 4 5 6 7 8 9 10 11 12\n' > ids.txt
  $ rankscope operator bert --token-ids ids.txt --top 3 | sh masked
   singular value relative residual
  N N N
  N N N
  N N N

  stable rank ||T||_F^N / sigma_N^N N ± N
  directions used, as a matrix N ± N
  directions used, output tokens N ± N
  directions used, output channels N ± N
  directions used, input tokens N ± N
  directions used, input channels N ± N
  bias, share of the output N
  own token, share of what a token is made of N
  first token, share of it N
  effective rank of the token-to-token map N
  completeness: largest error of tokens + bias N
  distance from the Jacobian ||J - T|| / ||J|| N ± N

  sample N, last token: made of position N (N), position N (N), position N (N), position N (N), position N (N)

   operator the network at this input is a linear map that uses N directions
   (stable rank N, largest singular value N)
   trust the frozen operator is exact at the input; away from it the true
   Jacobian differs by N % (||J - T|| / ||J||)

Maps go beside the tables.

  $ rankscope operator bert --token-ids ids.txt --top 2 --jacobian 0 --out out > /dev/null && ls out
  wrote out/report.html, metrics.csv, samples.csv, manifest.json
  arrays.safetensors
  manifest.json
  metrics.csv
  report.html
  samples.csv
  token_maps.safetensors
  $ grep -ao 'sample_0.in[_out]*' out/token_maps.safetensors
  sample_0.in
  sample_0.in_out
  $ rankscope operator bert --token-ids ids.txt --no-map --dtype float32 --format csv | cut -d, -f5 | sed -n '2,3p; $p'
  bias_share
  sigma_1
  participation_channel_in

Too few applications are said to be too few.

  $ rankscope operator bert --token-ids ids.txt --applications 10 --top 4 --jacobian 0 | grep -A2 '  note'
    note      from sigma_1 on the relative residual is above 0.0001 after 10
              applications: --applications gives them more

What is wrong is said in a line or two.

  $ printf '5\n' > one.txt; rankscope operator bert --token-ids one.txt
  error: a sample of one token has no rank to lose: at least two are needed
    in   sample 0
    try  a longer text
  [1]
  $ rankscope operator bert --token-ids ids.txt --top 0
  error: --top: expected a whole number from 1 to 1000, but got "0"
    try  rankscope operator --help
  [2]
  $ rankscope operator bert --token-ids ids.txt --dtype float16
  error: float16 is a storage type; the arithmetic here is float32 or float64
    try  --dtype float32 reads a float16 checkpoint as it is
  [2]
  $ rankscope operator bert --token-ids ids.txt --off head:L0H3
  error: there is no head 3 in layer 0: it has 3, counted from 0
  [2]
  $ cp -r "$TREE/tests/fixtures/models/bert" m; chmod -R u+w m
  > for i in 1 2 3 4; do printf '\377\377\177\177' | dd of=m/model.safetensors bs=1 seek=$((60000 + 4 * i)) conv=notrunc 2>/dev/null; done
  $ rankscope operator m --token-ids ids.txt --dtype float32
  error: the activations hold NaN or Inf
    in   blocks.1.hook_resid_post
    try  float64 arithmetic tells whether this is an overflow; inspect the checkpoint otherwise
  [1]
