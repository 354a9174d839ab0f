import type { NetworkPlugin, NetworkRequest } from '@keelson/container-runtime';
import { isIPv4 } from '@keelson/core';
import { Attacher, loopbackType, type PluginHost, type Wanted } from '../cni/attacher.ts';
import { capabilityArgs } from '../cni/capability-args.ts';
import { networkListOf } from '../cni/network-list.ts';
import { pluginsReady, unready } from '../cni/readiness.ts';
import { gatewayOf, macOf } from '../cni/result.ts';
import { NetworkError } from '../network-error.ts';
import { type BridgeConfig, bridgeDocument } from './bridge-document.ts';
import { NoDuplicates } from './no-duplicates.ts';

export interface BridgeNetworkOptions extends PluginHost, Partial<BridgeConfig> {
  /** Addresses of pods; the first one is the bridge's own. Absent: not ready until `updateConfig` tells. */
  readonly podCidr?: string;
}

/** Leaves room for what tunnels put around a packet, below the 1500 bytes of most networks. */
const defaultMtu = 1460;

const noRange = 'the node has no range of pod addresses yet (--pod-cidr, or spec.podCIDR of the node)';

/**
 * A network without configuration: a bridge on the machine, a pair of interfaces for each sandbox, addresses out of the
 * pod range, masquerading for what leaves the range. The standard CNI plugins do the work.
 */
export function createBridgeNetwork(options: BridgeNetworkOptions): NetworkPlugin {
  const {
    binDirs,
    stateDirectory,
    launch = [],
    logger,
    bridge = 'cbr0',
    mtu = 0,
    hairpinMode = 'none',
    portMarkBit = 13,
  } = options;
  const attacher = new Attacher(options);
  const config: BridgeConfig = { bridge, mtu: mtu === 0 ? defaultMtu : mtu, hairpinMode, portMarkBit };
  const copies = new NoDuplicates({ bridge, launch, logger });
  let { podCidr } = options;
  const wanted = (request: NetworkRequest): Wanted => {
    if (podCidr === undefined) throw new NetworkError('Unavailable', noRange);
    const args = capabilityArgs(request, undefined);
    const range = podCidr;
    return {
      list: networkListOf(bridgeDocument(config, range, stateDirectory, args)),
      capabilityArgs: args,
      async afterwards(result) {
        if (hairpinMode !== 'promiscuous-bridge') return;
        const [mac, gateway] = [macOf(result, bridge), gatewayOf(result)];
        if (mac !== undefined && gateway !== undefined && isIPv4(gateway)) await copies.ensure({ mac, gateway, range });
      },
    };
  };
  return {
    name: 'bridge',
    async status() {
      if (podCidr === undefined) return unready(noRange);
      return pluginsReady(['bridge', 'host-local', loopbackType], binDirs);
    },
    add: (request, callOptions) => attacher.add(request, async () => wanted(request), callOptions),
    remove: (which, callOptions) => attacher.remove(which, callOptions),
    check: (which, callOptions) => attacher.check(which, callOptions),
    updateConfig(change) {
      podCidr = change.podCidr ?? podCidr;
    },
    sweep: (known, callOptions) => attacher.sweep(known, callOptions),
  };
}
