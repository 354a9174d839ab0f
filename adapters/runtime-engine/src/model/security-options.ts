import { type ContainerSecurityContext, RuntimeError } from '@keelson/container-runtime';
import type { Flavour } from '../api/negotiate.ts';

/** Security settings in the words of the engine. @throws `InvalidArgument` when a profile cannot be read */
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
  // Docker has fields of their own for both lists. Podman adds these to its own list, and has no way to change which
  // paths are read-only.
  if (flavour === 'podman' && security.maskedPaths !== undefined)
    options.push(`mask=${security.maskedPaths.join(':')}`);
  for (const part of ['user', 'role', 'type', 'level'] as const) {
    if (selinux[part] !== undefined && selinux[part] !== '') options.push(`label=${part}:${selinux[part]}`);
  }
  return options;
}

/** Docker wants the profile itself, Podman opens the file. */
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
