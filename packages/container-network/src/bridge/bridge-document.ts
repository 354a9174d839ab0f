import { join } from 'node:path';
import type { JsonObject } from '../cni/network-list.ts';

/**
 * How a pod reaches itself through a service: the bridge sends frames back where they came from, sees all frames
 * itself, or neither.
 */
export type HairpinMode = 'promiscuous-bridge' | 'hairpin-veth' | 'none';

export interface BridgeConfig {
  /** Name of the bridge's interface on the machine. */
  readonly bridge: string;
  /** 0 = 1460. */
  readonly mtu: number;
  readonly hairpinMode: HairpinMode;
  /** Bit of the packet mark that published ports use; nobody else's. */
  readonly portMarkBit: number;
}

/** The network of the bridge for one sandbox: plugins that have nothing to do for it are left out. */
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
      // Else no pod could be connected after the node got another range: the bridge still has the first address of the
      // old one.
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
