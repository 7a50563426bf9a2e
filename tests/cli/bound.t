bound: what is known about a layer before it is trained, without torch.

  $ echo 'export RANKSCOPE_LIBRARY=/nowhere.so' > no_torch
  $ . ./no_torch; rankscope bound --d 64 --rank 8 --heads 64
  64 heads of rank 8 in 64 dimensions, the nearest of 2 points

  lower bound     0.1700    No layer of 64 heads of rank 8 has a smaller mean
                            squared error, whatever its heads compute and however
                            large their weights are.
  plateau         0.1792    What is left when the part that is linear in the query
                            is learned, and nothing else.
  no selection    0.5000    What comes without looking at scores at all: a trained
                            value here is no better than that.
  temperature     1.7230    Divide it by the inverse temperature, where that is
                            large: the error of one full-rank head with that score
                            scale.
  vote            0.5949    Two layers instead: 64 random rank-1 heads and a
                            majority vote.
  heads for 0.1   12955     Fewer heads of rank 8 cannot reach that error.
  heads for 0.05  10^12.4   Fewer heads of rank 8 cannot reach that error.
  heads for 0.02  10^29.8   Fewer heads of rank 8 cannot reach that error.
  heads for 0.01  10^45.3   Fewer heads of rank 8 cannot reach that error.
  energy          0.3208    Of the target in degree 1; in degrees 3, 5, 7, 9:
                            0.0542, 0.0247, 0.0148, 0.0102.
  applies                   to two orthonormal points in uniformly random
                            directions, a query of its own that asks for its
                            nearest or its farthest, one layer, and the mean
                            squared error over fresh data.

Full rank has no bound; self-attention has none either, and says so.

  $ . ./no_torch; rankscope bound --d 16 --rank 16 --heads 1 | head -4
  1 head of rank 16 in 16 dimensions, the nearest of 2 points

  lower bound     0.0000    Full rank: there is no bound, and one head suffices
                            when its scores are large.
  $ . ./no_torch; rankscope bound --d 64 --rank 8 --heads 8 --n 16 --target farthest
  8 heads of rank 8 in 64 dimensions, the farthest of 16 points

  no selection    0.8913    What comes without looking at scores at all: a trained
                            value here is no better than that.
  temperature     5.2604    Divide it by the inverse temperature, where that is
                            large: the error of one full-rank head with that score
                            scale.
  applies                   no bound: it is proved for a query of its own (the
                            target nearest, whose farthest has the same numbers),
                            not for self-attention among independent points.
  $ . ./no_torch; rankscope bound --d 1024 --rank 1024 --heads 1 --n 2 --target farthest | sed -n '3,4p'
  no selection    0.0000    The farther of two points is the other one: nothing
                            has to be selected.

More points have a bound, too; what rounding may have done to it is taken off.

  $ . ./no_torch; rankscope bound --d 16 --rank 4 --heads 4 --n 4
  4 heads of rank 4 in 16 dimensions, the nearest of 4 points

  lower bound     0.3461    No layer of 4 heads of rank 4 has a smaller mean
                            squared error, whatever its heads compute and however
                            large their weights are.
  plateau         0.3856    What is left when the part that is linear in the query
                            is learned, and nothing else.
  no selection    0.7500    What comes without looking at scores at all: a trained
                            value here is no better than that.
  temperature     1.5146    Divide it by the inverse temperature, where that is
                            large: the error of one full-rank head with that score
                            scale.
  heads for 0.1   12617     Fewer heads of rank 4 cannot reach that error; degrees
                            from 27 on count with the share of the first of them.
  heads for 0.05  10^6.4    Fewer heads of rank 4 cannot reach that error; degrees
                            from 27 on count with the share of the first of them.
  heads for 0.02  10^7.0    Fewer heads of rank 4 cannot reach that error; degrees
                            from 27 on count with the share of the first of them.
  heads for 0.01  10^7.1    Fewer heads of rank 4 cannot reach that error; degrees
                            from 27 on count with the share of the first of them.
  energy          0.3644    Of the target in degree 1; in degrees 0, 2, 3, 4:
                            0.2500, 0.1140, 0.0369, 0.0419.
  applies                   to 4 orthonormal points in uniformly random
                            directions, a query of its own that asks for its
                            nearest or its farthest, one layer, and the mean
                            squared error over fresh data.

