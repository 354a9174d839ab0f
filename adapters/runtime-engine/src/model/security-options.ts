import { type ContainerSecurityContext, RuntimeError } from '@keelson/container-runtime';
import type { Flavour } from '../api/negotiate.ts';

/** Security settings as `SecurityOpt` of the engine. @throws `InvalidArgument` when a profile cannot be read */
export async function securityOptions(
  flavour: Flavour,
  security: ContainerSecurityContext,
  read: (path: string) => Promise<string>,
): Promise<string[]> {
  const { noNewPrivileges = false, seccomp, apparmor, selinux = {} } = security;
  const options = noNewPrivileges ? ['no-new-privileges'] : [];
  if (seccomp?.type === 'unconfined') options.push('seccomp=unconfined');
  if (seccomp?.type === 'localhost')
    options.push(`seccomp=${await seccompProfile(flavour, seccomp.localhostRef ?? '', read)}`);
  if (apparmor?.type === 'unconfined') options.push('apparmor=unconfined');
  if (apparmor?.type === 'localhost') options.push(`apparmor=${apparmor.localhostRef ?? ''}`);
  // Docker has separate fields for masked and read-only paths. Podman adds masked paths to its default list, and cannot
  // change the read-only paths.
  if (flavour === 'podman' && security.maskedPaths !== undefined)
    options.push(`mask=${security.maskedPaths.join(':')}`);
  for (const part of ['user', 'role', 'type', 'level'] as const) {
    if (selinux[part] !== undefined && selinux[part] !== '') options.push(`label=${part}:${selinux[part]}`);
  }
  return options;
}

/** Docker requires the profile itself, Podman its path. */
async function seccompProfile(
  flavour: Flavour,
  path: string,
  read: (path: string) => Promise<string>,
): Promise<string> {
  try {
    const text = await read(path);
    return flavour === 'docker' ? text : path;
  } catch (error) {
    throw new RuntimeError('InvalidArgument', `cannot read the seccomp profile ${path}`, { cause: error });
  }
}
