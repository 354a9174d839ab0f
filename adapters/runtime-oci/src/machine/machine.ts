import { readFileSync } from 'node:fs';
import { access } from 'node:fs/promises';
import { join } from 'node:path';
import { terminalsWork } from '@keelson/container-monitor';
import { ownCapabilities } from '../bundle/capabilities.ts';

/** What this machine is like, as far as bundles depend on it. */
export interface Machine {
  /** Capabilities that can be handed down, without prefix. */
  readonly capabilities: readonly string[];
  /** The lowest value that may be given to others, where the privilege to go below it is missing. */
  readonly minOomScoreAdjust: number;
  readonly apparmor: boolean;
  readonly selinux: boolean;
  /** Memory and swap can be limited together. */
  readonly swapLimits: boolean;
  /** All controllers are on version 2, so containers can see their own part of the tree alone. */
  readonly unifiedCgroups: boolean;
  /** It has the programs that give a process a terminal. */
  readonly terminals: boolean;
}

/** `cgroupMountpoint`: where the hierarchies are mounted. */
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

/** Controllers of a version 2 hierarchy beside ones of version 1; some binaries refuse to work then. */
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