Points may be independent instead, and more than there are dimensions.

  $ . ./no_torch; rankscope bound --d 16 --rank 4 --heads 4 --n 4 --points independent | sed -n '1p; 3p; 10p; $p'
  4 heads of rank 4 in 16 dimensions, the nearest of 4 independent points
  lower bound     0.3383    No layer of 4 heads of rank 4 has a smaller mean
  temperature     1.4990    Divide it by the inverse temperature, where that is
                            fresh data.
  $ . ./no_torch; rankscope bound --d 8 --rank 2 --heads 4 --n 100 --points independent | sed -n '3p; 6,7p'
  lower bound     0.3642    No layer of 4 heads of rank 2 has a smaller mean
  plateau         0.3856    What is left when the part that is linear in the query
                            is learned, and nothing else.
  $ . ./no_torch; rankscope bound --d 4096 --rank 64 --heads 64 --n 8 --points independent | grep -A1 energy
  energy          0.2898    Of the target in degree 1; in degrees 0, 2, 3: 0.1249,
                            0.1865, 0.0448.
  $ . ./no_torch; rankscope bound --d 2 --rank 1 --heads 8 --n 3 --points independent | tail -2
  applies                   no bound: for independent points it is computed from 3
                            dimensions on.
  $ . ./no_torch; rankscope bound --d 16 --rank 4 --heads 4 --n 4 --points independent --json | grep '"points"'
    "points": "independent",
  $ . ./no_torch; rankscope bound --d 64 --rank 8 --heads 8 --n 16 --target farthest --points orthonormal
  error: orthonormal points are equally far from each other: none is the farthest
    in   --points
    try  --points independent, or --target nearest
  [2]
  $ . ./no_torch; rankscope bound --d 64 --rank 8 --heads 8 --n 16 --points ortho
  error: there is no kind of points "ortho"
    in   --points
    try  orthonormal, independent
  [2]

Counts may be powers of ten, and the JSON has the same numbers.

  $ . ./no_torch; rankscope bound --d 64 --rank 8 --heads 1e60 | sed -n '1p; 3p'
  1e+60 heads of rank 8 in 64 dimensions, the nearest of 2 points
  lower bound     0.0053    No layer of 1e+60 heads of rank 8 has a smaller mean
  $ . ./no_torch; rankscope bound --d 64 --rank 8 --heads 64 --json | grep -o '^  "[a-z_]*"' | tr -d '\n'; echo
    "d"  "rank"  "heads"  "n"  "target"  "points"  "full_rank"  "lower_bound"  "lower_bound_error"  "plateau"  "no_selection_floor"  "temperature_coefficient"  "vote_error"  "energies"  "heads_needed"  "applies"
  $ . ./no_torch; rankscope bound --d 64 --rank 8 --heads 64 --json | grep -E '"(lower_bound|plateau)"' | cut -c1-24
    "lower_bound": 0.16995
    "plateau": 0.179193680
  $ . ./no_torch; rankscope bound --d 64 --rank 8 --heads 8 --n 16 --json | grep -E '"(lower_bound|no_selection_floor)"' | cut -c1-26
    "lower_bound": 0.6942730
    "no_selection_floor": 0.

