#!/usr/bin/env bash
# A study over the GPUs of one node, or of several: sbatch examples/slurm.sh [STUDY]
#
# The first task keeps the store and hands out stacks; it needs no GPU. Every other task trains. Send the same script
# again, with the same folder, to go on after a time limit: finished trials stay, running ones continue from their
# checkpoints. A task that dies costs its stack only.
#SBATCH --job-name=rankscope
#SBATCH --nodes=1
#SBATCH --ntasks=5              # GPUs + 1
#SBATCH --gpus=4
#SBATCH --cpus-per-task=4
#SBATCH --time=04:00:00
#SBATCH --signal=TERM@120       # two minutes before the limit: checkpoints are written, trials go back to the store
#SBATCH --no-kill
set -euo pipefail

export STUDY=${1:-fig1}
export FOLDER=${FOLDER:-out/$STUDY}   # on a file system that all nodes share
export GPUS_PER_NODE=${SLURM_GPUS_ON_NODE:-4}

# One GPU a task. On the first node, task 0 is the one that does not train.
srun --mpi=pmix --kill-on-bad-exit=0 bash -c '
  first=$(( SLURM_NODEID == 0 ? 1 : 0 ))
  export CUDA_VISIBLE_DEVICES=$(( (SLURM_LOCALID - first + GPUS_PER_NODE) % GPUS_PER_NODE ))
  exec rankscope study run "$STUDY" --device cuda --out "$FOLDER"
'
