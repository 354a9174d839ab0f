/** A container that is valid before defaults. */
export const container = { name: 'app', image: 'nginx:1.25' };

/** A pod manifest; `spec` is laid over the smallest valid one. */
export function podManifest(spec: Record<string, unknown> = {}, metadata: Record<string, unknown> = {}) {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p', namespace: 'default', ...metadata },
    spec: { containers: [container], ...spec },
  };
}

/** A workload manifest; `spec` is laid over the smallest valid one. */
export function workloadManifest(apiVersion: string, kind: string, spec: Record<string, unknown> = {}) {
  const labels = { app: 'web' };
  return {
    apiVersion,
    kind,
    metadata: { name: 'web', namespace: 'default' },
    spec: {
      ...(apiVersion === 'apps/v1' ? { selector: { matchLabels: labels } } : {}),
      template: { metadata: { labels }, spec: { containers: [container] } },
      ...spec,
    },
  };
}

/** A service manifest with one port; `spec` is laid over it. */
export function serviceManifest(spec: Record<string, unknown> = {}) {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'web', namespace: 'default' },
    spec: { ports: [{ port: 80 }], selector: { app: 'web' }, ...spec },
  };
}
