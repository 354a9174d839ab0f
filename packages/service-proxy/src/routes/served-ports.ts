import { standardAddress } from '@keelson/kinds';
import { type KnownService, type ServiceTable, serviceKey, type Target } from './service-table.ts';
import { usableTargets } from './target-choice.ts';

/** An address and port at which a service is served, and the targets of connections to it. */
export interface ServedPort {
  readonly service: KnownService;
  /** `health`: the port for the health checks of load balancers. */
  readonly protocol: 'TCP' | 'UDP' | 'health';
  readonly address: string;
  readonly port: number;
  readonly isNodePort: boolean;
  /** True when clients outside of the cluster use the address, so that answers must come back through this machine. */
  readonly isExternal: boolean;
  /** True when a traffic policy permits only endpoints on the nodes of this machine. */
  readonly onlyLocal: boolean;
  readonly targets: readonly Target[];
  readonly affinityMs: number | undefined;
}

/** The addresses of a service. Headless services, external names and the service of the servers have none. */
export function* servedPorts(
  table: ServiceTable,
  service: KnownService,
  localNodes: ReadonlySet<string>,
  nodePortAddresses: readonly string[],
): Generator<ServedPort> {
  const { spec } = service;
  if (spec.type === 'ExternalName' || spec.clusterIP === 'None' || !spec.clusterIP) return;
  if (serviceKey(service) === 'default/kubernetes') return;
  const isLocal = ({ nodeName }: Target) => nodeName !== undefined && localNodes.has(nodeName);
  const seconds = spec.sessionAffinityConfig?.clientIP?.timeoutSeconds ?? 10_800;
  const affinityMs = spec.sessionAffinity === 'ClientIP' ? seconds * 1000 : undefined;
  let local = 0;
  for (const { name = '', port, protocol = 'TCP', nodePort } of spec.ports ?? []) {
    if (protocol !== 'TCP' && protocol !== 'UDP') continue;
    const all = table.targets(service, name, protocol);
    const onlyLocal = spec.internalTrafficPolicy === 'Local';
    const inside = usableTargets(all, onlyLocal ? isLocal : undefined);
    const common = { service, protocol, affinityMs } as const;
    for (const address of standard(spec.clusterIPs ?? [spec.clusterIP]))
      yield { ...common, address, port, isNodePort: false, isExternal: false, onlyLocal, targets: inside };
    local = Math.max(local, usableTargets(all, isLocal).length);
    const localOutside = spec.externalTrafficPolicy === 'Local';
    const outside = usableTargets(all, localOutside ? isLocal : undefined);
    const external = { ...common, isExternal: true, onlyLocal: localOutside, targets: outside };
    for (const address of standard(spec.externalIPs ?? [])) yield { ...external, address, port, isNodePort: false };
    if (!nodePort) continue;
    for (const address of nodePortAddresses) yield { ...external, address, port: nodePort, isNodePort: true };
  }
  if (!spec.healthCheckNodePort) return;
  const targets = Array.from({ length: local }, () => noTarget);
  const place = { isNodePort: true, isExternal: true, onlyLocal: true } as const;
  const health = { service, protocol: 'health', ...place, affinityMs: undefined } as const;
  for (const address of nodePortAddresses) yield { ...health, address, port: spec.healthCheckNodePort, targets };
}

/** Addresses may have leading zeros, which the system would read as octal numbers. */
function standard(addresses: readonly string[]): string[] {
  return addresses.map((address) => standardAddress(address) ?? address);
}

/** Placeholder for a target of a health check port, which reports only the number of targets. */
const noTarget: Target = {
  ...{ address: '', port: 0, nodeName: undefined, hostname: undefined },
  ...{ ready: true, serving: true, terminating: false },
};
