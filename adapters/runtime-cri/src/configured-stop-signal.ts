import { readFile } from 'node:fs/promises';
import { constants } from 'node:os';
import type { ContainerId } from '@keelson/container-runtime';
import { Calls } from './api/calls.ts';
import type { CriConnection } from './connection/cri-connection.ts';
import { fromContainerStatus } from './convert/from-cri.ts';
import { ownDataOf } from './convert/to-cri.ts';

/**
 * Sends the stop signal of the container's configuration to the container's first process. CRI itself only supports the
 * stop signal of the image. The daemon must run on this machine.
 *
 * @returns whether a stop signal is configured and was sent
 */
export async function sendConfiguredStopSignal(
  connection: CriConnection,
  containerId: ContainerId,
  signal?: AbortSignal,
): Promise<boolean> {
  // A failure is not reported here: the caller then calls StopContainer, which reports it.
  const reply = await connection
    .call(Calls.containerStatus, { containerId, verbose: true }, signal)
    .catch(() => undefined);
  if (reply?.status === undefined) return false;
  const { stopSignal } = ownDataOf(reply.status.annotations);
  const { pid } = fromContainerStatus(reply.status, reply.info);
  return stopSignal !== undefined && pid !== undefined && sendSignal(pid, containerId, stopSignal);
}

/**
 * Sends a signal if the process is in the cgroup of the container, whose name contains the id of the container. The
 * check protects other processes when the kernel has assigned the process id again.
 */
async function sendSignal(pid: number, containerId: ContainerId, name: string): Promise<boolean> {
  const number = signalNumber(name);
  if (number === undefined) return false;
  try {
    const cgroups = await readFile(`/proc/${pid}/cgroup`, 'utf8');
    return cgroups.includes(containerId) && process.kill(pid, number);
  } catch {
    // The process has ended, or this adapter lacks the permission to send it a signal.
    return false;
  }
}

function signalNumber(name: string): number | undefined {
  if (/^\d+$/.test(name)) return Number(name);
  const full = name.startsWith('SIG') ? name : `SIG${name}`;
  return Object.hasOwn(constants.signals, full) ? constants.signals[full as keyof typeof constants.signals] : undefined;
}
