/**
 * What stands beside every container: a POSIX shell that waits for it and writes down how it ended. It is not a child
 * of anything that matters. Arguments: folder `run`, container id, its folder, then the command, which starts it.
 *
 * 1. hold the pipes open for reading and writing, so that the process can write (and block) while nobody reads, and
 *    never gets SIGPIPE;
 * 2. claim the container by creating `ID.monitor`, which fails if it exists: a container is started once, whoever asks;
 * 3. run the command in a session of its own; the reaper in it writes to `ID.ends` who ended and how;
 * 4. find the container among those, and write `ID.exit` in one step; without a reaper the command's own end is that
 *    of the container;
 * 5. keep the pipes, and so what is in them, until the log keeper writes to `done`.
 */
export const monitorScript = `run=$1 id=$2 folder=$3
shift 3
umask 077
trap : TERM INT HUP QUIT
exec 4<>"$folder/stdout" 5<>"$folder/stderr" 6<>"$folder/done" || exit 1
input=/dev/null
if [ -p "$folder/stdin" ]; then input=$folder/stdin; fi
# A terminal has no end of file of its own: its input stays open whoever comes and goes.
if [ -e "$folder/terminal" ]; then exec 7<>"$input"; fi
read -r stat < /proc/$$/stat || exit 1
set -C
echo "$stat" > "$run/$id.monitor" || exit 1
set +C
setsid "$@" < "$input" >&4 2>&5 3>"$run/$id.ends" 4>&- 5>&- 6>&- 7>&-
code=$?
if [ ! -e "$folder/terminal" ]; then
  code=128
  read -r pid < "$folder/pid"
  wanted=$(printf %08x "$pid")
  while read -r line; do
    case $line in "$wanted"*)
      status=$((0x\${line#"$wanted"}))
      code=$((status >> 8 & 255))
      if [ $((status & 127)) -ne 0 ]; then code=$((128 + (status & 127))); fi ;;
    esac
  done < "$run/$id.ends"
fi
echo "$code" > "$run/$id.exit.tmp" && mv "$run/$id.exit.tmp" "$run/$id.exit"
read -r nothing <&6
`;

/**
 * Runs in a mount namespace of its own, so that the container's root needs no mount of the machine and goes by itself.
 * Arguments: \`run/ID\`, container folder, lower layer of the overlay or nothing, then what comes next.
 */
export const mountScript = `run=$1 folder=$2 lower=$3
shift 3
if [ -n "$lower" ] && ! mount -t overlay -o "lowerdir=$lower,upperdir=$folder/upper,workdir=$folder/work" overlay "$folder/rootfs"; then
  echo 'cannot mount the root file system' > "$run.failed"
  exit 128
fi
umask 022
exec "$@"
`;

/** Arguments: `run/ID`, container folder, then the binary's command, which ends when the container runs. */
export const detachedScript = `run=$1 folder=$2
shift 2
"$@" || { : > "$run.failed"; exit 128; }
read -r pid < "$folder/pid"
exec 2>/dev/null
read -r stat < "/proc/$pid/stat" || stat="$pid (ended) X 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0"
echo "$stat" > "$run.pid"
`;

/**
 * Like the former, for a container with a terminal: the binary stays, between the container's terminal and ours. Its
 * mount namespace lets go of what is mounted for pods, which would otherwise stay when they are gone. Arguments: as
 * before, and before the command the folder of all pods.
 */
export const terminalScript = `run=$1 folder=$2 pods=$3
shift 3
tty > "$folder/terminal"
started() {
  read -r pid < "$folder/pid" || [ -n "$pid" ] || return 1
  read -r stat < "/proc/$pid/stat" || stat="$pid (ended) X 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0"
  echo "$stat" > "$run.pid"
}
forget() {
  while read -r device path rest; do
    case $path in "$pods"/*) umount -l "$path" ;; esac
  done < /proc/self/mounts
}
( while ! started; do sleep 0.02; done; forget ) 2>/dev/null &
"$@"
code=$?
kill $! 2>/dev/null
wait $! 2>/dev/null
if [ ! -s "$run.pid" ]; then started 2>/dev/null || : > "$run.failed"; fi
exit "$code"
`;
