study keys: the runners, one file each.

  $ rankscope study keys | grep -v '^ ' | cut -d' ' -f1 > names; (cd "$TREE/src/studies/runners" && LC_ALL=C ls *.cpp | sed 's/\.cpp$//') | diff - names
  $ rankscope study keys | grep -A1 '^vote'
  vote                    counts the votes of rank-1 hard heads: 5 keys, 4
                          results

Of one runner every key with its default, what it means and what it may be, and every result.

  $ rankscope study keys vote
  vote: counts the votes of rank-1 hard heads

  keys with their defaults, for [fixed], [grid], [protocol] and KEY=VALUES:
  d=64                    width of a point (a whole number from 2 to 4096)
  n=2                     orthonormal points (a whole number from 2 to 4096)
  heads=256               heads that vote (a whole number from 1 to
                          1000000000000)
  samples=200000          draws for the advantage of one head (a whole number
                          from 2 to 1000000000)
  seed=0                  of the draws (a whole number from 0 to
                          1000000000000000)

  results, for y of [figure], metric of [published] and study show --metric:
  mse, asymptote, advantage, advantage_stderr
  $ rankscope study keys recall | grep -A1 '^form='
  form=linear             how pairs are stored and read (one of linear, decay,
                          delta, gated_delta, fastmax, softmax)
  $ rankscope study keys trian 2>&1 | sed 's/all [0-9]*)/all N)/'
  error: there is no runner "trian"
    try  train, circle, kinds   (rankscope study keys shows all N)