Bad questions are refused before anything is computed.

  $ . ./no_torch; rankscope bound --d 64 --rank 65 --heads 1
  error: expected a rank from 1 to the width 64, but got 65
    try  64 is full rank: more dimensions of a head add nothing
  [2]
  $ . ./no_torch; rankscope bound --d 64 --rank 8 --heads 0
  error: expected a whole number of heads, at least 1, but got 0
  [2]
  $ . ./no_torch; rankscope bound --d 64 --rank 8 --heads 1.5
  error: expected a whole number of heads, at least 1, but got 1.5
  [2]
  $ . ./no_torch; rankscope bound --d 64 --rank 8 --heads many
  error: expected a number of heads, but got "many"
    in   --heads
  [2]
  $ . ./no_torch; rankscope bound --d 64 --rank 8 --heads 1e400
  error: expected a number of heads, but got "1e400"
    in   --heads
  [2]
  $ . ./no_torch; rankscope bound --d 1 --rank 1 --heads 1
  error: --d: expected a whole number of at least 2, but got "1"
    try  rankscope bound --help
  [2]
  $ . ./no_torch; rankscope bound --d 70000 --rank 1 --heads 1
  error: expected a width d from 2 to 65536, but got 70000
  [2]
  $ . ./no_torch; rankscope bound --d 8 --rank 8 --heads 1 --n 16
  error: there are no 16 orthonormal points in 8 dimensions
    try  at most d points, or independent ones: --points independent
  [2]
  $ . ./no_torch; rankscope bound --composition 2 --points independent
  error: --points is of a layer, and --composition of whole networks
    try  rankscope bound --help
  [2]
  $ . ./no_torch; rankscope bound --d 16 --rank 4 --heads 4 --message 12
  error: --message is of --composition
    try  rankscope bound --composition 2 --message 1024
  [2]
  $ . ./no_torch; rankscope bound --d 8 --rank 8 --heads 1 --target furthest
  error: there is no target "furthest"
    in   --target
    try  nearest, farthest
  [2]
  $ . ./no_torch; rankscope bound --d 64 --heads 1
  error: --rank is required
    try  rankscope bound --help
  [2]

Composition is a question about whole networks: from how many tokens on is it proven that too few full layers fail? "Never, at lengths there are" is an answer.

  $ . ./no_torch; rankscope bound --composition 1 --n 100000
  1 function composed, messages of 1024 bits

  hybrids fail    2^640     From so many tokens on, 0 full layers and 2^3 that
                            keep a state cannot compose them (Ye et al. 2026).
  full fail       2^160     From so many tokens on, 1 full layer cannot (Chen et
                            al. 2024).
  n = 100000      vacuous   At this length the theorem about hybrids says nothing.
  applies                   to messages of heads times width times bits of a
                            number, and to the worst tables there are.
  $ . ./no_torch; rankscope bound --composition 5 | sed -n '3,5p'
  hybrids fail    2^4.1943e+07
                            From so many tokens on, 4 full layers and 2^75 that
                            keep a state cannot compose them (Ye et al. 2026).
  $ . ./no_torch; rankscope bound --composition 3 --json
  {
    "functions": 3,
    "message_bits": 1024.0,
    "log2_tokens_hybrids_fail": 163840.0,
    "log2_tokens_full_layers_fail": 40960.0
  }
  $ . ./no_torch; rankscope bound --composition 2 --n 9223372036854775807 | sed -n '7,8p'
  n = 9223372036854775807
                  vacuous   At this length the theorem about hybrids says nothing.
  $ . ./no_torch; rankscope bound --composition 1 --message 2 --n 1000000 | grep speaks
  [1]
  $ . ./no_torch; for bits in nan inf -3 1; do rankscope bound --composition 2 --message $bits 2>&1 | head -1; done
  error: --message: expected a number from 2 to 1e+300, but got "nan"
  error: --message: expected a number from 2 to 1e+300, but got "inf"
  error: --message: expected a number from 2 to 1e+300, but got "-3"
  error: --message: expected a number from 2 to 1e+300, but got "1"
  $ . ./no_torch; rankscope bound --composition 2 --rank 8
  error: --rank is of a layer, and --composition of whole networks
    try  rankscope bound --help
  [2]
