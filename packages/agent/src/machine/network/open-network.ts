import { join } from 'node:path';
import { createBridgeNetwork, createCniNetwork, type NetworkPlugin } from '@keelson/container-network';
import type { Clock, Logger } from '@keelson/core';
import type { AgentConfig } from '../../base/config/agent-config.ts';

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
