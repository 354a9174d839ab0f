import type { NetworkRequest } from '@keelson/container-runtime';
import type { JsonObject } from './network-list.ts';

/** Arguments for plugins by the capability that a plugin declares. Capabilities without a value are absent. */
export function capabilityArgs(request: NetworkRequest, podCidr: string | undefined): JsonObject {
  const { portMappings = [], bandwidth, dns } = request;
  const published = portMappings.filter(({ hostPort }) => hostPort);
  return {
    ...(published.length > 0 && {
      portMappings: published.map(({ hostPort, containerPort, protocol, hostIp }) => ({
        hostPort,
        containerPort,
        protocol: protocol.toLowerCase(),
        ...(hostIp && { hostIP: hostIp }),
      })),
    }),
    ...(podCidr !== undefined && { ipRanges: [[{ subnet: podCidr }]] }),
    ...(bandwidth && { bandwidth: bandwidthArgs(bandwidth) }),
    ...(dns && { dns: { servers: dns.servers, searches: dns.searches, options: dns.options } }),
  };
}

/** Burst size of bandwidth limits. The maximum is used, so that only the rate limits traffic. */
const burst = 2 ** 31 - 1;

function bandwidthArgs({ ingressRate, egressRate }: NonNullable<NetworkRequest['bandwidth']>): JsonObject {
  return {
    ...(ingressRate !== undefined && { ingressRate, ingressBurst: burst }),
    ...(egressRate !== undefined && { egressRate, egressBurst: burst }),
  };
}
