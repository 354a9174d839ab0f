import type { ContainerRuntime } from '@keelson/container-runtime';
import type { Logger } from '@keelson/core';

export interface PodRangeOptions {
  readonly runtime: Pick<ContainerRuntime, 'updateConfig'>;
  readonly callTimeoutMs: number;
  readonly logger: Logger;
}

/** Tells the runtime the addresses of this node's pods, when they are known and each time they are others. */
export class PodRange {
  readonly #options: PodRangeOptions;
  #told: string | undefined;

  constructor(options: PodRangeOptions) {
    this.#options = options;
  }

  /** Never throws: a runtime that did not hear is told again by the next call. */
  async learn(podCidr: string | undefined): Promise<void> {
    const { runtime, callTimeoutMs, logger } = this.#options;
    if (!podCidr || podCidr === this.#told || runtime.updateConfig === undefined) return;
    try {
      await runtime.updateConfig({ podCidr }, { timeoutMs: callTimeoutMs });
      this.#told = podCidr;
      logger.info('addresses of pods', { component: 'network', podCidr });
    } catch (err) {
      logger.warn('the runtime was not told the addresses of pods', { component: 'network', podCidr, err });
    }
  }
}
