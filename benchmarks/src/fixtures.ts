import { randomBytes, randomUUID } from 'node:crypto';
import { numberDigits } from './load/protocol.ts';

const random = (bytes: number): string => randomBytes(bytes).toString('hex');

/**
 * A pod of about 1.5 KB once the server has completed it; ids are random so that nothing compresses or compares
 * unfairly well.
 */
export function podManifest(name: string, namespace: string, shard = '0'): Record<string, unknown> {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace,
      labels: { app: 'bench', 'pod-template-hash': random(5), shard, tier: 'backend' },
      annotations: { 'example.com/checksum': random(16) },
    },
    spec: {
      nodeName: `node-${random(2)}`,
      containers: [
        {
          name: 'main',
          image: `registry.example.com/team/app:${random(6)}`,
          command: ['/bin/app', '--listen=:8080', `--id=${randomUUID()}`],
          env: [
            { name: 'POD_NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
            { name: 'TOKEN', value: random(16) },
          ],
          ports: [{ name: 'http', containerPort: 8080 }],
          resources: { requests: { cpu: '100m', memory: '128Mi' }, limits: { memory: '256Mi' } },
          readinessProbe: { httpGet: { path: '/ready', port: 'http' } },
          volumeMounts: [{ name: 'config', mountPath: '/etc/app', readOnly: true }],
        },
      ],
      volumes: [{ name: 'config', configMap: { name: 'app-config' } }],
    },
  };
}

/**
 * The same pod as a controller creates it, from a template whose defaults the server filled in when it was stored: 1.3
 * KB, nearly all that the server keeps and answers, so that a floor which parses and stringifies what it gets moves the
 * same bytes.
 */
export function templatedPod(name: string, namespace: string): Record<string, unknown> {
  const id = randomUUID();
  return {
    kind: 'Pod',
    apiVersion: 'v1',
    metadata: {
      name,
      namespace,
      labels: { app: 'bench', 'pod-template-hash': random(5), shard: '0', tier: 'backend' },
      annotations: { 'example.com/checksum': random(16) },
    },
    spec: {
      volumes: [{ name: 'config', configMap: { name: 'app-config', defaultMode: 420 } }],
      containers: [
        {
          name: 'main',
          image: `registry.example.com/team/app:${random(6)}`,
          command: ['/bin/app', '--listen=:8080', `--id=${id}`],
          ports: [{ name: 'http', containerPort: 8080, protocol: 'TCP' }],
          env: [
            { name: 'POD_NAME', valueFrom: { fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.name' } } },
            { name: 'TOKEN', value: random(16) },
          ],
          resources: { limits: { memory: '256Mi' }, requests: { cpu: '100m', memory: '128Mi' } },
          volumeMounts: [{ name: 'config', readOnly: true, mountPath: '/etc/app' }],
          readinessProbe: {
            httpGet: { path: '/ready', port: 'http', scheme: 'HTTP' },
            timeoutSeconds: 1,
            periodSeconds: 10,
            successThreshold: 1,
            failureThreshold: 3,
          },
          terminationMessagePath: '/dev/termination-log',
          terminationMessagePolicy: 'File',
          imagePullPolicy: 'IfNotPresent',
        },
      ],
      restartPolicy: 'Always',
      terminationGracePeriodSeconds: 30,
      dnsPolicy: 'ClusterFirst',
      nodeName: `node-${random(2)}`,
      securityContext: {},
      schedulerName: 'default-scheduler',
      enableServiceLinks: true,
    },
  };
}

/** Length of a body on the wire, where every `{n}` has been replaced by a number. */
function wireLength(body: string): number {
  return Buffer.byteLength(body) + (body.split('{n}').length - 1) * (numberDigits - '{n}'.length);
}

/** An HTTP/1.1 request as bytes on the wire; `{n}` in it becomes a number when it is sent. */
export function httpRequest(
  method: string,
  path: string,
  body?: string,
  headers: Readonly<Record<string, string>> = {},
): string {
  const lines = [`${method} ${path} HTTP/1.1`, 'Host: 127.0.0.1', 'Accept: application/json'];
  const all =
    body === undefined
      ? headers
      : { 'Content-Type': 'application/json', ...headers, 'Content-Length': wireLength(body) };
  for (const [name, value] of Object.entries(all)) lines.push(`${name}: ${value}`);
  return `${lines.join('\r\n')}\r\n\r\n${body ?? ''}`;
}

/** A merge patch that changes one annotation, to another value each time. */
export function patchRequest(path: string, headers: Readonly<Record<string, string>> = {}): string {
  return httpRequest('PATCH', path, '{"metadata":{"annotations":{"count":"{n}"}}}', {
    ...headers,
    'Content-Type': 'application/merge-patch+json',
  });
}

/** Requests of the user of a bearer token; bodies are JSON. */
export function requestsOf(token: string) {
  const authorization = { Authorization: `Bearer ${token}` };
  return {
    request: (method: string, path: string, body?: object, headers: Readonly<Record<string, string>> = {}): string =>
      httpRequest(method, path, body && JSON.stringify(body), { ...authorization, ...headers }),
    patchRequest: (path: string): string => patchRequest(path, authorization),
  };
}

/** A ConfigMap of about 1.2 KB. */
export const configMap = (name: string): object => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, labels: { app: 'bench' }, annotations: { count: '{n}' } },
  data: { config: random(384), 'other.conf': random(96) },
});

/** Smaller than any frame of a watched {@link configMap}, and greater than half of one. */
export const leastConfigMapFrame = 1_100;

/** Watches that share an HTTP/2 connection. */
export const sharedStreams = 10;
