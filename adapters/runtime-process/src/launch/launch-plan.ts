import { stat } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join, posix } from 'node:path';
import { tool, toolPath } from '@keelson/container-host';
import {
  type Account,
  commandOf,
  environmentOf,
  findAccount,
  passable,
  quote,
  resolveInside,
  signalNumber,
  withTerminal,
} from '@keelson/container-monitor';
import {
  type ContainerConfig,
  type ImageConfig,
  type Mount,
  type PodSandboxConfig,
  RuntimeError,
} from '@keelson/container-runtime';
import { containerMarker } from '../machine/members.ts';
import type { Permissions } from '../machine/permissions.ts';
import type { LaunchPlan } from '../state/records.ts';

/** The variable that container runtimes set for programs with a terminal. */
const terminalVariable = ['TERM', 'xterm'] as const;

const defaultPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** The input of a launch plan. */
export interface PlanInput {
  readonly id: string;
  readonly config: ContainerConfig;
  readonly sandbox: PodSandboxConfig;
  readonly permissions: Permissions;
  readonly image: ImageConfig;
  /** Directory of the image's files; `/` for the image `host`. */
  readonly imageRoot: string;
  /** Root directory of the running container, and its lower layer if it is an overlay. Absent for the image `host`. */
  readonly root?: { readonly path: string; readonly overlayLower?: string };
  readonly cgroups: readonly string[];
}

/**
 * Determines how a container is started. Settings that this machine does not support are rejected, not ignored.
 *
 * @throws RuntimeError `Unsupported`, `InvalidArgument`, `StartFailed` (unknown user)
 */
export async function makePlan(input: PlanInput): Promise<LaunchPlan> {
  const { config, sandbox, permissions, image, imageRoot, root } = input;
  checkSupported(config, permissions, root !== undefined);
  const user = await userOf(input);
  const mounts = await mountsOf(config.mounts ?? [], imageRoot, permissions);
  const env = environmentOf(config, image, [
    ['PATH', defaultPath],
    ['HOSTNAME', sandbox.hostname ?? hostname()],
    ['HOME', user?.home ?? process.env['HOME'] ?? '/'],
    ...(config.tty ? [terminalVariable] : []),
  ]);
  env.set(containerMarker, input.id);
  const command = commandOf(config, image);
  const workingDir = config.workingDir || image.workingDir || '/';
  if (!workingDir.startsWith('/'))
    throw new RuntimeError('InvalidArgument', `working directory is not absolute: "${workingDir}"`);
  const oomScoreAdjust = config.resources?.oomScoreAdjust;
  return {
    command,
    env: [...env].map(([name, value]) => `${name}=${value}`),
    workingDir: posix.normalize(workingDir),
    ...(root !== undefined && { root: root.path }),
    ...(root?.overlayLower !== undefined && { overlayLower: root.overlayLower }),
    ...(config.securityContext?.readonlyRootfs && { readonlyRoot: true }),
    mounts,
    mountNamespace: mounts.length > 0 || (root !== undefined && permissions.mounts),
    ...(user !== undefined && { uid: user.uid, gid: user.gid, groups: user.groups }),
    noNewPrivileges: config.securityContext?.noNewPrivileges ?? false,
    cgroups: input.cgroups,
    ...(oomScoreAdjust !== undefined && { oomScoreAdjust }),
    stopSignal: String(signalNumber(config.stopSignal || image.stopSignal || 'SIGTERM')),
  };
}

function checkSupported(config: ContainerConfig, permissions: Permissions, ownRoot: boolean): void {
  const cannot = (what: string) => new RuntimeError('Unsupported', `the process runtime cannot ${what}`);
  const { securityContext: context = {}, tty, devices = [] } = config;
  if (tty && !permissions.terminals)
    throw cannot('give a container a terminal without the programs script, stty and tty');
  if (context.privileged && !permissions.root) throw cannot('run privileged containers without being root');
  if (context.readonlyRootfs && !ownRoot) throw cannot('make the root file system of the machine read-only');
  if (context.readonlyRootfs && !permissions.mounts)
    throw cannot('make the root file system read-only: it may not mount on this machine');
  if (context.noNewPrivileges && !permissions.noNewPrivileges) throw cannot('set no_new_privs on this machine');
  if (context.seccomp?.type === 'localhost') throw cannot('apply seccomp profiles');
  if (context.apparmor?.type === 'localhost') throw cannot('apply AppArmor profiles');
  if ((context.capabilities?.add ?? []).length > 0) throw cannot('add capabilities');
  // A container can already access all devices of the machine, but only at their paths on the machine.
  if (devices.some((device) => device.containerPath !== device.hostPath)) throw cannot('rename devices');
}

