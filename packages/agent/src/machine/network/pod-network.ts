import { join } from 'node:path';
import { createBridgeNetwork, createCniNetwork, type NetworkPlugin } from '@keelson/container-network';
import type { ContainerRuntime } from '@keelson/container-runtime';
import type { Clock, Logger } from '@keelson/core';
import type { AgentConfig, NetworkConfig } from '../../base/config/agent-config.ts';
import { UsageError } from '../../base/usage-error.ts';

export interface OpenNetworkOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  /**
   * Words before each plugin's path, such as `nsenter --net=...`: the machine's side of pod networks is in another
   * namespace then.
   */
  readonly launch?: readonly string[];
}

/** Bits for the marks of published ports: the first is what their plugin takes by itself. */
const portMarkBits = [13, 12, 11];

/**
 * The network that the options choose, for runtimes that make network namespaces themselves; undefined when they choose
 * none.
 */
export function openNetwork(
  config: Pick<AgentConfig, 'rootDir' | 'api' | 'network'>,
  { clock, logger, launch = [] }: OpenNetworkOptions,
): NetworkPlugin | undefined {
  const { plugin, cniBinDir, cniConfDir, mtu, hairpinMode, podCidr, iptablesDropBit, iptablesMasqueradeBit } =
    config.network;
  if (plugin === '') return undefined;
  const host = {
    binDirs: cniBinDir.split(',').filter((folder) => folder !== ''),
    stateDirectory: join(config.rootDir, 'network'),
    launch,
    // With an API server the node's own object says which addresses its pods have.
    ...(config.api === undefined && podCidr !== '' && { podCidr }),
    clock,
    logger: logger.child({ component: 'network' }),
  };
  if (plugin === 'cni') return createCniNetwork({ ...host, confDir: cniConfDir, hairpin: hairpinMode !== 'none' });
  const taken = [iptablesDropBit, iptablesMasqueradeBit];
  const portMarkBit = portMarkBits.find((bit) => !taken.includes(bit)) ?? 0;
  return createBridgeNetwork({ ...host, mtu, hairpinMode, portMarkBit });
}

/**
 * A plugin that nobody would call is refused, rather than a node whose pods are on the machine's network against what
 * was asked for.
 *
 * @throws UsageError
 */
export function requirePodNetwork(
  { plugin }: Pick<NetworkConfig, 'plugin'>,
  runtime: Pick<ContainerRuntime, 'name' | 'capabilities'>,
): void {
  if (plugin === '' || runtime.capabilities.podNetwork) return;
  throw new UsageError(
    `--network-plugin=${plugin} needs a runtime whose pods have a network of their own; those of the runtime ${runtime.name} are on the machine's`,
  );
}

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
