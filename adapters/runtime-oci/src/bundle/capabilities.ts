import { readFileSync } from 'node:fs';
import { type ContainerSecurityContext, RuntimeError } from '@keelson/container-runtime';
import type { OciCapabilities } from './oci-spec.ts';

/** Names of the capabilities; the index is the number in the headers of the kernel. */
const names = [
  ...[
    'CHOWN',
    'DAC_OVERRIDE',
    'DAC_READ_SEARCH',
    'FOWNER',
    'FSETID',
    'KILL',
    'SETGID',
    'SETUID',
    'SETPCAP',
    'LINUX_IMMUTABLE',
  ],
  ...['NET_BIND_SERVICE', 'NET_BROADCAST', 'NET_ADMIN', 'NET_RAW', 'IPC_LOCK', 'IPC_OWNER', 'SYS_MODULE', 'SYS_RAWIO'],
  ...[
    'SYS_CHROOT',
    'SYS_PTRACE',
    'SYS_PACCT',
    'SYS_ADMIN',
    'SYS_BOOT',
    'SYS_NICE',
    'SYS_RESOURCE',
    'SYS_TIME',
    'SYS_TTY_CONFIG',
  ],
  ...['MKNOD', 'LEASE', 'AUDIT_WRITE', 'AUDIT_CONTROL', 'SETFCAP', 'MAC_OVERRIDE', 'MAC_ADMIN', 'SYSLOG', 'WAKE_ALARM'],
  ...['BLOCK_SUSPEND', 'AUDIT_READ', 'PERFMON', 'BPF', 'CHECKPOINT_RESTORE'],
];

/** Capabilities of containers by default. They are sufficient for a package manager, not to change the machine. */
const defaults = [
  ...['CHOWN', 'DAC_OVERRIDE', 'FSETID', 'FOWNER', 'MKNOD', 'NET_RAW', 'SETGID', 'SETUID', 'SETFCAP', 'SETPCAP'],
  ...['NET_BIND_SERVICE', 'SYS_CHROOT', 'KILL', 'AUDIT_WRITE'],
];

/** Capabilities that this process can grant to containers: its bounding set. */
export function ownCapabilities(status: string = readFileSync('/proc/self/status', 'latin1')): string[] {
  const mask = BigInt(`0x${/^CapBnd:\s+([0-9a-f]+)$/m.exec(status)?.[1] ?? '0'}`);
  return names.filter((_, number) => (mask & (1n << BigInt(number))) !== 0n);
}

/** @throws RuntimeError `InvalidArgument` for an unknown name, `Unsupported` for a capability that the runtime lacks */
export function capabilitiesOf(context: ContainerSecurityContext, own: readonly string[]): OciCapabilities {
  const selected = new Set(context.privileged ? own : defaults);
  const { add = [], drop = [] } = context.capabilities ?? {};
  for (const name of drop.map(withoutPrefix)) {
    if (name === 'ALL') selected.clear();
    else selected.delete(checkedName(name));
  }
  for (const name of add.map(withoutPrefix)) {
    if (name === 'ALL') for (const each of own) selected.add(each);
    else if (own.includes(checkedName(name))) selected.add(name);
    else
      throw new RuntimeError(
        'Unsupported',
        `capability ${name} cannot be added: the runtime does not have it on this machine`,
      );
  }
  for (const name of drop.map(withoutPrefix)) selected.delete(name);
  const set = [...selected].filter((name) => own.includes(name)).map((name) => `CAP_${name}`);
  return { bounding: set, effective: set, permitted: set };
}

const withoutPrefix = (name: string) => name.toUpperCase().replace(/^CAP_/, '');

function checkedName(name: string): string {
  if (!names.includes(name)) throw new RuntimeError('InvalidArgument', `unknown capability "${name}"`);
  return name;
}
