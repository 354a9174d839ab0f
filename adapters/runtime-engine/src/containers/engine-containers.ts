import { isAbsolute, join, normalize } from 'node:path';
import {
  type ContainerConfig,
  type ContainerId,
  isRuntimeError,
  type LinuxResources,
  RuntimeError,
  type SandboxId,
  type StopRequest,
} from '@keelson/container-runtime';
import { cgroupParentOf } from '../model/cgroup-parent.ts';
import { containerBody } from '../model/container-body.ts';
import { containerName } from '../model/names.ts';
import { type ContainerRecord, labelsOf, type SandboxRecord } from '../model/records.ts';
import { hostResources, ociResources } from '../model/resources.ts';
import type { ContainerReader } from './container-reader.ts';
import type { ContainerWaits } from './container-waits.ts';
import type { EngineContext } from './engine-context.ts';

/** Longest wait for the exit of a container after SIGKILL. */
const killLimitMs = 60_000;
const removalTries = 8;
const removalPauseMs = 50;

/** Creates, starts, stops, updates and removes containers. */
export class EngineContainers {
  readonly #context: EngineContext;
  readonly #reader: ContainerReader;
  readonly #waits: ContainerWaits;
  /**
   * Containers that this process is starting. A second start is rejected, because the engine would start an exited
   * container again.
   */
  readonly #starting = new Set<ContainerId>();

  constructor(context: EngineContext, reader: ContainerReader, waits: ContainerWaits) {
    this.#context = context;
    this.#reader = reader;
    this.#waits = waits;
  }

