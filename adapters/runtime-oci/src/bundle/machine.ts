import { readFileSync } from 'node:fs';
import { access } from 'node:fs/promises';
import { join } from 'node:path';
import { terminalsWork } from '@keelson/container-monitor';
import { ownCapabilities } from './capabilities.ts';

/** The properties of this machine that determine the content of bundles. */
export interface Machine {
  /** Capabilities that can be granted to containers, without the prefix `CAP_`. */
  readonly capabilities: readonly string[];
  /** The lowest out-of-memory score adjustment that the runtime may set for other processes. */
  readonly minOomScoreAdjust: number;
  readonly apparmor: boolean;
  readonly selinux: boolean;
  /** Whether memory and swap can be limited together. */
  readonly swapLimits: boolean;
  /** All controllers are on version 2, so that containers can have a cgroup namespace. */
  readonly unifiedCgroups: boolean;
  /** The programs that provide terminals are installed. */
  readonly terminals: boolean;
}

/** Reads the properties of this machine. `cgroupMountpoint` is the mount point of the cgroup hierarchies. */
export async function readMachine(cgroupMountpoint: string): Promise<Machine> {
  const capabilities = ownCapabilities();
  const exists = (path: string) =>
    access(path).then(
      () => true,
      () => false,
    );
  const minOomScoreAdjust = capabilities.includes('SYS_RESOURCE')
    ? -1000
    : Number(readFileSync('/proc/self/oom_score_adj', 'latin1'));
  const apparmor = readText('/sys/module/apparmor/parameters/enabled').startsWith('Y');
  const unifiedCgroups = await exists(join(cgroupMountpoint, 'cgroup.controllers'));
  return {
    capabilities,
    minOomScoreAdjust,
    apparmor: apparmor && (await exists('/sys/kernel/security/apparmor')),
    selinux: await exists('/sys/fs/selinux/enforce'),
    swapLimits: unifiedCgroups || (await exists(join(cgroupMountpoint, 'memory/memory.memsw.limit_in_bytes'))),
    unifiedCgroups,
    terminals: await terminalsWork(),
  };
}

/** Cgroup controllers on version 2 when others are on version 1. Some OCI binaries do not support this mode. */
export function hybridControllers(cgroupMountpoint: string): string[] {
  if (readText(join(cgroupMountpoint, 'cgroup.controllers')) !== '') return [];
  return readText(join(cgroupMountpoint, 'unified/cgroup.controllers')).split(/\s+/).filter(Boolean);
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
