import { posix } from 'node:path';
import { type Account, commandOf, environmentOf, findAccount } from '@keelson/container-monitor';
import {
  type ContainerConfig,
  type ImageConfig,
  type PodSandboxConfig,
  RuntimeError,
} from '@keelson/container-runtime';
import { capabilitiesOf } from './capabilities.ts';
import type { Machine } from './machine.ts';
import type { OciProcess } from './oci-spec.ts';

const defaultPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

export interface ProcessInput {
  readonly config: ContainerConfig;
  readonly sandbox: PodSandboxConfig;
  readonly image: ImageConfig;
  /** Directory of the files of the image. */
  readonly imageRoot: string;
  readonly machine: Machine;
  /** Host name of the container. */
  readonly hostname: string;
}

/**
 * The process of a container.
 *
 * @throws RuntimeError `InvalidArgument`, `Unsupported`, `StartFailed` (unknown user or group)
 */
export async function processOf(input: ProcessInput): Promise<OciProcess> {
  const { config, sandbox, image, machine } = input;
  const { securityContext: context = {}, tty = false, resources = {} } = config;
  const account = await accountOf(input);
  const env = environmentOf(config, image, [
    ['PATH', defaultPath],
    ['HOSTNAME', input.hostname],
    ['HOME', account.home],
    ...(tty ? ([['TERM', 'xterm']] as const) : []),
  ]);
  const cwd = config.workingDir || image.workingDir || '/';
  if (!cwd.startsWith('/')) throw new RuntimeError('InvalidArgument', `working directory is not absolute: "${cwd}"`);
  const groups = [...(context.supplementalGroups ?? []), ...(sandbox.securityContext?.supplementalGroups ?? [])];
  const { oomScoreAdjust } = resources;
  return {
    terminal: tty,
    user: { uid: account.uid, gid: account.gid, additionalGids: [...new Set(groups)] },
    args: commandOf(config, image),
    env: [...env].map(([name, value]) => `${name}=${value}`),
    cwd: posix.normalize(cwd),
    capabilities: capabilitiesOf(context, machine.capabilities),
    noNewPrivileges: context.noNewPrivileges ?? false,
    // Without a privilege, the out-of-memory score adjustment has a lower limit. The limit is used then, so that the
    // container can start.
    ...(oomScoreAdjust !== undefined && {
      oomScoreAdj: Math.max(Math.trunc(oomScoreAdjust), machine.minOomScoreAdjust),
    }),
    ...apparmorOf(context.apparmor, context.privileged ?? false, machine),
    ...selinuxOf(context.selinux, machine),
  };
}

async function accountOf({ config, image, imageRoot }: ProcessInput): Promise<Account> {
  const { securityContext: context = {} } = config;
  const [imageUser = '', imageGroup] = (image.user ?? '').split(':');
  const name = context.runAsUser?.toString() ?? context.runAsUsername ?? imageUser;
  const group = context.runAsGroup?.toString() ?? (name === imageUser ? imageGroup : undefined);
  return findAccount(imageRoot, name === '' ? '0' : name, group);
}

type Context = NonNullable<ContainerConfig['securityContext']>;

function apparmorOf(profile: Context['apparmor'], privileged: boolean, machine: Machine): { apparmorProfile?: string } {
  if (profile?.type !== 'localhost' || privileged) return {};
  if (!machine.apparmor) throw new RuntimeError('Unsupported', 'this machine has no AppArmor');
  return { apparmorProfile: profile.localhostRef ?? '' };
}

/** Labels are ignored when SELinux is disabled, because a pod may run on any node. */
function selinuxOf(label: Context['selinux'], machine: Machine): { selinuxLabel?: string } {
  if (label === undefined || !machine.selinux) return {};
  const { user = 'system_u', role = 'system_r', type = 'container_t', level = 's0' } = label;
  return { selinuxLabel: `${user}:${role}:${type}:${level}` };
}
