#!/bin/bash
# Runs scripts/slurm/tune.sbatch on a real Slurm of this machine: munged, slurmctld and slurmd of Debian's packages
# slurmctld, slurmd, slurm-client and munge, as root and without systemd. One task is killed half-way and requeued. The
# merged database must equal, trial for trial, that of the same parts tuned without Slurm and without interruption.
#
#   scripts/slurm/test.sh [FOLDER WITH THE TOOLS]     by default build/dev/bin
set -euo pipefail
cd "$(dirname "$0")/../.."

bin=$(realpath "${1:-build/dev/bin}")
shards=2
if [ "$(id -u)" != 0 ]; then
  echo "$0: must run as root: slurmd and munged change users" >&2
  exit 2
fi
for tool in munged slurmctld slurmd sbatch "$bin/greta-tune" "$bin/greta-db"; do
  if ! command -v "$tool" > /dev/null; then
    echo "$0: $tool: not found; apt-get install slurmctld slurmd slurm-client munge" >&2
    exit 2
  fi
done

folder=$(mktemp -d)
chmod 755 "$folder"
host=$(hostname -s)
started=()
cleanup() {
  code=$?
  if [ $code != 0 ]; then
    tail -n 20 "$folder"/*.log "$folder"/out/*.log >&2 || true
  fi
  for pid in "${started[@]}"; do kill "$pid" 2> /dev/null || true; done
  for pid in "${started[@]}"; do wait "$pid" 2> /dev/null || true; done
  rm -rf "$folder"
  exit $code
}
trap cleanup EXIT

# --- munge and Slurm -------------------------------------------------------------------------------------------------
mkdir "$folder"/{munge,state,spool,out,plain}
head -c 64 /dev/urandom > "$folder/munge/key"
chmod 400 "$folder/munge/key"
munged --foreground --force --socket="$folder/munge/socket" --key-file="$folder/munge/key" \
  --pid-file="$folder/munge/pid" --seed-file="$folder/munge/seed" --log-file="$folder/munge.log" \
  2> "$folder/munged-errors.log" &
started+=($!)

# Character devices stand for GPUs.
cat > "$folder/gres.conf" << END
NodeName=$host Name=gpu File=/dev/null
NodeName=$host Name=gpu File=/dev/zero
END
echo "CgroupPlugin=cgroup/v1" > "$folder/cgroup.conf"
cat > "$folder/slurm.conf" << END
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmctldPort=16817
SlurmdPort=16818
AuthType=auth/munge
AuthInfo=socket=$folder/munge/socket
CredType=cred/munge
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
ReturnToService=2
KillWait=5
RequeueExit=137
GresTypes=gpu
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) Gres=gpu:2 State=UNKNOWN
PartitionName=all Nodes=$host Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:4
END
export SLURM_CONF=$folder/slurm.conf
slurmctld -D -c 2> "$folder/slurmctld-errors.log" &
started+=($!)
slurmd -D -N "$host" -c 2> "$folder/slurmd-errors.log" &
started+=($!)

wait_for() {  # seconds, what for, command…
  for ((i = 0; i < 10 * $1; ++i)); do
    if "${@:3}"; then return; fi
    sleep 0.1
  done
  echo "$0: $2: not within $1 s" >&2
  exit 1
}
is_idle() { sinfo -h -o %t 2> /dev/null | grep -q idle; }
wait_for 30 "Slurm's node is idle" is_idle

# --- the preset: operations that learn nothing from each other, and a strategy that ignores times ---------------------
cat > "$folder/list.json" << 'END'
{"problems": [{"op": "softmax", "rows": 16, "cols": 256}, {"op": "gemm", "m": 32, "n": 32, "k": 32},
              {"op": "rmsnorm", "rows": 16, "cols": 256}, {"op": "argmax", "rows": 16, "cols": 256}]}
END
device=${GRETA_TEST_DEVICE:-vulkan:0}
options=("$folder/list.json" --device "$device" --strategy random --seed 1 --budget 40 --no-lock --flush 1)
export HOME=$folder GALLIVM_PERF=nopt GRETA_BIN=$bin

for ((i = 0; i < shards; ++i)); do
  "$bin/greta-tune" preset "${options[@]}" --shard "$((i + 1))/$shards" --db "$folder/plain/part-$i.db" \
    > "$folder/plain-$i.log" 2>&1
done
"$bin/greta-db" merge --trials "$folder"/plain/part-*.db --db "$folder/plain/tuned.db" > "$folder/plain-merge.log"

# --- the same as an array; a task is killed when it has recorded some trials ------------------------------------------
SBATCH_OPTIONS="--cpus-per-task=1" scripts/slurm/tune.sbatch $shards "$folder/out" "${options[@]}" | tee "$folder/submit.log"
array=$(grep -o 'array [0-9]*' "$folder/submit.log" | cut -d' ' -f2)
merge=$(grep -o 'job [0-9]*' "$folder/submit.log" | cut -d' ' -f2)

trials() {
  python3 - "$1" << 'END'
import sqlite3, sys
try:
    print(sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True).execute("SELECT count(*) FROM trials").fetchone()[0])
except sqlite3.Error:
    print(0)
END
}
has_begun() { [ "$(trials "$folder/out/part-0.db")" -ge 10 ]; }
wait_for 120 "a task has recorded 10 trials" has_begun
victim=$(pgrep -f "greta-tune preset .*--db $folder/out/part-0.db")
grep -z -E '^(CUDA|ROCR)_VISIBLE_DEVICES=' "/proc/$victim/environ" | tr '\0' '\n' | tee "$folder/visible.log"
[ "$(wc -l < "$folder/visible.log")" = 2 ]
before=$(trials "$folder/out/part-0.db")
scontrol requeue "${array}_0"
echo "requeued after $before trials"
# Slurm holds a requeued job back for two minutes, unless it is told when to begin.
shows() { scontrol show job "$1" | grep -qE "$2"; }
wait_for 30 "the task is pending again" shows "${array}_0" JobState=PENDING
sleep 3  # slurmd refuses what was killed in the same second
scontrol update JobId="${array}_0" StartTime=now

wait_for 300 "the merging job has ended" shows "$merge" "JobState=(COMPLETED|FAILED|CANCELLED)"
shows "$merge" JobState=COMPLETED
shows "${array}_0" Restarts=1

# --- both databases have the same sessions and, in the same order, the same trials ------------------------------------
python3 scripts/slurm/compare_trials.py "$folder/plain/tuned.db" "$folder/out/tuned.db"
"$bin/greta-db" merge --trials "$folder"/out/part-*.db --db "$folder/out/tuned.db" | tee "$folder/again.log"
[ "$(grep -c '0 sessions with 0 trials' "$folder/again.log")" = $shards ]
echo "passed"
