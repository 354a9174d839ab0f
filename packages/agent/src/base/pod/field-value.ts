import type { Pod } from '@keelson/kinds';

/** Values that a field reference can name and that the pod object does not contain. */
export interface PodPlace {
  readonly nodeName: string;
  readonly hostIps: readonly string[];
  readonly podIps: readonly string[];
}

const subscript = /^metadata\.(labels|annotations)\['([^']*)'\]$/;

/**
 * The value of a pod field as text; undefined when the path must not be referenced. See
 * docs/reference/agent-rules.md#environment-of-a-container.
 */
export function fieldValue(path: string, pod: Pod, place: PodPlace): string | undefined {
  const meta = pod.metadata ?? {};
  const [, map, key] = subscript.exec(path) ?? [];
  if (key !== undefined) return (map === 'labels' ? meta.labels : meta.annotations)?.[key] ?? '';
  switch (path) {
    case 'metadata.name':
      return meta.name ?? '';
    case 'metadata.namespace':
      return meta.namespace ?? '';
    case 'metadata.uid':
      return meta.uid ?? '';
    case 'metadata.labels':
      return lines(meta.labels);
    case 'metadata.annotations':
      return lines(meta.annotations);
    case 'spec.nodeName':
      return place.nodeName;
    case 'spec.serviceAccountName':
      return pod.spec.serviceAccountName ?? '';
    case 'status.hostIP':
      return place.hostIps[0] ?? '';
    case 'status.hostIPs':
      return place.hostIps.join(',');
    case 'status.podIP':
      return place.podIps[0] ?? '';
    case 'status.podIPs':
      return place.podIps.join(',');
    default:
      return undefined;
  }
}

function lines(map: Readonly<Record<string, string>> | undefined): string {
  return Object.entries(map ?? {})
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, value]) => `${key}=${JSON.stringify(value)}`)
    .join('\n');
}
