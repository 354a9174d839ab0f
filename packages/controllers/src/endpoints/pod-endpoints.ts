import { isIPv6 } from 'node:net';
import type { ReconcileRun } from '@keelson/controller-kit';
import { type Pod, Service } from '@keelson/kinds';

/** Annotation with the time of the last change that led to the current endpoints, for measuring propagation delays. */
export const triggerTime = 'endpoints.kubernetes.io/last-change-trigger-time';
const headlessLabel = 'service.kubernetes.io/headless';

export type ServicePort = NonNullable<Service['spec']['ports']>[number];

/** A port in the form that Endpoints and EndpointSlices share. */
export interface PortOfEndpoints {
  readonly name: string;
  readonly port: number;
  readonly protocol: string;
  readonly appProtocol?: string;
}

export function isReady({ status }: Pod): boolean {
  return status?.conditions?.some(({ type, status: value }) => type === 'Ready' && value === 'True') ?? false;
}

export function isTerminating({ metadata }: Pod): boolean {
  return metadata?.deletionTimestamp !== undefined;
}

/** True for pods that have an address and may still take traffic. */
function hasEndpoint({ status }: Pod): boolean {
  return Boolean(status?.podIP) && status?.phase !== 'Failed' && status?.phase !== 'Succeeded';
}

/** The addresses of a pod in one family. */
export function addressesOf({ status }: Pod, family: string): string[] {
  const all = status?.podIPs?.map(({ ip }) => ip) ?? (status?.podIP ? [status.podIP] : []);
  return all.filter((ip) => ip !== '' && isIPv6(ip) === (family === 'IPv6'));
}

export function selects(selector: Readonly<Record<string, string>>, labels: Readonly<Record<string, string>>): boolean {
  return Object.entries(selector).every(([key, value]) => labels[key] === value);
}

/** True for services whose endpoints are pods. The endpoints of other services are managed by users. */
export function hasSelector({ spec }: Service): boolean {
  return spec.type !== 'ExternalName' && Object.keys(spec.selector ?? {}).length > 0;
}

export function podsOf(service: Service, pods: readonly Pod[]): Pod[] {
  const selector = service.spec.selector ?? {};
  return pods.filter((pod) => selects(selector, pod.metadata?.labels ?? {}) && hasEndpoint(pod));
}

/** The port of a pod that is the target of a service port; undefined when the pod has no port of that name. */
export function targetPortOf(pod: Pod, { targetPort, port, protocol = 'TCP' }: ServicePort): number | undefined {
  if (targetPort === undefined) return port;
  if (typeof targetPort === 'number') return targetPort;
  const sidecars = (pod.spec.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === 'Always');
  for (const container of [...pod.spec.containers, ...sidecars])
    for (const declared of container.ports ?? [])
      if (declared.name === targetPort && (declared.protocol ?? 'TCP') === protocol) return declared.containerPort;
  return undefined;
}

/** The ports of a service with the port numbers of a pod. Ports whose name the pod does not declare are left out. */
export function portsAt(pod: Pod, { spec }: Service): PortOfEndpoints[] {
  return (spec.ports ?? []).flatMap((port) => {
    const number = targetPortOf(pod, port);
    if (number === undefined) return [];
    const { name = '', protocol = 'TCP', appProtocol } = port;
    return [{ name, port: number, protocol, ...(appProtocol === undefined ? {} : { appProtocol }) }];
  });
}

/** The name of the pod in the domain of a headless service. */
export function hostnameOf({ spec, metadata }: Pod, service: Service): string | undefined {
  const named = spec.subdomain === service.metadata?.name && metadata?.namespace === service.metadata?.namespace;
  return named && spec.hostname !== undefined && spec.hostname !== '' ? spec.hostname : undefined;
}

export function podReference({ metadata }: Pod): { kind: string; namespace: string; name: string; uid: string } {
  const { namespace = '', name = '', uid = '' } = metadata ?? {};
  return { kind: 'Pod', namespace, name, uid };
}

/** The fields of a pod that affect endpoints, as text for comparisons. */
function relevant(pod: Pod): string {
  const { metadata, spec, status } = pod;
  return JSON.stringify([
    metadata?.labels,
    metadata?.deletionTimestamp,
    spec.nodeName,
    spec.hostname,
    spec.subdomain,
    status?.phase,
    status?.podIP,
    status?.podIPs,
    isReady(pod),
  ]);
}

/** Keys of the services that select a pod, or selected it before its change. */
export function servicesOf(pod: Pod, before: Pod | undefined, read: ReconcileRun['read']): string[] {
  if (before !== undefined && relevant(before) === relevant(pod)) return [];
  const namespace = pod.metadata?.namespace ?? '';
  const labels = [pod.metadata?.labels ?? {}, ...(before ? [before.metadata?.labels ?? {}] : [])];
  return read(Service)
    .inNamespace(namespace)
    .filter((service) => hasSelector(service) && labels.some((one) => selects(service.spec.selector ?? {}, one)))
    .map(({ metadata }) => `${namespace}/${metadata?.name}`);
}

/** The time of the latest change of a service or its pods. */
export function lastChange(service: Service, pods: readonly Pod[]): string | undefined {
  const times = pods.flatMap(({ metadata, status }) => [
    status?.conditions?.find(({ type }) => type === 'Ready')?.lastTransitionTime,
    metadata?.deletionTimestamp === undefined ? undefined : metadata.creationTimestamp,
  ]);
  return [service.metadata?.creationTimestamp, ...times]
    .flatMap((time) => time ?? [])
    .sort()
    .at(-1);
}

/** The labels that endpoints inherit from their service, with the label of headless services where it applies. */
export function labelsOfEndpoints({ metadata, spec }: Service): Record<string, string> {
  const { [headlessLabel]: _, ...labels } = metadata?.labels ?? {};
  return spec.clusterIP === 'None' ? { ...labels, [headlessLabel]: '' } : labels;
}
