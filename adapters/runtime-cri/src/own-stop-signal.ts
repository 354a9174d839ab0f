import { readFile } from 'node:fs/promises';
import { constants } from 'node:os';
import type { ContainerId } from '@keelson/container-runtime';
import { Calls } from './api/calls.ts';
import type { CriConnection } from './connection/cri-connection.ts';
import { fromContainerStatus } from './convert/from-cri.ts';
import { noteOf } from './convert/to-cri.ts';

/**
 * CRI has no stop signal but that of the image. Where the daemon is on this machine the one of the configuration is
 * sent from here, to the container's first process.
 *
 * @returns whether there was one and it was sent
 */
export async function sendOwnStopSignal(
  connection: CriConnection,
  containerId: ContainerId,
  signal?: AbortSignal,
): Promise<boolean> {
  // Whatever is wrong, the stop that follows says it better.
  const reply = await connection
    .call(Calls.containerStatus, { containerId, verbose: true }, signal)
    .catch(() => undefined);
  if (reply?.status === undefined) return false;
  const { stopSignal } = noteOf(reply.status.annotations);
  const { pid } = fromContainerStatus(reply.status, reply.info);
  return stopSignal !== undefined && pid !== undefined && sendSignal(pid, containerId, stopSignal);
}

/**
 * The process must be in the cgroup of the container, which has the container's id in its name with every daemon, so
 * that a number that was given to another process harms nobody.
 */
async function sendSignal(pid: number, containerId: ContainerId, name: string): Promise<boolean> {
  const number = signalNumber(name);
  if (number === undefined) return false;
  try {
    const cgroups = await readFile(`/proc/${pid}/cgroup`, 'utf8');
    return cgroups.includes(containerId) && process.kill(pid, number);
  } catch {
    // It has ended, or this process may not.
    return false;
  }
}

function signalNumber(name: string): number | undefined {
  if (/^\d+$/.test(name)) return Number(name);
  const full = name.startsWith('SIG') ? name : `SIG${name}`;
  return Object.hasOwn(constants.signals, full) ? constants.signals[full as keyof typeof constants.signals] : undefined;
}
