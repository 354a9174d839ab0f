import { join, resolve } from 'node:path';
import { type AgentConfig, openNetwork } from '@keelson/agent';
import type { RuntimeAdapter, RuntimeContext } from '@keelson/container-runtime';
import type { Clock, Logger } from '@keelson/core/runtime';

/** The part of the agent's configuration from which the context of a runtime adapter is made. */
export type ContextConfig = Pick<AgentConfig, 'nodeName' | 'rootDir' | 'api' | 'network'> & {
  readonly node: Pick<AgentConfig['node'], 'ip'>;
};

/** Network configuration without a plugin: pods use the network of the node. */
export const noNetwork: ContextConfig['network'] = {
  plugin: '',
  cniBinDir: '',
  cniConfDir: '',
  mtu: 0,
  hairpinMode: 'none',
  podCidr: '',
  makeIptablesUtilChains: false,
  iptablesDropBit: 0,
  iptablesMasqueradeBit: 0,
};

export interface ContextOptions {
  readonly config: ContextConfig;
  /** Mount point of the cgroup hierarchy; undefined when the agent manages no cgroups for pods. */
  readonly cgroupMountpoint?: string | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * The directory of an adapter's state, below the root directory of the agent. The process runtime was the first one and
 * keeps the name without a suffix, because containers of earlier versions are found there.
 */
function stateDirectoryOf(rootDir: string, name: string): string {
  return resolve(rootDir, name === 'process' ? 'runtime' : `runtime-${name}`);
}

/** The context in which the agent opens a runtime adapter. */
export function runtimeContext(
  { config, cgroupMountpoint, clock, logger }: ContextOptions,
  { name }: Pick<RuntimeAdapter, 'name'>,
): RuntimeContext {
  const { nodeName, rootDir, node } = config;
  const network = openNetwork(config, { clock, logger });
  return {
    nodeName,
    ...(node.ip !== undefined && { nodeIp: node.ip }),
    stateDirectory: stateDirectoryOf(rootDir, name),
    imageDirectories: [join(rootDir, 'images')],
    ...(network !== undefined && { network }),
    ...(cgroupMountpoint !== undefined && { cgroupMountpoint }),
    clock,
    logger: logger.child({ component: `runtime-${name}` }),
  };
}
