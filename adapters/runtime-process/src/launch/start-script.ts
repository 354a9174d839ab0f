import { quote, tool, withTerminal } from '@keelson/container-monitor';
import type { LaunchPlan } from '../state/records.ts';

const quoteAll = (words: readonly string[]) => words.map(quote).join(' ');

/**
 * Words that go before a command so that it runs as the plan says. The order matters: the environment is set by the
 * machine's `env`, and whatever changes the root comes last, since the tools are not in there.
 */
export function launcher(plan: LaunchPlan, command: readonly string[], root = plan.root): string[] {
  const words = [tool('env'), '-i', '--', ...plan.env];
  const { uid, gid, groups, noNewPrivileges, workingDir } = plan;
  if (root !== undefined) {
    if (noNewPrivileges) words.unshift(tool('setpriv'), '--no-new-privs');
    const user = uid === undefined && gid === undefined ? undefined : `${uid ?? 0}:${gid ?? 0}`;
    if (workingDir !== '/' && (groups ?? []).length === 0) {
      words.push(tool('unshare'), `--root=${root}`, `--wd=${workingDir}`);
      if (user !== undefined) words.push(`--setgid=${gid ?? 0}`, `--setuid=${uid ?? 0}`);
      return [...words, '--', ...command];
    }
    words.push(tool('chroot'));
    if (user !== undefined) words.push(`--userspec=${user}`, `--groups=${(groups ?? []).join(',')}`);
    words.push(root);
    if (workingDir === '/') return [...words, ...command];
    return [...words, '/bin/sh', '-c', 'cd -- "$0" && exec "$@"', workingDir, ...command];
  }
  const privileges: string[] = [];
  if (gid !== undefined) privileges.push(`--regid=${gid}`);
  if (groups !== undefined) privileges.push(groups.length === 0 ? '--clear-groups' : `--groups=${groups.join(',')}`);
  else if (gid !== undefined) privileges.push('--keep-groups');
  if (uid !== undefined) privileges.push(`--reuid=${uid}`);
  if (noNewPrivileges) privileges.push('--no-new-privs');
  if (privileges.length > 0) words.unshift(tool('setpriv'), ...privileges, '--');
  return [...words, ...command];
}

/** Lines that put the calling shell where the container is, before {@link launcher} takes over. */
function placement(plan: LaunchPlan): string[] {
  const lines = plan.cgroups.map(
    (folder) => `echo $$ > ${quote(`${folder}/cgroup.procs`)} || fail "cannot join a cgroup"`,
  );
  // Lowering below one's own value needs a privilege; the closest that is allowed is no reason not to run.
  if (plan.oomScoreAdjust !== undefined)
    lines.push(`echo ${Math.trunc(plan.oomScoreAdjust)} 2>/dev/null > /proc/self/oom_score_adj || :`);
  lines.push('umask 022');
  return lines;
}

function mounting(plan: LaunchPlan): string[] {
  if (!plan.mountNamespace) return [];
  const lines: string[] = [];
  const { root = '' } = plan;
  const mount = (what: string) => lines.push(`mount ${what} || fail "cannot mount"`);
  if (plan.root !== undefined) {
    if (plan.overlayLower === undefined) mount(`--bind ${quote(root)} ${quote(root)}`);
    else {
      const folder = root.slice(0, root.lastIndexOf('/'));
      mount(
        `-t overlay -o ${quote(`lowerdir=${plan.overlayLower},upperdir=${folder}/upper,workdir=${folder}/work`)} overlay ${quote(root)}`,
      );
    }
    for (const name of ['proc', 'sys', 'dev']) {
      lines.push(`mkdir -p ${quote(`${root}/${name}`)}`);
      mount(`--rbind /${name} ${quote(`${root}/${name}`)}`);
    }
  }
  for (const { source, target, readonly, file, exact } of plan.mounts) {
    lines.push(`place=${quote(root + target)}`);
    lines.push(
      file
        ? '[ -e "$place" ] || { mkdir -p -- "$(dirname -- "$place")" && : > "$place"; } || fail "cannot make a mount point"'
        : 'mkdir -p -- "$place" || fail "cannot make a mount point"',
    );
    if (exact) lines.push(exactMount(source));
    else mount(`--rbind -- ${quote(source)} "$place"`);
    if (readonly) mount('-o remount,bind,ro -- "$place"');
  }
  return lines;
}

/**
 * Mounts a source at `$place` as it was opened, after the kernel has reported that what was opened is at that very
 * path: a link that took a place in it since cannot lead the mount elsewhere. By its name in /proc, which mount(8)
 * must not resolve.
 */
function exactMount(source: string): string {
  const check = `[ "$(readlink /proc/self/fd/0)" = ${quote(source)} ]`;
  const mount = 'mount --no-canonicalize --rbind -- /proc/self/fd/0 "$place"';
  return `{ ${check} && ${mount}; } < ${quote(source)} || fail "cannot mount: the source was replaced"`;
}

/**
 * The script that becomes the container's process; see the monitor. It writes `ID.pid` at the last moment, or
 * `ID.failed`.
 */
export function startScript(plan: LaunchPlan, runFolder: string, id: string): string {
  const base = quote(`${runFolder}/${id}`);
  const outside = [
    `fail() { echo "$1" > ${base}.failed; exit 128; }`,
    ...placement(plan),
    ...mounting(plan),
    ...(plan.root === undefined
      ? [
          `cd -- ${quote(plan.workingDir)} || fail "cannot change to the working directory ${plan.workingDir.replace(/[^\w./-]/g, '?')}"`,
        ]
      : []),
    `read -r stat < /proc/$$/stat || fail 'cannot read /proc'`,
    `(umask 077; echo "$stat" > ${base}.pid.tmp && mv ${base}.pid.tmp ${base}.pid) || fail "cannot write the process id"`,
    `exec ${quoteAll(launcher(plan, plan.command))}`,
  ];
  return `${outside.join('\n')}\n`;
}

/** Arguments: file for the name of the terminal, its owner or nothing, then the command. */
const terminalScript = `file=$1 owner=$2
shift 2
tty=$(tty) || exit 126
stty sane
[ -z "$owner" ] || chown -- "$owner" "$tty"
echo "$tty" > "$file"
exec "$@"`;

/**
 * The command with a terminal of its own, which belongs to the user of the plan; the name of the terminal is written
 * to `file`.
 */
export function terminalWords({ uid }: LaunchPlan, file: string, words: readonly string[]): string[] {
  return withTerminal(['/bin/sh', '-c', terminalScript, 'sh', file, uid === undefined ? '' : String(uid), ...words]);
}

/**
 * Command that runs another command in a container that runs: program and arguments for `spawn`, no shell on the way to
 * the command.
 */
export function execWords(plan: LaunchPlan, containerPid: number, command: readonly string[]): string[] {
  const script = `${placement(plan)
    .map((line) => line.replace(/ \|\| fail .*/, ' 2>/dev/null || :'))
    .join('\n')}
${plan.root === undefined ? `cd -- ${quote(plan.workingDir)} || exit 126\n` : ''}exec "$@"`;
  const enter = plan.mountNamespace ? [tool('nsenter'), `--mount=/proc/${containerPid}/ns/mnt`, '--'] : [];
  return [...enter, '/bin/sh', '-c', script, 'sh', ...launcher(plan, command)];
}
