/**
 * The monitor of a container: a POSIX shell (about 1 MB of memory, most of it shared) that waits for the process and
 * records its exit code. It is independent of the agent and continues to run when the agent ends or restarts.
 *
 * Arguments: directory `run`, container ID, directory of the pipes, the command. Steps:
 *
 * 1. open the pipes for reading and writing, so that the process can write (and block) while no process reads, and
 *    never receives SIGPIPE; a terminal has no end of file, so its input stays open too;
 * 2. claim the container by creating `ID.monitor`, which fails if it exists, so that a container is started only once;
 * 3. run the command in a session of its own, with the default signal dispositions;
 * 4. kill the remaining processes of its process group and write `ID.exit` atomically;
 * 5. keep the pipes and their content until the log keeper writes to `done`, which is opened first, so that an early
 *    write is not missed.
 */
export const monitorScript = `run=$1 id=$2 pipes=$3
shift 3
umask 077
trap : TERM INT HUP QUIT
exec 3<>"$pipes/stdout" 4<>"$pipes/stderr" 5<>"$pipes/done" || exit 1
if [ -p "$pipes/stdin" ]; then input=$pipes/stdin; else input=/dev/null; fi
if [ -e "$pipes/terminal" ]; then exec 6<>"$input"; fi
read -r stat < /proc/$$/stat || exit 1
set -C
echo "$stat" > "$run/$id.monitor" || exit 1
set +C
setsid "$@" < "$input" >&3 2>&4 3>&- 4>&- 5>&- 6>&-
code=$?
if read -r pid rest < "$run/$id.pid"; then kill -KILL -- "-$pid"; fi
echo "$code" > "$run/$id.exit.tmp" && mv "$run/$id.exit.tmp" "$run/$id.exit"
read -r nothing <&5
`;
