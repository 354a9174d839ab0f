import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The guestbook's manifests, a folder for `kubectl -f`. */
export const guestbookFolder = fileURLToPath(new URL('../../../examples/guestbook/manifests', import.meta.url));

/** The guestbook in a namespace of another name, as one text for `kubectl -f -`. */
export async function guestbookIn(namespace: string): Promise<string> {
  const files = (await readdir(guestbookFolder)).sort();
  const texts = await Promise.all(files.map((file) => readFile(join(guestbookFolder, file), 'utf8')));
  return texts
    .join('---\n')
    .replaceAll('namespace: guestbook', `namespace: ${namespace}`)
    .replace(/(kind: Namespace\nmetadata:\n {2}name: )guestbook/, `$1${namespace}`);
}

const template = (app: string) => ({
  metadata: { labels: { app } },
  spec: { containers: [{ name: 'main', image: 'main:1.0' }] },
});

/**
 * One small manifest per kind of the specification, all of the same name; an Event must name the namespace it is about.
 */
export function manifestsOf(
  name: string,
  namespace = 'default',
): Readonly<Record<string, Readonly<Record<string, unknown>>>> {
  const metadata = { name, labels: { app: name } };
  return {
    configmaps: { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { key: 'value' } },
    events: {
      apiVersion: 'v1',
      kind: 'Event',
      metadata,
      involvedObject: { apiVersion: 'v1', kind: 'Pod', name: 'some-pod', namespace },
      reason: 'Tested',
      message: 'an event',
      type: 'Normal',
    },
    secrets: { apiVersion: 'v1', kind: 'Secret', metadata, data: { password: 'aGlkZGVu' } },
    services: { apiVersion: 'v1', kind: 'Service', metadata, spec: { selector: { app: name }, ports: [{ port: 80 }] } },
    'daemonsets.extensions': {
      apiVersion: 'extensions/v1beta1',
      kind: 'DaemonSet',
      metadata,
      spec: { template: template(name) },
    },
    'deployments.extensions': {
      apiVersion: 'extensions/v1beta1',
      kind: 'Deployment',
      metadata,
      spec: { replicas: 2, template: template(name) },
    },
    'ingresses.extensions': {
      apiVersion: 'extensions/v1beta1',
      kind: 'Ingress',
      metadata,
      spec: { backend: { serviceName: name, servicePort: 80 } },
    },
    'replicasets.extensions': {
      apiVersion: 'extensions/v1beta1',
      kind: 'ReplicaSet',
      metadata,
      spec: { replicas: 2, template: template(name) },
    },
  };
}
