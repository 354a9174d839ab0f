import {
  type ConnectCall,
  type ConnectSubresource,
  internalContext,
  isStatusError,
  type KindDefinition,
  type KubeObject,
  type StatusError,
} from '@keelson/core';
import test, { type ExecutionContext } from 'ava';
import { Node, Pod, Service } from '../src/index.ts';
import { container, podManifest, serviceManifest } from './helpers/manifests.ts';

function find(kind: KindDefinition, name: string): ConnectSubresource {
  const found = kind.subresources.find((subresource) => subresource.name === name);
  if (found?.type !== 'connect') throw new Error(`${kind.kind} has no connect subresource ${name}`);
  return found;
}

function locate(
  kind: KindDefinition,
  subresource: string,
  call: { parent: object } & Partial<Omit<ConnectCall, 'parent'>>,
) {
  const { parent, ...rest } = call;
  return find(kind, subresource).locate({
    context: internalContext(),
    parent: parent as KubeObject,
    name: (parent as KubeObject).metadata?.name ?? '',
    options: {},
    path: '/',
    query: '',
    read: async () => undefined,
    ...rest,
  });
}

async function refused(t: ExecutionContext, run: () => unknown): Promise<[code: number, message: string]> {
  const error = (await t.throwsAsync(async () => {
    await run();
  })) as StatusError;
  t.true(isStatusError(error));
  return [error.code, error.message];
}

const placed = podManifest({ nodeName: 'n1' });
const two = podManifest({
  nodeName: 'n1',
  containers: [container, { ...container, name: 'side' }],
  initContainers: [{ ...container, name: 'first' }],
});

test('a log is located at the agent of the node, for the only or the named container, with the given options', (t) => {
  t.deepEqual(locate(Pod, 'log', { parent: placed }), {
    to: 'agent',
    node: 'n1',
    path: '/containerLogs/default/p/app',
    query: '',
    anyCertificate: false,
  });
  const options = {
    container: 'first',
    follow: true,
    previous: false,
    timestamps: true,
    tailLines: 0,
    sinceTime: '2026-01-02T00:00:00Z',
    insecureSkipTLSVerifyBackend: true,
  };
  t.deepEqual(locate(Pod, 'log', { parent: two, options }), {
    to: 'agent',
    node: 'n1',
    path: '/containerLogs/default/p/first',
    query: 'follow=true&timestamps=true&sinceTime=2026-01-02T00%3A00%3A00Z&tailLines=0',
    anyCertificate: true,
  });
});

test('a pod without a node has an empty log, and its streams are rejected', async (t) => {
  t.deepEqual(locate(Pod, 'log', { parent: podManifest() }), { to: 'nothing' });
  for (const name of ['exec', 'attach', 'portforward']) {
    t.deepEqual(await refused(t, () => locate(Pod, name, { parent: podManifest() })), [
      400,
      'pod p does not have a host assigned',
    ]);
  }
});

test('of several containers one has to be named, and it has to exist', async (t) => {
  for (const name of ['log', 'exec', 'attach']) {
    t.deepEqual(await refused(t, () => locate(Pod, name, { parent: two })), [
      400,
      'a container name must be specified for pod p, choose one of: [first app side]',
    ]);
    t.deepEqual(await refused(t, () => locate(Pod, name, { parent: two, options: { container: 'x' } })), [
      400,
      'container x is not valid for pod p',
    ]);
  }
});

test('invalid options of a log are rejected field by field', (t) => {
  const errors = (options: Record<string, unknown>) =>
    (find(Pod, 'log').validate?.(options) ?? []).map(({ field }) => field);
  t.deepEqual(errors({ tailLines: -1, limitBytes: 0, sinceSeconds: 0 }), ['tailLines', 'limitBytes', 'sinceSeconds']);
  t.deepEqual(errors({ sinceSeconds: 1, sinceTime: '2026-01-02T00:00:00Z' }), ['sinceTime']);
  t.deepEqual(errors({ tailLines: 0, limitBytes: 1, sinceSeconds: 1 }), []);
});

test('requests for streams are translated to the paths and parameters of the agent', (t) => {
  const options = { stdin: true, stdout: true, stderr: false, tty: true, command: ['sh', '-c', 'a & b'] };
  const common = { to: 'agent', node: 'n1' };
  t.deepEqual(locate(Pod, 'exec', { parent: placed, options }), {
    ...common,
    path: '/exec/default/p/app',
    query: 'input=1&output=1&tty=1&command=sh&command=-c&command=a+%26+b',
  });
  t.deepEqual(locate(Pod, 'attach', { parent: placed, options }), {
    ...common,
    path: '/attach/default/p/app',
    query: 'input=1&output=1&tty=1',
  });
  t.deepEqual(locate(Pod, 'portforward', { parent: placed, options: { ports: [80, 8080] } }), {
    ...common,
    path: '/portForward/default/p',
    query: 'port=80%2C8080',
  });
});

