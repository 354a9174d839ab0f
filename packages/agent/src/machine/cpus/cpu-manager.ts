import { join } from 'node:path';
import type { ContainerRuntime } from '@keelson/container-runtime';
import type { Clock, Logger } from '@keelson/core';
import type { Container, Pod } from '@keelson/kinds';
import type { AgentConfig } from '../../base/config/agent-config.ts';
import type { RuntimePods } from '../../runtime-view/runtime-pods.ts';
import { readCpuState, stateFileName, writeCpuState } from './cpu-state.ts';
import type { CpuTopology } from './cpu-topology.ts';
import { StaticCpuManager } from './static-cpus.ts';

/** Decides on which CPUs containers run. */
export interface CpuManager {
  /**
   * Restores the assignments of the state file.
   *
   * @param isWanted false for pods that are certainly gone, whose CPUs are released
   * @throws MachineError when the state file does not fit the options or the machine
   */
  start(isWanted: (uid: string) => boolean): Promise<void>;
  stop(): Promise<void>;
  /** The CPUs of a container that is made now, as a list like `0-2,7`; undefined: any. @throws CpuShortageError */
  place(pod: Pod, container: Container): Promise<string | undefined>;
  /** A pod has ended: what it had is everybody's again. */
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

/** Containers run where they like. The policy is noted all the same, so that a change of it is noticed. */
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
