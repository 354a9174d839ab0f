import { join } from 'node:path';
import { type ContainerStatus, isRuntimeError } from '@keelson/container-runtime';
import { quantityMilliValue } from '@keelson/core';
import { type Container, type Pod, qosClassOf } from '@keelson/kinds';
import { MachineError } from '../../base/machine-error.ts';
import { initContainersOf, isSidecar, uidOf } from '../../base/pod/pod-spec.ts';
import { Repeater } from '../../base/repeater.ts';
import { CpuAssignments } from './cpu-assignments.ts';
import type { CpuManager, CpuManagerOptions } from './cpu-manager.ts';
import { formatCpuSet } from './cpu-set.ts';
import { readCpuState, stateFileName, writeCpuState } from './cpu-state.ts';

/** How many whole CPUs a container has to itself; 0 = it shares those of the others. */
export function exclusiveCpus(pod: Pod, container: Container): number {
  if (qosClassOf(pod.spec) !== 'Guaranteed') return 0;
  const { requests = {}, limits = {} } = container.resources ?? {};
  const milli = Number(quantityMilliValue(requests['cpu'] ?? limits['cpu'] ?? '0'));
  return milli % 1_000 === 0 ? milli / 1_000 : 0;
}

/** Containers of guaranteed pods that ask for whole CPUs have them to themselves; all others share the rest. */
export class StaticCpuManager implements CpuManager {
  readonly #options: CpuManagerOptions;
  readonly #path: string;
  readonly #loop: Repeater;
  readonly #told = new Map<string, string>();
  #assignments: CpuAssignments | undefined;
  #isWanted: (uid: string) => boolean = () => true;
  #last: Promise<unknown> = Promise.resolve();

  constructor(options: CpuManagerOptions) {
    const { config, clock, logger } = options;
    this.#options = options;
    this.#path = join(config.rootDir, stateFileName);
    const periodMs = config.cpuManager.reconcileMs;
    this.#loop = new Repeater({
      clock,
      logger,
      what: 'keeping of CPU sets',
      periodMs,
      run: (signal) => this.#round(signal),
    });
  }

  async start(isWanted: (uid: string) => boolean): Promise<void> {
    this.#isWanted = isWanted;
    const { config, topology, runtime } = this.#options;
    if (!runtime.capabilities.cpuLimits || runtime.updateContainerResources === undefined) {
      throw new MachineError(
        `--cpu-manager-policy=static: the runtime ${runtime.name} cannot bind containers to CPUs here`,
      );
    }
    const { clusterReserved, systemReserved } = config;
    const milli = [clusterReserved, systemReserved].map(({ cpu }) => Number(quantityMilliValue(cpu ?? '0')));
    const reserved = Math.ceil(milli.reduce((sum, one) => sum + one) / 1_000);
    const assignments = new CpuAssignments(await topology(), reserved);
    const before = await readCpuState(this.#path, 'static');
    if (before !== undefined) assignments.restore(before, this.#path);
    this.#assignments = assignments;
    await this.#save();
    this.#loop.start();
  }

  async stop(): Promise<void> {
    await this.#loop.stop();
    await this.#last;
  }

  place(pod: Pod, container: Container): Promise<string> {
    return this.#inTurn(async (assignments) => {
      const uid = uidOf(pod);
      // Init containers that ended before this one was reached.
      const ended = initContainersOf(pod).filter((other) => !isSidecar(other) && other.name !== container.name);
      const freed = assignments.release(
        uid,
        ended.map(({ name }) => name),
      );
      const count = exclusiveCpus(pod, container);
      const taken = count > 0 && assignments.assign(uid, container.name, count);
      if (freed || taken) await this.#save();
      // Whoever is there leaves before the container comes.
      if (taken) await this.#apply(undefined);
      return formatCpuSet(assignments.cpusOf(uid, container.name));
    });
  }

  release(uid: string): Promise<void> {
    return this.#inTurn(async (assignments) => {
      if (!assignments.release(uid)) return;
      await this.#save();
      this.#loop.now();
    });
  }

  /** One change after the other: what is written is what is. */
  #inTurn<T>(work: (assignments: CpuAssignments) => Promise<T>): Promise<T> {
    const turn = this.#last.then(() => {
      if (this.#assignments === undefined) throw new Error('the CPU manager was not started');
      return work(this.#assignments);
    });
    this.#last = turn.catch(() => undefined);
    return turn;
  }

  async #save(): Promise<void> {
    const state = this.#assignments?.state();
    if (state !== undefined) await writeCpuState(this.#path, { policyName: 'static', ...state });
  }

  #round(signal: AbortSignal): Promise<void> {
    return this.#inTurn(async (assignments) => {
      const gone = assignments.uids().filter((uid) => !this.#isWanted(uid));
      for (const uid of gone) assignments.release(uid);
      if (gone.length > 0) await this.#save();
      await this.#apply(signal);
    });
  }

  /** Binds every container that runs to its CPUs, whoever changed them. */
  async #apply(signal: AbortSignal | undefined): Promise<void> {
    const running = this.#options.states
      .all()
      .flatMap(({ uid, containers }) =>
        containers.filter(({ state }) => state === 'running').map((status) => ({ uid, status })),
      );
    for (const { uid, status } of running) if (signal?.aborted !== true) await this.#bind(uid, status, signal);
  }

  async #bind(uid: string, { id, metadata }: ContainerStatus, signal: AbortSignal | undefined): Promise<void> {
    const { runtime, logger, callTimeoutMs: timeoutMs } = this.#options;
    const cpusetCpus = formatCpuSet(this.#assignments?.cpusOf(uid, metadata.name) ?? []);
    try {
      await runtime.updateContainerResources?.(id, { cpusetCpus }, { ...(signal && { signal }), timeoutMs });
      this.#told.delete(id);
    } catch (error) {
      // It ended meanwhile.
      if (isRuntimeError(error, 'NotFound') || isRuntimeError(error, 'InvalidState') || signal?.aborted) {
        this.#told.delete(id);
        return;
      }
      const problem = error instanceof Error ? error.message : String(error);
      if (this.#told.get(id) !== problem)
        logger.warn('a container is not on its CPUs', { component: 'cpus', id, cpusetCpus, problem });
      this.#told.set(id, problem);
    }
  }
}
