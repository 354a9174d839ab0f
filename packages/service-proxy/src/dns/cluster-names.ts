import { isIP, isIPv6 } from 'node:net';
import type { StringAnswer, Answer as WireAnswer } from 'dns-packet';
import { type KnownService, type ServiceTable, serviceKey, type Target } from '../routes/service-table.ts';

/** Seconds for which answers may be cached, as in CoreDNS. */
const ttl = 5;

/** The answer to one question. */
export interface Reply {
  readonly code: 'NOERROR' | 'NXDOMAIN';
  readonly answers: readonly WireAnswer[];
  readonly additionals: readonly WireAnswer[];
}

const none: Reply = { code: 'NXDOMAIN', answers: [], additionals: [] };
const noData: Reply = { code: 'NOERROR', answers: [], additionals: [] };

/**
 * The names of services and pods, as the specification of DNS-based service discovery of Kubernetes (1.1.0) defines
 * them, below the domain of the cluster: `name.namespace.svc`, `_port._protocol.name.namespace.svc`,
 * `hostname.name.namespace.svc` of headless services, and `1-2-3-4.namespace.pod`.
 */
export class ClusterNames {
  readonly #table: ServiceTable;
  readonly domain: string;

  constructor(table: ServiceTable, domain: string) {
    this.#table = table;
    this.domain = domain.toLowerCase().replace(/\.$/, '');
  }

  /** Whether a name belongs to the cluster, so that no other server is asked. */
  contains(name: string): boolean {
    const lower = name.toLowerCase();
    return lower === this.domain || lower.endsWith(`.${this.domain}`);
  }

  /** @param name inside the domain of the cluster, without a dot at its end */
  resolve(name: string, type: string): Reply {
    const labels = name.toLowerCase().slice(0, -this.domain.length).split('.').filter(Boolean);
    if (labels.length === 0) return noData;
    const kind = labels.pop();
    if (kind === 'dns-version' && labels.length === 0)
      return type === 'TXT' ? { ...noData, answers: [{ type: 'TXT', name, ttl, data: '1.1.0' }] } : noData;
    if (kind !== 'svc' && kind !== 'pod') return none;
    const namespace = labels.pop();
    if (namespace === undefined) return noData;
    return kind === 'pod' ? pod(name, labels, type) : this.#service(name, namespace, labels, type);
  }

  #service(name: string, namespace: string, labels: string[], type: string): Reply {
    const serviceName = labels.pop();
    if (serviceName === undefined) return this.#hasNamespace(namespace) ? noData : none;
    const service = this.#table.service(serviceKey({ namespace, name: serviceName }));
    if (service === undefined) return none;
    const { spec } = service;
    if (spec.type === 'ExternalName') {
      if (labels.length > 0) return none;
      const target = (spec.externalName ?? '').replace(/\.$/, '');
      return isIP(target) === 0 ? { ...noData, answers: [{ type: 'CNAME', name, ttl, data: target }] } : none;
    }
    if (labels.length === 0) return addressReply(name, this.#addressesOf(service), type);
    if (labels.length === 2 && labels[0]?.startsWith('_') && labels[1]?.startsWith('_'))
      return this.#ports(name, service, labels[0].slice(1), labels[1].slice(1), type);
    return labels.length === 1 && spec.clusterIP === 'None'
      ? this.#endpoint(name, service, labels[0] ?? '', type)
      : none;
  }

  #addressesOf(service: KnownService): string[] {
    const { spec } = service;
    if (spec.clusterIP !== 'None') return [...(spec.clusterIPs ?? [])];
    return [...new Set(this.#targets(service).map(({ address }) => address))];
  }

  #targets(service: KnownService): Target[] {
    return this.#table.addresses(service).filter(({ ready }) => ready);
  }

  #endpoint(name: string, service: KnownService, label: string, type: string): Reply {
    const found = this.#targets(service).filter((target) => labelOf(target) === label);
    return found.length === 0
      ? none
      : addressReply(
          name,
          found.map(({ address }) => address),
          type,
        );
  }

  #ports(name: string, service: KnownService, port: string, protocol: string, type: string): Reply {
    const { spec } = service;
    const declared = spec.ports?.find((one) => one.name === port && (one.protocol ?? 'TCP').toLowerCase() === protocol);
    if (declared === undefined) return none;
    if (type !== 'SRV') return noData;
    const base = `${service.name}.${service.namespace}.svc.${this.domain}`;
    const srv = (target: string, number: number): WireAnswer => ({
      ...{ type: 'SRV', name, ttl },
      data: { priority: 0, weight: 100, port: number, target },
    });
    if (spec.clusterIP !== 'None')
      return {
        ...noData,
        answers: [srv(base, declared.port)],
        additionals: (spec.clusterIPs ?? []).map((address) => addressRecord(base, address)),
      };
    const targets = this.#table.targets(service, port, declared.protocol ?? 'TCP').filter(({ ready }) => ready);
    return {
      ...noData,
      answers: targets.map((target) => srv(`${labelOf(target)}.${base}`, target.port)),
      additionals: targets.map((target) => addressRecord(`${labelOf(target)}.${base}`, target.address)),
    };
  }

  #hasNamespace(namespace: string): boolean {
    for (const service of this.#table.services()) if (service.namespace === namespace) return true;
    return false;
  }
}

/** The label of an endpoint below its service: its host name, or its address with dashes. */
function labelOf({ hostname, address }: Target): string {
  return hostname ?? address.replace(/[.:]/g, '-');
}

/** `10-0-0-1.namespace.pod`: the label contains the address. */
function pod(name: string, labels: readonly string[], type: string): Reply {
  const [label = ''] = labels;
  if (labels.length === 0) return noData;
  const address = [label.replaceAll('-', '.'), label.replaceAll('-', ':')].find((text) => isIP(text) !== 0);
  return labels.length > 1 || address === undefined ? none : addressReply(name, [address], type);
}

function addressRecord(name: string, address: string): StringAnswer {
  return { type: isIPv6(address) ? 'AAAA' : 'A', name, ttl, data: address };
}

function addressReply(name: string, addresses: readonly string[], type: string): Reply {
  if (addresses.length === 0) return none;
  const records = addresses.map((address) => addressRecord(name, address));
  const fitting = records.filter((record) => type === 'ANY' || record.type === type);
  // Clients use the first address, so the order changes with each answer.
  // Not injected: each order is correct.
  const start = Math.floor(Math.random() * fitting.length);
  return { ...noData, answers: [...fitting.slice(start), ...fitting.slice(0, start)] };
}
