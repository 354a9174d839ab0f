import { type ContainerSecurityContext, RuntimeError, type SecurityProfile } from '@keelson/container-runtime';
import type { SecurityProfileMessage } from '../../api/common.ts';
import type { LinuxContainerSecurityContext } from '../../api/container.ts';
import { fromNamespaces } from '../../convert/security.ts';
import type { Fields } from '../../wire/message.ts';

const profileTypes = ['runtimeDefault', 'unconfined', 'localhost'] as const;

/**
 * The protocol has no difference between an empty list of paths and none: the engine protects its own paths then.
 * @throws `InvalidArgument`
 */
export function fromSecurityContext(message: Fields<typeof LinuxContainerSecurityContext>): ContainerSecurityContext {
  const { capabilities, namespaceOptions, runAsUser, runAsUsername, runAsGroup, supplementalGroups, selinuxOptions } =
    message;
  const seccomp = profileOf(message.seccomp, message.seccompProfilePath);
  const apparmor = profileOf(message.apparmor, message.apparmorProfile);
  refuseLoneGroup(runAsUser !== undefined || Boolean(runAsUsername), runAsGroup);
  const { maskedPaths = [], readonlyPaths = [] } = message;
  const { addCapabilities = [], dropCapabilities = [] } = capabilities ?? {};
  return {
    ...(message.privileged && { privileged: true }),
    ...(runAsUser && { runAsUser: runAsUser.value ?? 0 }),
    ...(runAsUsername && { runAsUsername }),
    ...(runAsGroup && { runAsGroup: runAsGroup.value ?? 0 }),
    ...(supplementalGroups && { supplementalGroups }),
    ...(message.readonlyRootfs && { readonlyRootfs: true }),
    ...(message.noNewPrivs && { noNewPrivileges: true }),
    ...(capabilities && { capabilities: { add: addCapabilities, drop: dropCapabilities } }),
    ...(namespaceOptions && { namespaces: fromNamespaces(namespaceOptions) }),
    ...(seccomp && { seccomp }),
    ...(apparmor && { apparmor }),
    ...(maskedPaths.length > 0 && { maskedPaths: absolute(maskedPaths) }),
    ...(readonlyPaths.length > 0 && { readonlyPaths: absolute(readonlyPaths) }),
    ...(selinuxOptions && { selinux: present(selinuxOptions) }),
  };
}

/** The protocol requires it: the user that a group would belong to is not known here. @throws `InvalidArgument` */
export function refuseLoneGroup(hasUser: boolean, group: { readonly value?: number | undefined } | undefined): void {
  if (group !== undefined && !hasUser)
    throw new RuntimeError('InvalidArgument', `user group "${group.value ?? 0}" is specified without user`);
}

function absolute(paths: readonly string[]): readonly string[] {
  const relative = paths.find((path) => !path.startsWith('/'));
  if (relative !== undefined)
    throw new RuntimeError('InvalidArgument', `a protected path must be absolute, not "${relative}"`);
  return paths;
}

/** A profile in the protocol's words, else in those it had before. */
function profileOf(
  message: Fields<typeof SecurityProfileMessage> | undefined,
  path: string | undefined,
): SecurityProfile | undefined {
  if (message !== undefined) {
    const type = profileTypes[message.profileType ?? 0];
    if (type === undefined)
      throw new RuntimeError('InvalidArgument', `unknown type of a security profile: ${message.profileType}`);
    return { type, ...(message.localhostRef && { localhostRef: message.localhostRef }) };
  }
  if (path === undefined || path === '') return undefined;
  if (path === 'unconfined') return { type: 'unconfined' };
  if (path === 'runtime/default' || path === 'docker/default') return { type: 'runtimeDefault' };
  const localhostRef = /^localhost\/(.+)$/.exec(path)?.[1];
  if (localhostRef === undefined) throw new RuntimeError('InvalidArgument', `unknown security profile: "${path}"`);
  return { type: 'localhost', localhostRef };
}

type Selinux = NonNullable<ContainerSecurityContext['selinux']>;

function present(fields: { readonly [K in keyof Selinux]: Selinux[K] | undefined }): Selinux {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== ''));
}
