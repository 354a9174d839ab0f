import { findTool, overlayWorks, tryTool } from '@keelson/container-host';
import { terminalsWork } from '@keelson/container-monitor';

/** Operations that this process may perform on this machine. They are determined by attempts, not from its user ID. */
export interface Permissions {
  readonly root: boolean;
  /** Whether this process may create mount namespaces and mount in them. */
  readonly mounts: boolean;
  readonly overlay: boolean;
  readonly chroot: boolean;
  /** Whether this process may run programs as another user. */
  readonly users: boolean;
  readonly noNewPrivileges: boolean;
  /** Whether containers and commands can have terminals on this machine. */
  readonly terminals: boolean;
}

/** Determines the permissions. `scratch` is a directory on the file system of the containers. */
export async function findPermissions(scratch: string): Promise<Permissions> {
  const root = process.getuid?.() === 0;
  const has = (...tools: string[]) => tools.every((name) => findTool(name) !== undefined);
  const mounts =
    root &&
    has('unshare', 'mount', 'nsenter') &&
    (await tryTool('unshare', ['--mount', 'mount', '--bind', '/', '/'])) === undefined;
  const chroot = root && has('chroot') && (await tryTool('chroot', ['/', 'true'])) === undefined;
  const users =
    root &&
    has('setpriv') &&
    (await tryTool('setpriv', ['--reuid=65534', '--regid=65534', '--clear-groups', 'true'])) === undefined;
  const noNewPrivileges = has('setpriv') && (await tryTool('setpriv', ['--no-new-privs', 'true'])) === undefined;
  const terminals = await terminalsWork();
  return { root, mounts, chroot, users, noNewPrivileges, overlay: mounts && (await overlayWorks(scratch)), terminals };
}
