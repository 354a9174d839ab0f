import { join } from 'node:path';
import { type ContainerRuntime, type ContainerStatus, isRuntimeError } from '@keelson/container-runtime';
import { quantityMilliValue } from '@keelson/core';
import type { Clock, Logger } from '@keelson/core/runtime';
import { type Container, type Pod, qosClassOf } from '@keelson/kinds';
import type { AgentConfig } from '../../base/config/agent-config.ts';
import { MachineError } from '../../base/machine-error.ts';
import { initContainersOf, isSidecar, uidOf } from '../../base/pod/pod-spec.ts';
import { Repeater } from '../../base/repeater.ts';
import type { RuntimePods } from '../../runtime-view/runtime-pods.ts';
import { CpuAssignments } from './cpu-assignments.ts';
import { readCpuState, stateFileName, writeCpuState } from './cpu-state.ts';
import { type CpuTopology, formatCpuSet } from './cpu-topology.ts';

/** Assigns CPUs to containers. */
export interface CpuManager {
  /**
   * Restores the assignments of the state file.
   *
   * @param isWanted false for pods that are certainly gone, whose CPUs are released
   * @throws MachineError when the state file does not fit the options or the machine
   */
  start(isWanted: (uid: string) => boolean): Promise<void>;
  stop(): Promise<void>;
  /** The CPUs of a new container, as a list such as `0-2,7`; undefined = any CPU. @throws CpuShortageError */
  place(pod: Pod, container: Container): Promise<string | undefined>;
  /** Releases the CPUs of a pod that has ended. */
  release(uid: string): Promise<void>;
}

export interface CpuManagerOptions {
  readonly config: Pick<AgentConfig, 'rootDir' | 'cpuManager' | 'clusterReserved' | 'systemReserved'>;
  readonly topology: () => Promise<CpuTopology>;
  readonly runtime: ContainerRuntime;
  readonly states: RuntimePods;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly callTimeoutMs: number;
}

export function createCpuManager(options: CpuManagerOptions): CpuManager {
  return options.config.cpuManager.policy === 'static'
    ? new StaticCpuManager(options)
    : new NoCpuManager(options.config.rootDir);
}

/** All containers share all CPUs. The policy is recorded nevertheless, so that a later change of it is detected. */
class NoCpuManager implements CpuManager {
  readonly #path: string;

  constructor(rootDir: string) {
    this.#path = join(rootDir, stateFileName);
  }

  async start(): Promise<void> {
    const before = await readCpuState(this.#path, 'none');
    if (before === undefined) await writeCpuState(this.#path, { policyName: 'none', defaultCpuSet: '', entries: {} });
  }

  async stop(): Promise<void> {}

  place(): Promise<undefined> {
    return Promise.resolve(undefined);
  }

  async release(): Promise<void> {}
}

/** Number of exclusive CPUs of a container; 0 = the container uses the shared CPUs. */
export function exclusiveCpus(pod: Pod, container: Container): number {
  if (qosClassOf(pod.spec) !== 'Guaranteed') return 0;
  const { requests = {}, limits = {} } = container.resources ?? {};
  const milli = Number(quantityMilliValue(requests['cpu'] ?? limits['cpu'] ?? '0'));
  return milli % 1_000 === 0 ? milli / 1_000 : 0;
}

/** Containers of guaranteed pods that request whole CPUs get them exclusively; all other containers share the rest. */
export class StaticCpuManager implements CpuManager {
  readonly #options: CpuManagerOptions;
  readonly #path: string;
  readonly #loop: Repeater;
  readonly #reported = new Map<string, string>();
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
      what: 'reconciliation of CPU sets',
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
      // Earlier init containers have exited, so their CPUs are free.
      const ended = initContainersOf(pod).filter((other) => !isSidecar(other) && other.name !== container.name);
      const freed = assignments.release(
        uid,
        ended.map(({ name }) => name),
      );
      const count = exclusiveCpus(pod, container);
      const taken = count > 0 && assignments.assign(uid, container.name, count);
      if (freed || taken) await this.#save();
      // Other containers must leave the CPUs before the new container starts.
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

  /** Changes run one after the other, so that the state file matches the assignments. */
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

  /** Sets the CPUs of every running container, also when another program has changed them. */
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
      this.#reported.delete(id);
    } catch (error) {
      // The container has exited meanwhile.
      if (isRuntimeError(error, 'NotFound') || isRuntimeError(error, 'InvalidState') || signal?.aborted) {
        this.#reported.delete(id);
        return;
      }
      const problem = error instanceof Error ? error.message : String(error);
      if (this.#reported.get(id) !== problem)
        logger.warn('CPUs of a container could not be set', { component: 'cpus', id, cpusetCpus, problem });
      this.#reported.set(id, problem);
    }
  }
}
