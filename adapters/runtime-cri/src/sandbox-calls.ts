import { mkdir } from 'node:fs/promises';
import {
  matchesSandbox,
  type PodSandbox,
  type PodSandboxConfig,
  type PodSandboxStatus,
  RuntimeError,
  type SandboxFilter,
  type SandboxId,
} from '@keelson/container-runtime';
import type { Clock } from '@keelson/core/runtime';
import { Calls } from './api/calls.ts';
import { ListPodSandboxRequest, PodSandboxMessage, SandboxStateNumber } from './api/sandbox.ts';
import type { CriConnection } from './connection/cri-connection.ts';
import { fromSandbox, fromSandboxStatus, sandboxState } from './convert/from-cri.ts';
import { recallSandbox, type SandboxMessage, toSandboxMessage } from './convert/to-cri.ts';
import { ListCache } from './list-cache.ts';
import type { Machine } from './machine.ts';
import { ignoreNotFound, removeWithRetries } from './removal.ts';

const sandboxStateField = 3;

/** The methods of the runtime for sandboxes. */
export class SandboxCalls {
  readonly #connection: CriConnection;
  readonly #machine: Machine;
  readonly #clock: Clock;
  /** The latest pending stop of each sandbox; the promises never reject. */
  readonly #stopping = new Map<SandboxId, Promise<void>>();
  readonly #lists = new ListCache(sandboxStateField, (bytes) => fromSandbox(PodSandboxMessage.decode(bytes)));

  constructor(connection: CriConnection, machine: Machine, clock: Clock) {
    this.#connection = connection;
    this.#clock = clock;
    this.#machine = machine;
  }

  async run(config: PodSandboxConfig, signal?: AbortSignal): Promise<SandboxId> {
    if (this.#machine.local && config.logDirectory !== undefined) await mkdir(config.logDirectory, { recursive: true });
    const message = toSandboxMessage(config, this.#machine.unifiedCgroups);
    const { podSandboxId = '' } = await this.#connection.call(Calls.runPodSandbox, { config: message }, signal);
    return podSandboxId;
  }

  /**
   * Stops a sandbox. The calls for one sandbox are sequential: a daemon fails one of two concurrent calls, because the
   * other one is removing the network.
   */
  stop(podSandboxId: SandboxId, signal?: AbortSignal): Promise<void> {
    const call = () => ignoreNotFound(this.#connection.call(Calls.stopPodSandbox, { podSandboxId }, signal));
    const before = this.#stopping.get(podSandboxId);
    const stopped = before === undefined ? call() : before.then(call);
    const settled = stopped.catch(() => {});
    this.#stopping.set(podSandboxId, settled);
    void settled.then(() => {
      if (this.#stopping.get(podSandboxId) === settled) this.#stopping.delete(podSandboxId);
    });
    return stopped;
  }

  async remove(podSandboxId: SandboxId, signal?: AbortSignal): Promise<void> {
    // Daemons reject the removal of a running sandbox or do not remove its network.
    await this.stop(podSandboxId, signal);
    await removeWithRetries(
      this.#clock,
      () => this.#connection.call(Calls.removePodSandbox, { podSandboxId }, signal),
      signal,
    );
  }

  async status(podSandboxId: SandboxId, signal?: AbortSignal): Promise<PodSandboxStatus> {
    const { status = {} } = await this.#connection.call(Calls.podSandboxStatus, { podSandboxId }, signal);
    return fromSandboxStatus(status, this.#machine.nodeIp);
  }

  async list(filter: SandboxFilter = {}, signal?: AbortSignal): Promise<readonly PodSandbox[]> {
    const { id, state, labels } = filter;
    const all = id === undefined && state === undefined && labels === undefined;
    const request = ListPodSandboxRequest.encode({
      filter: all ? undefined : { id, labelSelector: labels, state: state && { state: SandboxStateNumber[state] } },
    });
    const items = this.#lists.read(
      request,
      await this.#connection.raw('RuntimeService', 'ListPodSandbox', request, signal),
    );
    // Daemons also match ids by prefix.
    return all ? items : items.filter((sandbox) => matchesSandbox(sandbox, filter));
  }

  /**
   * The configuration in CRI's form, restored from an annotation of the sandbox.
   * @throws `NotFound`, `InvalidState` when the sandbox is not ready
   */
  async configOf(podSandboxId: SandboxId, signal?: AbortSignal): Promise<SandboxMessage> {
    const { status = {} } = await this.#connection.call(Calls.podSandboxStatus, { podSandboxId }, signal);
    if (sandboxState(status.state) !== 'ready')
      throw new RuntimeError('InvalidState', `sandbox ${podSandboxId} is not ready`);
    return recallSandbox(status);
  }
}
