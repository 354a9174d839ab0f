import { join } from 'node:path';
import { createBridgeNetwork, createCniNetwork, type NetworkPlugin } from '@keelson/container-network';
import type { ContainerRuntime } from '@keelson/container-runtime';
import { UsageError } from '@keelson/core/internal';
import type { Clock, Logger } from '@keelson/core/runtime';
import type { AgentConfig, NetworkConfig } from '../../base/config/agent-config.ts';

export interface OpenNetworkOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  /**
   * A command that precedes each plugin, such as `nsenter --net=...`, so that the host side of pod networks is in
   * another network namespace.
   */
  readonly launch?: readonly string[];
}

/** Mark bits of published ports; the first one is the default of the port-mapping plugin. */
const portMarkBits = [13, 12, 11];

/**
 * The configured pod network, for runtimes that create network namespaces themselves; undefined when none is
 * configured.
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
    // With an API server, the pod address range is in the node object.
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
 * Rejects a network plugin that the runtime would not call: its pods would be on the network of the machine.
 *
 * @throws UsageError
 */
export function requirePodNetwork(
  { plugin }: Pick<NetworkConfig, 'plugin'>,
  runtime: Pick<ContainerRuntime, 'name' | 'capabilities'>,
): void {
  if (plugin === '' || runtime.capabilities.podNetwork) return;
  throw new UsageError(
    `--network-plugin=${plugin} needs a runtime whose pods have a network of their own; ` +
      `those of the runtime ${runtime.name} are on the machine's`,
  );
}

export interface PodRangeOptions {
  readonly runtime: Pick<ContainerRuntime, 'updateConfig'>;
  readonly callTimeoutMs: number;
  readonly logger: Logger;
}

/** Passes the pod address range of this node to the runtime when it is known and whenever it changes. */
export class PodRange {
  readonly #options: PodRangeOptions;
  #current: string | undefined;

  constructor(options: PodRangeOptions) {
    this.#options = options;
  }

  /** Never throws. A failed update is repeated by the next call. */
  async learn(podCidr: string | undefined): Promise<void> {
    const { runtime, callTimeoutMs, logger } = this.#options;
    if (!podCidr || podCidr === this.#current || runtime.updateConfig === undefined) return;
    try {
      await runtime.updateConfig({ podCidr }, { timeoutMs: callTimeoutMs });
      this.#current = podCidr;
      logger.info('pod address range was set in the runtime', { component: 'network', podCidr });
    } catch (err) {
      logger.warn('pod address range could not be set in the runtime', { component: 'network', podCidr, err });
    }
  }
}
