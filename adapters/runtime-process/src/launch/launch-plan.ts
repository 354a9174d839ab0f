import { stat } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join, posix } from 'node:path';
import { toolPath } from '@keelson/container-host';
import {
  type Account,
  commandOf,
  environmentOf,
  findAccount,
  passable,
  resolveInside,
  signalNumber,
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