interface User extends Account {
  readonly groups: readonly number[];
}

/** The user of a container; undefined when it is the user of the runtime. */
async function userOf(input: PlanInput): Promise<User | undefined> {
  const { securityContext: context = {} } = input.config;
  const [imageUser = '', imageGroup] = (input.image.user ?? '').split(':');
  const name = context.runAsUser?.toString() ?? context.runAsUsername ?? imageUser;
  const group = context.runAsGroup?.toString() ?? (name === imageUser ? imageGroup : undefined);
  const supplemental = [
    ...(context.supplementalGroups ?? []),
    ...(input.sandbox.securityContext?.supplementalGroups ?? []),
  ];
  if (name === '' && group === undefined && supplemental.length === 0) return undefined;
  const own = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };
  const account = await findAccount(input.imageRoot, name === '' ? String(own.uid) : name, group);
  const groups = [...new Set(supplemental)];
  if (input.permissions.users) return { ...account, groups };
  const ownGroups = new Set([own.gid, ...(process.getgroups?.() ?? [])]);
  if (account.uid === own.uid && ownGroups.has(account.gid) && groups.every((id) => ownGroups.has(id)))
    return undefined;
  throw new RuntimeError(
    'Unsupported',
    `the process runtime cannot become user ${account.uid} on this machine: it is not root`,
  );
}

async function mountsOf(
  mounts: readonly Mount[],
  imageRoot: string,
  permissions: Permissions,
): Promise<LaunchPlan['mounts']> {
  const plan = [];
  for (const mount of mounts) {
    const { hostPath, containerPath, readonly = false, exact = false, propagation = 'private' } = mount;
    if (!hostPath.startsWith('/') || !containerPath.startsWith('/')) {
      throw new RuntimeError('InvalidArgument', `mount paths must be absolute: "${hostPath}" at "${containerPath}"`);
    }
    passable(hostPath, /\0/, 'mount path');
    passable(containerPath, /\0/, 'mount path');
    const source = await stat(hostPath).catch(() => undefined);
    if (source === undefined) throw new RuntimeError('InvalidArgument', `mount source does not exist: "${hostPath}"`);
    if (propagation === 'bidirectional')
      throw new RuntimeError('Unsupported', 'the process runtime cannot propagate mounts to the machine');
    const target = imageRoot === '/' ? posix.normalize(containerPath) : await resolveInside(imageRoot, containerPath);
    if (imageRoot === '/' && target === posix.normalize(hostPath) && !readonly) continue; // already present
    if (!permissions.mounts) {
      throw new RuntimeError(
        'Unsupported',
        `the process runtime cannot mount "${hostPath}" at "${containerPath}": it may not mount on this machine`,
      );
    }
    plan.push({ source: hostPath, target, readonly, file: !source.isDirectory(), exact });
  }
  return plan;
}

/** The plan with the variable `TERM`, for a command with a terminal. */
export function withTerminalVariable(plan: LaunchPlan): LaunchPlan {
  const [name, value] = terminalVariable;
  return plan.env.some((entry) => entry.startsWith(`${name}=`))
    ? plan
    : { ...plan, env: [...plan.env, `${name}=${value}`] };
}

/** The variable `PATH` of a plan. */
export function searchPathOf(plan: LaunchPlan): string {
  return plan.env.find((entry) => entry.startsWith('PATH='))?.slice('PATH='.length) ?? toolPath;
}

/**
 * Absolute path of a program in the container. A name without a slash is searched in `PATH`; one with a slash is
 * relative to the working directory.
 *
 * @throws RuntimeError `StartFailed` when there is no such program or it is not executable
 */
export async function findProgram(root: string, name: string, searchPath: string, workingDir: string): Promise<string> {
  if (name === '') throw new RuntimeError('StartFailed', 'the command is empty');
  const candidates = name.includes('/')
    ? [posix.resolve(workingDir, name)]
    : searchPath.split(':').map((folder) => posix.resolve(workingDir, folder || '.', name));
  let found = false;
  for (const candidate of candidates) {
    // If the root is that of the machine, links are resolved by the kernel: /proc/self differs for each process.
    const real = root === '/' ? candidate : join(root, await resolveInside(root, candidate));
    const file = await stat(real).catch(() => undefined);
    if (file === undefined || file.isDirectory()) continue;
    found = true;
    if ((file.mode & 0o111) !== 0) return candidate;
  }
  if (found) throw new RuntimeError('StartFailed', `"${name}" is not executable`);
  throw new RuntimeError('StartFailed', name.includes('/') ? `no such file: "${name}"` : `no "${name}" in PATH`);
}

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
