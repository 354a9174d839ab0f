import { stat } from 'node:fs/promises';
import { hostname } from 'node:os';
import { posix } from 'node:path';
import {
  type Account,
  commandOf,
  environmentOf,
  findAccount,
  passable,
  resolveInside,
  signalNumber,
  toolPath,
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

/** What kubelet's runtimes give programs with a terminal. */
const terminalVariable = ['TERM', 'xterm'] as const;

const defaultPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** What a plan is made of. */
export interface PlanInput {
  readonly id: string;
  readonly config: ContainerConfig;
  readonly sandbox: PodSandboxConfig;
  readonly permissions: Permissions;
  readonly image: ImageConfig;
  /** Where the image's files are now: `/` for `host`. */
  readonly imageRoot: string;
  /** Where they will be when the container runs, and how they get there; absent for `host`. */
  readonly root?: { readonly path: string; readonly overlayLower?: string };
  readonly cgroups: readonly string[];
}

/**
 * How the container will run. What this machine cannot do is refused here, not left out.
 * @throws `Unsupported`, `InvalidArgument`, `StartFailed` (unknown user).
 */
export async function makePlan(input: PlanInput): Promise<LaunchPlan> {
  const { config, sandbox, permissions, image, imageRoot, root } = input;
  refuse(config, permissions);
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
    mounts,
    mountNamespace: mounts.length > 0 || (root !== undefined && permissions.mounts),
    ...(user !== undefined && { uid: user.uid, gid: user.gid, groups: user.groups }),
    noNewPrivileges: config.securityContext?.noNewPrivileges ?? false,
    cgroups: input.cgroups,
    ...(oomScoreAdjust !== undefined && { oomScoreAdjust }),
    stopSignal: String(signalNumber(config.stopSignal || image.stopSignal || 'SIGTERM')),
  };
}

function refuse(config: ContainerConfig, permissions: Permissions): void {
  const cannot = (what: string) => new RuntimeError('Unsupported', `the process runtime cannot ${what}`);
  const { securityContext: context = {}, tty, devices = [] } = config;
  if (tty && !permissions.terminals)
    throw cannot('give a container a terminal without the programs script, stty and tty');
  if (context.privileged && !permissions.root) throw cannot('run privileged containers without being root');
  if (context.readonlyRootfs) throw cannot('make the root file system read-only');
  if (context.noNewPrivileges && !permissions.noNewPrivileges) throw cannot('withhold new privileges on this machine');
  if (context.seccomp?.type === 'localhost') throw cannot('apply seccomp profiles');
  if (context.apparmor?.type === 'localhost') throw cannot('apply AppArmor profiles');
  if ((context.capabilities?.add ?? []).length > 0) throw cannot('add capabilities');
  // Devices of the machine are all there already, under their own names.
  if (devices.some((device) => device.containerPath !== device.hostPath)) throw cannot('rename devices');
}

interface User extends Account {
  readonly groups: readonly number[];
}

/** Undefined: the runtime's own user is what is wanted. */
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
  const mine = new Set([own.gid, ...(process.getgroups?.() ?? [])]);
  if (account.uid === own.uid && mine.has(account.gid) && groups.every((id) => mine.has(id))) return undefined;
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
    if (imageRoot === '/' && target === posix.normalize(hostPath) && !readonly) continue; // it is there already
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

/** The same plan for a command with a terminal. */
export function withTerminalVariable(plan: LaunchPlan): LaunchPlan {
  const [name, value] = terminalVariable;
  return plan.env.some((entry) => entry.startsWith(`${name}=`))
    ? plan
    : { ...plan, env: [...plan.env, `${name}=${value}`] };
}

/** Search path for a plan's commands. */
export function searchPathOf(plan: LaunchPlan): string {
  return plan.env.find((entry) => entry.startsWith('PATH='))?.slice('PATH='.length) ?? toolPath;
}
