import { randomBytes, randomUUID } from 'node:crypto';

const random = (bytes: number): string => randomBytes(bytes).toString('hex');

/** A pod of about 1.5 KB once the server has completed it; ids are random so that nothing compresses or compares unfairly well. */
export function podManifest(name: string, namespace: string): Record<string, unknown> {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace,
      labels: { app: 'bench', 'pod-template-hash': random(5), tier: 'backend' },
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

/** An HTTP/1.1 request as bytes on the wire. */
export function httpRequest(method: string, path: string, body?: string, headers: Readonly<Record<string, string>> = {}): string {
  const lines = [`${method} ${path} HTTP/1.1`, 'Host: 127.0.0.1', 'Accept: application/json'];
  for (const [name, value] of Object.entries(headers)) lines.push(`${name}: ${value}`);
  if (body !== undefined) lines.push('Content-Type: application/json', `Content-Length: ${Buffer.byteLength(body)}`);
  return `${lines.join('\r\n')}\r\n\r\n${body ?? ''}`;
}
