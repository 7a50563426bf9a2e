#!/bin/sh
# Draws the figure of every study whose rows are kept in src/studies/results, from those rows alone.
# usage: scripts/results-figures.sh [RANKSCOPE]    build/rankscope when left out
set -eu
cd "$(dirname "$0")/.."
rankscope=${1:-build/rankscope}
results=src/studies/results

draw() { # STUDY plot's options
  study=$1
  shift
  "$rankscope" plot "$results/$study" --size 5x3in --quiet "$@" --out "$results/$study/figure.svg"
}
trained() { draw "$@" --y test_mse --log --band test_mse_stderr; }
paths() { # STUDY; more
  draw "$@" --x length --y accuracy --by semantics,reading --where reading=only --where reading=upto \
    --where reading=allbut --where reading=20
}

trained fig1 --x rank --by layers,width --log-x
trained fig1-100k --x rank --by layers,width,warmup --log-x --where protocol=fresh
trained fig1-schedules --x steps --by layers,width,rank --log-x
trained fig1-protocols --x rank --by protocol,width --log-x --where layers=1
trained fig1-precision --x rank --by layers,precision --log-x --where seed=0
trained figN --x rank --by n --log-x --where warmup=0.05 --where d=64 --where width=64
trained positions --x rank --by positions,lr --log-x --where layers=3 --where warmup=0.5
trained positions-small --x rank --by positions,width,protocol --log-x --where seed=0 --where seed=1
draw fig1-deaths --x layers --y answer_gain --by lr,warmup --where norm=unit --where norm_place=post
trained fig1-memorise --x layers --by protocol
trained fig1-small --x rank --by layers,width --log-x --where protocol=fresh --where steps=20000
trained fig1-warmup --x rank --by warmup,seed --log-x
trained fig1-start --x rank --by layers,start_scale --log-x
trained quick --x rank --by start_scale --log-x --where lr=0.03
trained many-points --x rank --by n,start_scale --log-x
trained many-points-iid --x rank --by n,task,data --log-x
trained many-points-32 --x n --by rank,heads --log-x --where start_scale=2 --where device=cuda
trained many-points-layers --x rank --by n,layers --log-x --where start_scale= --where n=4 --where n=32 \
  --where device=cuda
trained warm-start --x rank --by start,start_scale --log-x
trained n2-trained --x heads --by d --log-x
trained square-wave --x rank --by heads
draw vote --x heads --y mse --where d=64 --where n=2 --log --log-x
draw checkpoints --x layer --y bound_spread --by model --where "variant=theory, network as it is" --log
draw skip-scales --x depth --y spread --by look,skip --where look=trained --where look=removed
draw mlp-gain --x depth --y residual_log10 --by mlp_gain --where depth=1 --where depth=2 --where depth=3 \
  --where depth=4
draw norm-keeps --x depth --y spread --by norm,shared --where noise=0.01 --where depth=1 --where depth=2 \
  --where depth=4 --where depth=8 --where depth=12 --where depth=50 --where depth=100 --where depth=200 \
  --where depth=400 --where depth=1000 --log-x
draw sink-shift --x layer --y spread --by variant --where variant=full \
  --where variant=replace:softmax=shifted_sink:nats=6 \
  --where variant=replace:softmax=shifted_control:nats=6,to=nothing \
  --where variant=replace:softmax=shifted_control:nats=6,to=uniform \
  --where variant=replace:softmax=shifted_control:nats=6,to=random
draw sinks --x shift --y loss --by kind,shift_to --where shift=-8 --where shift=-4 --where shift=-2 --where shift=2 \
  --where shift=4 --where shift=8 --where kind=softmax --where kind=gate_output
paths sort
paths hull
draw hull-depth --x length --y accuracy --by layers --where reading=allbut
paths memorise --where positions=off
draw circle --x step --y distance --by skip,mlp --where d=32
draw recall --x pairs --y recalled --by form --where d=32 --log-x
draw explained-away --x bias --y effective_rank --by normalisation --where reading=pattern
draw variants --x depth --y rank_rel --by kind,skips --where task=backcopy --where kind=softmax \
  --where kind=fastmax --where kind=delta --where kind=gate_output \
  --x-label "layers passed"
draw gates --x seed --y sink_mass --by kind --where heads=1
draw fastmax --x attention_rank --y wrong --by kind --where task=retrieval --where tokens=9
draw hybrid-share --x depth --y hybrid_share --by task
draw compose --x key_width --y accuracy --by functions,order --log-x --where order=full+full+linear \
  --where order=full+full+delta --where order=linear+linear+linear --where order=full+full+full+linear
draw compose-trained --x seed --y wrong --by kind
draw gate-samples --x samples --y expert --by atoms,experts --log --log-x
draw heads-mixed --x forward_flops --y wrong --by kind
