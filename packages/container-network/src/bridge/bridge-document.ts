import { join } from 'node:path';
import type { JsonObject } from '../cni/network-list.ts';

/**
 * How a pod can connect to itself through a service: by a promiscuous bridge, by bridge ports that send frames back to
 * their origin (hairpin mode), or not at all.
 */
export type HairpinMode = 'promiscuous-bridge' | 'hairpin-veth' | 'none';

export interface BridgeConfig {
  /** Name of the bridge's interface on the machine. */
  readonly bridge: string;
  /** MTU in bytes; 0 = 1460. */
  readonly mtu: number;
  readonly hairpinMode: HairpinMode;
  /** Bit of the packet mark for published ports. No other program may use it. */
  readonly portMarkBit: number;
}

/** The CNI network list of the bridge for one sandbox, without the plugins that the sandbox does not need. */
export function bridgeDocument(
  { bridge, mtu, hairpinMode, portMarkBit }: BridgeConfig,
  podCidr: string,
  stateDirectory: string,
  args: JsonObject,
): JsonObject {
  const plugins: JsonObject[] = [
    {
      type: 'bridge',
      bridge,
      mtu,
      isGateway: true,
      // After a change of the CIDR, the bridge still has an address of the old CIDR. The plugin replaces this address
      // only with `forceAddress`, and otherwise connects no pod.
      forceAddress: true,
      ipMasq: true,
      hairpinMode: hairpinMode === 'hairpin-veth',
      promiscMode: hairpinMode === 'promiscuous-bridge',
      ipam: {
        type: 'host-local',
        ranges: [[{ subnet: podCidr }]],
        routes: [{ dst: podCidr.includes(':') ? '::/0' : '0.0.0.0/0' }],
        dataDir: join(stateDirectory, 'addresses'),
      },
    },
  ];
  if (args['portMappings'] !== undefined) {
    plugins.push({ type: 'portmap', capabilities: { portMappings: true }, snat: true, markMasqBit: portMarkBit });
  }
  if (args['bandwidth'] !== undefined) plugins.push({ type: 'bandwidth', capabilities: { bandwidth: true } });
  return { cniVersion: '0.4.0', name: 'pods', plugins };
}
