/**
 * What stands beside every container: a POSIX shell (about 1 MB, most of it shared) that waits for the process and
 * writes down how it ended. It is not a child of anything that matters, so neither the agent's death nor its restart
 * changes anything for it.
 *
 * Arguments: folder `run`, container id, folder of the pipes, then the command. Steps:
 *
 * 1. hold the pipes open for reading and writing, so that the process can write (and block) while nobody reads, and
 *    never gets SIGPIPE;
 * 2. claim the container by creating `ID.monitor`, which fails if it exists: a container is started once, whoever asks;
 *    a terminal has no end of file of its own, so the input of one stays open as well;
 * 3. run the command in a session of its own, with signals as a parent without a terminal hands them down;
 * 4. kill what is left of its process group, and write `ID.exit` in one step;
 * 5. keep the pipes, and so what is in them, until the log keeper writes to `done` (open from the start, so that a
 *    quick keeper is heard).
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
