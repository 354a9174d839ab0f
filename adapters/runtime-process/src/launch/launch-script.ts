import { tool } from '@keelson/container-host';
import { quote, withTerminal } from '@keelson/container-monitor';
import type { LaunchPlan } from '../state/records.ts';

const quoteAll = (args: readonly string[]) => args.map(quote).join(' ');

/**
 * The command line that runs a command as specified by the plan. The order is significant: the program that changes the
 * root comes last, because the other tools may not exist in the new root.
 */
export function launcher(plan: LaunchPlan, command: readonly string[], root = plan.root): string[] {
  const commandLine = [tool('env'), '-i', '--', ...plan.env];
  const { uid, gid, groups, noNewPrivileges, workingDir } = plan;
  if (root !== undefined) {
    if (noNewPrivileges) commandLine.unshift(tool('setpriv'), '--no-new-privs');
    const user = uid === undefined && gid === undefined ? undefined : `${uid ?? 0}:${gid ?? 0}`;
    if (workingDir !== '/' && (groups ?? []).length === 0) {
      commandLine.push(tool('unshare'), `--root=${root}`, `--wd=${workingDir}`);
      if (user !== undefined) commandLine.push(`--setgid=${gid ?? 0}`, `--setuid=${uid ?? 0}`);
      return [...commandLine, '--', ...command];
    }
    commandLine.push(tool('chroot'));
    if (user !== undefined) commandLine.push(`--userspec=${user}`, `--groups=${(groups ?? []).join(',')}`);
    commandLine.push(root);
    if (workingDir === '/') return [...commandLine, ...command];
    return [...commandLine, '/bin/sh', '-c', 'cd -- "$0" && exec "$@"', workingDir, ...command];
  }
  const privileges: string[] = [];
  if (gid !== undefined) privileges.push(`--regid=${gid}`);
  if (groups !== undefined) privileges.push(groups.length === 0 ? '--clear-groups' : `--groups=${groups.join(',')}`);
  else if (gid !== undefined) privileges.push('--keep-groups');
  if (uid !== undefined) privileges.push(`--reuid=${uid}`);
  if (noNewPrivileges) privileges.push('--no-new-privs');
  if (privileges.length > 0) commandLine.unshift(tool('setpriv'), ...privileges, '--');
  return [...commandLine, ...command];
}

/** Lines of shell that place the shell in the cgroups of the container and set its out-of-memory score. */
function placement(plan: LaunchPlan): string[] {
  const lines = plan.cgroups.map(
    (folder) => `echo $$ > ${quote(`${folder}/cgroup.procs`)} || fail "cannot join a cgroup"`,
  );
  // Lowering the out-of-memory score requires a privilege. Without it the container starts with the current score.
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
      const layers = `lowerdir=${plan.overlayLower},upperdir=${folder}/upper,workdir=${folder}/work`;
      mount(`-t overlay -o ${quote(layers)} overlay ${quote(root)}`);
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
        ? '[ -e "$place" ] || { mkdir -p -- "$(dirname -- "$place")" && : > "$place"; } || ' +
            'fail "cannot create a mount point"'
        : 'mkdir -p -- "$place" || fail "cannot create a mount point"',
    );
    if (exact) lines.push(exactMount(source));
    else mount(`--rbind -- ${quote(source)} "$place"`);
    if (readonly) mount('-o remount,bind,ro -- "$place"');
  }
  // The root becomes read-only last, because mount points are created in it before.
  if (plan.readonlyRoot) mount(`-o remount,bind,ro -- ${quote(root)}`);
  return lines;
}

/**
 * Mounts a source at `$place` only if its path contains no symbolic link at this time, so that a link that a container
 * inserted later cannot redirect the mount. The source is opened, and the path that the kernel reports for the file
 * descriptor is compared. The mount uses the name of the file descriptor in /proc, which mount(8) must not resolve.
 */
function exactMount(source: string): string {
  const check = `[ "$(readlink /proc/self/fd/0)" = ${quote(source)} ]`;
  const mount = 'mount --no-canonicalize --rbind -- /proc/self/fd/0 "$place"';
  return `{ ${check} && ${mount}; } < ${quote(source)} || fail "cannot mount: the source was replaced"`;
}

/**
 * The script that the monitor runs and that executes the command of the container. It writes `ID.pid` immediately
 * before that, or `ID.failed`.
 */
export function startScript(plan: LaunchPlan, runFolder: string, id: string): string {
  const base = quote(`${runFolder}/${id}`);
  const shownPath = plan.workingDir.replace(/[^\w./-]/g, '?');
  const outside = [
    `fail() { echo "$1" > ${base}.failed; exit 128; }`,
    ...placement(plan),
    ...mounting(plan),
    ...(plan.root === undefined
      ? [`cd -- ${quote(plan.workingDir)} || fail "cannot change to the working directory ${shownPath}"`]
      : []),
    `read -r stat < /proc/$$/stat || fail 'cannot read /proc'`,
    `(umask 077; echo "$stat" > ${base}.pid.tmp && mv ${base}.pid.tmp ${base}.pid) || ` +
      'fail "cannot write the process id"',
    `exec ${quoteAll(launcher(plan, plan.command))}`,
  ];
  return `${outside.join('\n')}\n`;
}

/**
 * Script that writes the name of its terminal to a file, then executes a command. Arguments: the file, the owner that
 * the terminal gets or an empty string, the command.
 */
const terminalScript = `file=$1 owner=$2
shift 2
tty=$(tty) || exit 126
stty sane
[ -z "$owner" ] || chown -- "$owner" "$tty"
echo "$tty" > "$file"
exec "$@"`;

/**
 * The command line that runs a command with a new terminal. The terminal is owned by the user of the plan, and its name
 * is written to `file`.
 */
export function terminalCommand({ uid }: LaunchPlan, file: string, command: readonly string[]): string[] {
  return withTerminal(['/bin/sh', '-c', terminalScript, 'sh', file, uid === undefined ? '' : String(uid), ...command]);
}

/**
 * The command line that runs a command in a running container: program and arguments for `spawn`. No shell interprets
 * the command.
 */
export function execCommand(plan: LaunchPlan, containerPid: number, command: readonly string[]): string[] {
  const script = `${placement(plan)
    .map((line) => line.replace(/ \|\| fail .*/, ' 2>/dev/null || :'))
    .join('\n')}
${plan.root === undefined ? `cd -- ${quote(plan.workingDir)} || exit 126\n` : ''}exec "$@"`;
  const enter = plan.mountNamespace ? [tool('nsenter'), `--mount=/proc/${containerPid}/ns/mnt`, '--'] : [];
  return [...enter, '/bin/sh', '-c', script, 'sh', ...launcher(plan, command)];
}