  /** Creates a container in a sandbox, which must be ready. */
  async create(
    sandboxId: SandboxId,
    sandbox: SandboxRecord,
    config: ContainerConfig,
    imageUser: string | undefined,
    signal?: AbortSignal,
  ): Promise<ContainerId> {
    const { http, link, owner, clock, tracker } = this.#context;
    const { metadata, image, labels, annotations, mounts, resources, stdin, stdinOnce, tty, stopSignal } = config;
    const logPath = logPathOf(sandbox.config.logDirectory, config.logPath);
    const record: ContainerRecord = {
      ...{ kind: 'container', createdAt: clock.now(), sequence: this.#context.nextSequence(), sandboxId },
      config: {
        metadata,
        image,
        ...defined({ labels, annotations, mounts, resources, stdin, stdinOnce, tty, stopSignal }),
      },
      ...(logPath !== undefined && { logPath }),
    };
    const body = await containerBody({
      ...{ flavour: link.engine.flavour, config, sandboxId, imageUser, labels: labelsOf(owner, record) },
      namespaces: config.securityContext?.namespaces ?? sandbox.namespaces,
      hostname: sandbox.config.hostname,
      cgroupParent: cgroupParentOf(link.engine.info.CgroupDriver, sandbox.config.cgroupParent),
    });
    const query = { name: containerName(sandbox.config.metadata, sandboxId, metadata) };
    const { body: made } = await http.json<{ Id: string }>('POST', '/containers/create', { query, body, signal });
    tracker.container(made.Id, sandboxId, 'created');
    return made.Id;
  }

  async start(id: ContainerId, signal?: AbortSignal): Promise<void> {
    const { record, details, state } = await this.#reader.find(id, signal);
    if (state !== 'created' || this.#starting.has(id))
      throw new RuntimeError('InvalidState', `container "${id}" is ${state === 'created' ? 'being started' : state}`);
    this.#starting.add(id);
    try {
      const { status } = await this.#context.http.json('POST', `/containers/${id}/start`, { signal });
      if (status === 304) throw new RuntimeError('InvalidState', `container "${id}" has already been started`);
    } catch (error) {
      throw this.#startFailure(id, record, error);
    } finally {
      this.#starting.delete(id);
    }
    this.#context.tracker.container(id, record.sandboxId, 'running');
    if (record.logPath === undefined) return;
    const source = details.LogPath || (await this.#reader.findIfPresent(id, signal))?.details.LogPath;
    if (source) this.#context.logs.follow(id, source, record.logPath);
  }

  /** Stores the failure, because the engine continues to report the container as created. */
  #startFailure(id: ContainerId, { sandboxId }: ContainerRecord, error: unknown): unknown {
    if (!isRuntimeError(error) || !['Internal', 'InvalidArgument', 'NotFound', 'ImageNotFound'].includes(error.code))
      return error;
    if (error.code === 'NotFound' && /no such container|no container with/i.test(error.message)) return error;
    const { records, clock, tracker } = this.#context;
    records.change(id, { startError: { message: error.message, at: clock.now() } });
    tracker.container(id, sandboxId, 'ended');
    return new RuntimeError('StartFailed', error.message, { cause: error });
  }

  async stop(id: ContainerId, { gracePeriodMs }: StopRequest, signal?: AbortSignal): Promise<void> {
    const found = await this.#reader.findIfPresent(id, signal);
    if (found?.state !== 'running') return;
    const wanted = found.record.config.stopSignal ?? found.details.Config.StopSignal ?? '';
    if (gracePeriodMs > 0) {
      await this.#signal(id, wanted === '' ? 'SIGTERM' : wanted, signal);
      if (await this.#hasEnded(id, gracePeriodMs, signal)) return;
    }
    await this.kill(id, signal);
  }

  /** Kills the container; resolves when it has stopped. @throws `DeadlineExceeded` when it still runs */
  async kill(id: ContainerId, signal?: AbortSignal): Promise<void> {
    await this.#signal(id, 'SIGKILL', signal);
    if (await this.#hasEnded(id, killLimitMs, signal)) return;
    throw new RuntimeError('DeadlineExceeded', `container "${id}" is still running after SIGKILL`);
  }

  async remove(id: ContainerId, signal?: AbortSignal): Promise<void> {
    const found = await this.#reader.findIfPresent(id, signal);
    // The engine deletes its log with the container, so the container must end and its log be copied first.
    if (found?.state === 'running' && found.record.logPath !== undefined) await this.kill(id, signal);
    await this.delete(id, signal);
    this.#context.logs.forget(id);
    this.#reader.forget(id);
    if (found === undefined) return;
    if (found.state === 'running') this.#context.tracker.container(id, found.record.sandboxId, 'ended');
    this.#context.tracker.container(id, found.record.sandboxId, 'removed');
  }

  /** Deletes the container at the engine, with retries; concurrent calls are allowed. */
  async delete(id: ContainerId, signal?: AbortSignal): Promise<void> {
    const { http, clock } = this.#context;
    for (let tries = 1; ; tries += 1) {
      try {
        await http.json('DELETE', `/containers/${encodeURIComponent(id)}`, { query: { force: true, v: true }, signal });
        return;
      } catch (error) {
        if (isRuntimeError(error, 'NotFound')) return;
        const again = isRuntimeError(error, 'Internal') || isRuntimeError(error, 'InvalidState');
        if (!again || tries === removalTries || signal?.aborted) throw error;
        await new Promise<void>((resolve) => clock.after(removalPauseMs * tries, resolve));
      }
    }
  }

  async update(id: ContainerId, resources: LinuxResources, signal?: AbortSignal): Promise<void> {
    const { state } = await this.#reader.find(id, signal);
    if (state !== 'created' && state !== 'running')
      throw new RuntimeError('InvalidState', `container "${id}" is ${state}`);
    const { http, link, records } = this.#context;
    const { oomScoreAdjust: _, ...changed } = resources;
    if (Object.keys(changed).length === 0) return;
    if (link.engine.flavour === 'podman') {
      await http.json('POST', `/libpod/containers/${id}/update`, { body: ociResources(changed), signal });
    } else {
      const { PidsLimit, ...rest } = hostResources(changed) as { PidsLimit?: number };
      const body = changed.pidsLimit === undefined ? rest : { ...rest, PidsLimit };
      await http.json('POST', `/containers/${id}/update`, { body, signal });
    }
    records.change(id, { resources: { ...records.get(id).resources, ...changed } });
  }

  /** Sends a signal; without effect when the container does not run. */
  async #signal(id: ContainerId, name: string, signal: AbortSignal | undefined): Promise<void> {
    try {
      await this.#context.http.json('POST', `/containers/${id}/kill`, { query: { signal: name }, signal });
    } catch (error) {
      if (!isRuntimeError(error, 'NotFound') && !isRuntimeError(error, 'InvalidState')) throw error;
    }
  }

  #hasEnded(id: ContainerId, limitMs: number, signal: AbortSignal | undefined): Promise<boolean> {
    return this.#waits.until(
      id,
      async () => (await this.#reader.findIfPresent(id, signal))?.state !== 'running',
      limitMs,
      signal,
    );
  }
}

/** Returns the object without undefined fields. */
function defined<T extends object>(fields: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as never;
}

function logPathOf(directory: string | undefined, path: string | undefined): string | undefined {
  if (directory === undefined || path === undefined || path === '') return undefined;
  const full = normalize(join(directory, path));
  if (!isAbsolute(path) && full.startsWith(`${normalize(directory).replace(/\/$/, '')}/`)) return full;
  throw new RuntimeError('InvalidArgument', `log path is outside of the log directory: "${path}"`);
}