test('the proxy of a pod leads to the named port, else the first declared one, else that of the scheme', async (t) => {
  const pod = (ports: object[] = [], podIP = '10.1.2.3') => ({
    ...podManifest({ containers: [container, { ...container, name: 'web', ports }] }),
    status: { podIP },
  });
  const found = (parent: object, name: string) => locate(Pod, 'proxy', { parent, name, path: '/a/', query: 'x=1' });
  const there = { to: 'address', host: '10.1.2.3', path: '/a/', query: 'x=1' };
  t.deepEqual(found(pod(), 'p'), { ...there, scheme: 'http', port: 80 });
  t.deepEqual(found(pod([{ containerPort: 8080 }]), 'p'), { ...there, scheme: 'http', port: 8080 });
  t.deepEqual(found(pod([{ containerPort: 8080 }]), 'https:p:8443'), { ...there, scheme: 'https', port: 8443 });
  t.deepEqual(await refused(t, () => found(pod([], '127.0.0.1'), 'p')), [400, 'address not allowed']);
  t.deepEqual(await refused(t, () => found(pod([], ''), 'p')), [400, 'address not allowed']);
  t.is((await refused(t, () => found(pod(), 'p:web')))[0], 400);
  const { parentName } = find(Pod, 'proxy');
  t.is(parentName?.('https:p:8443'), 'p');
  t.deepEqual(await refused(t, () => parentName?.('ftp:p:21')), [400, 'invalid pod request "ftp:p:21"']);
});

test('the proxy of a node leads to its agent, or to another port of it', (t) => {
  const parent = { metadata: { name: 'n1' }, status: { daemonEndpoints: { kubeletEndpoint: { Port: 10_250 } } } };
  const agent = { to: 'agent', node: 'n1', path: '/metrics', query: '', proxied: true };
  const found = (name: string) => locate(Node, 'proxy', { parent, name, path: '/metrics' });
  t.deepEqual(found('n1'), agent);
  t.deepEqual(found('https:n1:10250'), agent);
  t.deepEqual(found('n1:9100'), { to: 'node', node: 'n1', port: 9100, scheme: 'http', path: '/metrics', query: '' });
});

test('the proxy of a service leads to a ready pod behind it, and to no address that belongs to no pod', async (t) => {
  const targetRef = { kind: 'Pod', name: 'p', namespace: 'default' };
  const port = { name: 'web', port: 8080 };
  const found = async (name: string, subsets: object[]) =>
    locate(Service, 'proxy', {
      parent: serviceManifest({ ports: [{ name: 'web', port: 80 }] }),
      name,
      read: async ({ resource }) =>
        resource === 'endpoints' ? ({ subsets } as KubeObject) : ({ status: { podIP: '10.1.2.3' } } as KubeObject),
    });
  const good = [
    {
      addresses: [
        { ip: '10.9.9.9', targetRef },
        { ip: '10.1.2.3', targetRef },
      ],
      ports: [port],
    },
  ];
  const there = { to: 'address', host: '10.1.2.3', port: 8080, path: '/', query: '' };
  t.deepEqual(await found('web:web', good), { ...there, scheme: 'http' });
  t.deepEqual(
    await found('https:web:80', good),
    { ...there, scheme: 'https' },
    'by the number of the port of the service',
  );
  const none: [number, string] = [503, 'no endpoints available for service "web:web"'];
  const bad: object[][] = [
    [],
    [{ notReadyAddresses: good[0], ports: [port] }],
    [{ addresses: [{ ip: '10.1.2.3' }], ports: [port] }],
    [{ addresses: [{ ip: '127.0.0.1', targetRef }], ports: [port] }],
    [{ addresses: [{ ip: '10.1.2.3', targetRef: { ...targetRef, namespace: 'other' } }], ports: [port] }],
  ];
  for (const subsets of bad)
    t.deepEqual(await refused(t, () => found('web:web', subsets)), none, JSON.stringify(subsets));
  t.deepEqual(await refused(t, () => found('web:81', good)), [503, 'no service port 81 found for service "web"']);
});
