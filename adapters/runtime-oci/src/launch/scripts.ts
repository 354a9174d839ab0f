/**
 * The monitor of a container: a POSIX shell that waits for the container and records its exit code. It is independent
 * of the process that started it. Arguments: directory `run`, container ID, its directory, the command that starts the
 * container. Steps:
 *
 * 1. open the pipes for reading and writing, so that the process can write (and block) while no process reads, and
 *    never receives SIGPIPE;
 * 2. claim the container by creating `ID.monitor`, which fails if it exists, so that a container is started only once;
 * 3. run the command in a session of its own; its reaper writes the exit status of every process to `ID.ends`;
 * 4. read the status of the container from that file and write `ID.exit` atomically; without a reaper the exit code of
 *    the command is that of the container;
 * 5. keep the pipes and their content until the log keeper writes to `done`.
 */
export const monitorScript = `run=$1 id=$2 folder=$3
shift 3
umask 077
trap : TERM INT HUP QUIT
exec 4<>"$folder/stdout" 5<>"$folder/stderr" 6<>"$folder/done" || exit 1
input=/dev/null
if [ -p "$folder/stdin" ]; then input=$folder/stdin; fi
# A terminal has no end of file, so its input stays open when attached clients disconnect.
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
 * Script that mounts the root of a container, then executes the next command. It runs in a mount namespace of its own,
 * so that the kernel unmounts the root when the processes of the namespace have ended.
 * Arguments: `run/ID`, container directory, lower layer of the overlay or an empty string, the next command.
 */
export const mountScript = `run=$1 folder=$2 lower=$3
shift 3
layers="lowerdir=$lower,upperdir=$folder/upper,workdir=$folder/work"
if [ -n "$lower" ] && ! mount -t overlay -o "$layers" overlay "$folder/rootfs"; then
  echo 'cannot mount the root file system' > "$run.failed"
  exit 128
fi
umask 022
exec "$@"
`;

/**
 * Script that starts a container without a terminal and records its process. Arguments: `run/ID`, container directory,
 * the command of the binary, which ends when the container is running.
 */
export const detachedScript = `run=$1 folder=$2
shift 2
"$@" || { : > "$run.failed"; exit 128; }
read -r pid < "$folder/pid"
exec 2>/dev/null
read -r stat < "/proc/$pid/stat" || stat="$pid (ended) X 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0"
echo "$stat" > "$run.pid"
`;

/**
 * Script that starts a container with a terminal and records its process. The binary keeps running and connects the
 * terminal of the container with one outside. The script unmounts the mounts of pods in its own mount namespace, which
 * would otherwise keep them in use after the removal of the pods. Arguments: `run/ID`, container directory, directory
 * of all pods, the command of the binary.
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
