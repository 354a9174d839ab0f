import { pause } from '@keelson/client';
import type { Clock, Logger } from '@keelson/core';
import type { NetworkConfig } from '../../base/config/agent-config.ts';
import type { EventRecorder } from '../../base/contracts/event-recorder.ts';
import type { HostActions } from './host-actions.ts';
import { PacketFilter } from './packet-filter.ts';
import { utilityChains, utilityRules } from './utility-rules.ts';

export interface UtilityChainsOptions {
  readonly host: HostActions;
  readonly config: Pick<NetworkConfig, 'iptablesDropBit' | 'iptablesMasqueradeBit'>;
  readonly nodeName: string;
  readonly periodMs: number;
  readonly events: EventRecorder;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * Keeps chains of the packet filter that others rely on. Where that is not possible (no iptables, no right to) the
 * agent works without, and says so once. The chains stay when the agent ends: those who rely on them have not ended.
 */
export class UtilityChains {
  readonly #options: UtilityChainsOptions;
  readonly #filter: PacketFilter;
  readonly #stop = new AbortController();
  #running: Promise<void> = Promise.resolve();
  #othersRemoved = false;
  #told = '';

  constructor(options: UtilityChainsOptions) {
    this.#options = options;
    this.#filter = new PacketFilter(options.host, options.logger);
  }

  start(): void {
    this.#running = this.#repeat();
  }

  /** Resolves when no command runs any more. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async #repeat(): Promise<void> {
    const { clock, periodMs } = this.#options;
    const { signal } = this.#stop;
    while (!signal.aborted) {
      try {
        await this.#ensure(signal);
        this.#told = '';
      } catch (error) {
        this.#tell(error instanceof Error ? error.message : String(error));
      }
      await pause(clock, periodMs, signal);
    }
  }

  async #ensure(signal: AbortSignal): Promise<void> {
    const { iptablesDropBit, iptablesMasqueradeBit } = this.#options.config;
    const rules = utilityRules(iptablesDropBit, iptablesMasqueradeBit);
    for (const chain of utilityChains) if (!signal.aborted) await this.#filter.ensureChain(chain);
    for (const rule of rules) if (!signal.aborted) await this.#filter.ensureRule(rule);
    if (this.#othersRemoved || signal.aborted) return;
    // Once: a proxy that was told another bit would put its rule back, again and again.
    for (const rule of rules) await this.#filter.removeOtherMarks(rule);
    this.#othersRemoved = true;
  }

  #tell(problem: string): void {
    const { logger, events, nodeName } = this.#options;
    if (problem === this.#told) return;
    this.#told = problem;
    logger.warn('utility chains of iptables are not kept', { component: 'utility-chains', problem });
    const subject = { apiVersion: 'v1', kind: 'Node', name: nodeName, uid: nodeName };
    events.record(subject, 'Warning', 'UtilityChainsNotKept', `Utility chains of iptables are not kept: ${problem}`);
  }
}
