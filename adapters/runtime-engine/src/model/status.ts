import { constants } from 'node:os';
import {
  type Container,
  type ContainerState,
  type ContainerStatus,
  ExitReason,
  type PodSandbox,
  type SandboxState,
} from '@keelson/container-runtime';
import type { ContainerDetails } from '../api/documents.ts';
import type { StateRecord } from '../state/state-records.ts';
import type { ContainerRecord, SandboxRecord } from './records.ts';

/** Exit code of a container whose process was never executed. */
export const startErrorCode = 128;

const states: Readonly<Record<string, ContainerState>> = {
  ...{ created: 'created', configured: 'created', initialized: 'created' },
  // Podman reports `stopping` and `stopped` until its cleanup is complete: the first process has ended, but its child
  // processes may still run.
  ...{ running: 'running', paused: 'running', restarting: 'running', stopping: 'running', stopped: 'running' },
  ...{ exited: 'exited', removing: 'exited', dead: 'exited' },
};

/** Maps a state of the engine; a failed start makes a container exited. */
export function stateOf(engineState: string, kept: StateRecord): ContainerState {
  if (kept.startError !== undefined) return 'exited';
  return states[engineState] ?? 'unknown';
}

export function sandboxState(engineState: string): SandboxState {
  return stateOf(engineState, {}) === 'running' && engineState !== 'stopped' ? 'ready' : 'notReady';
}

export function sandboxOf(id: string, state: SandboxState, { createdAt, config }: SandboxRecord): PodSandbox {
  const { metadata, labels = {}, annotations = {} } = config;
  return { id, metadata, state, createdAt, labels, annotations };
}

export function containerOf(id: string, imageId: string, state: ContainerState, record: ContainerRecord): Container {
  const { metadata, image, labels = {}, annotations = {} } = record.config;
  return {
    id,
    sandboxId: record.sandboxId,
    metadata,
    image,
    imageId,
    state,
    createdAt: record.createdAt,
    labels,
    annotations,
  };
}

/** The complete status of a container; `state` is the state that the caller determined. */
export function statusOf(
  details: ContainerDetails,
  record: ContainerRecord,
  kept: StateRecord,
  state: ContainerState,
): ContainerStatus {
  const { Pid, StartedAt } = details.State;
  const startedAt = kept.startError === undefined ? timeOf(StartedAt) : undefined;
  return {
    ...containerOf(details.Id, details.Image, state, record),
    ...(startedAt !== undefined && { startedAt }),
    ...(state === 'exited' && endOf(details, kept, startedAt)),
    mounts: record.config.mounts ?? [],
    ...(record.logPath !== undefined && { logPath: record.logPath }),
    resources: { ...record.config.resources, ...kept.resources },
    ...(state === 'running' && Pid > 0 && { pid: Pid }),
  };
}

type End = Pick<ContainerStatus, 'finishedAt' | 'exitCode' | 'signal' | 'reason' | 'message'>;

function endOf({ State }: ContainerDetails, kept: StateRecord, startedAt: number | undefined): End {
  const { startError } = kept;
  if (startError !== undefined) {
    return {
      finishedAt: startError.at,
      exitCode: startErrorCode,
      reason: ExitReason.StartError,
      message: startError.message,
    };
  }
  const { ExitCode, FinishedAt, OOMKilled, Error: message = '' } = State;
  // The times of start and end come from different clocks of the kernel, so the end may appear to be earlier.
  const finishedAt = Math.max(timeOf(FinishedAt) ?? 0, startedAt ?? 0);
  const signal = signalOf(ExitCode);
  return {
    ...{ finishedAt, exitCode: ExitCode, reason: reasonOf(ExitCode, OOMKilled || kept.outOfMemory === true) },
    ...(signal !== undefined && { signal }),
    ...(message !== '' && { message }),
  };
}

function reasonOf(exitCode: number, outOfMemory: boolean): string {
  if (exitCode === 0) return ExitReason.Completed;
  return outOfMemory ? ExitReason.OutOfMemory : ExitReason.Error;
}

/** Derives the signal from the exit code, because engines do not report it separately. */
function signalOf(exitCode: number): string | undefined {
  const number = exitCode - 128;
  return Object.entries(constants.signals).find(([, value]) => value === number)?.[0];
}

/** Epoch milliseconds; undefined for the zero time of the engine. */
function timeOf(text: string): number | undefined {
  const time = Date.parse(text);
  return Number.isNaN(time) || time <= 0 ? undefined : time;
}
