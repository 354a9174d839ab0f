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
  /**
   * CIDR of pod addresses, of which the bridge has the first one. Absent: the network is not ready until `updateConfig`
   * sets it.
   */
  readonly podCidr?: string;
}

/** Default MTU in bytes: reserves 40 of the usual 1500 bytes for the headers of tunnels. */
const defaultMtu = 1460;

const noPodCidr = 'the node has no pod CIDR (option --pod-cidr, or spec.podCIDR of the node)';

/**
 * A network without configuration files: a bridge, a veth pair for each sandbox, addresses from the pod CIDR, and
 * masquerading of traffic that leaves the CIDR. It calls the standard CNI plugins.
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
    if (podCidr === undefined) throw new NetworkError('Unavailable', noPodCidr);
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
      if (podCidr === undefined) return unready(noPodCidr);
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
