import { kubectlTest, namespaceFor } from '../../src/kubectl-cluster.ts';

const test = kubectlTest();

/** Commands that build an object of a Go type and send it as protobuf. */
const creates: Readonly<Record<string, readonly string[]>> = {
  configmap: ['thing', '--from-literal=mode=fast', '--from-literal=empty='],
  secret: ['generic', 'thing', '--from-literal=password=s3cret'],
  deployment: ['thing', '--image=nginx:1.27', '--replicas=0', '--port=8080'],
  service: ['clusterip', 'thing', '--tcp=80:http'],
  serviceaccount: ['thing'],
  ingress: ['thing', '--rule=example.com/path*=thing:80,tls=cert', '--class=own'],
};

/** Without what Go types cannot leave out. */
function withoutZeros(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutZeros);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([key, member]) => [key, withoutZeros(member)] as const);
  const empty = (member: unknown): boolean =>
    member === null || (typeof member === 'object' && Object.keys(member as object).length === 0);
  return Object.fromEntries(entries.filter(([, member]) => !empty(member)));
}

for (const [resource, args] of Object.entries(creates)) {
  test(`create ${resource}: the protobuf response that kubectl decodes equals the object in JSON`, async (t) => {
    const { kubectl } = t.context;
    const namespace = await namespaceFor(kubectl, `typed create of ${resource}`);
    const inNamespace = ['-n', namespace];
    const created = await kubectl.json(['create', resource, ...args, ...inNamespace]);
    const shown = await kubectl.json(['get', resource, 'thing', ...inNamespace]);
    t.deepEqual(withoutZeros(created), withoutZeros(shown));
    const again = await kubectl.try(['create', resource, ...args, ...inNamespace]);
    t.is(again.code, 1);
    t.regex(again.stderr, /already exists/);
    const invalid = await kubectl.try([
      'create',
      resource,
      ...args.map((word) => (word === 'thing' ? 'No_Name' : word)),
      ...inNamespace,
    ]);
    t.regex(invalid.stderr, /is invalid: metadata\.name/);
  });
}

test('create namespace, dry runs on the server', async (t) => {
  const { kubectl } = t.context;
  t.is((await kubectl.json<{ status: { phase: string } }>(['create', 'namespace', 'typed'])).status.phase, 'Active');
  const dry = await kubectl.json<{ metadata: { uid?: string } }>([
    'create',
    'configmap',
    'x',
    '-n',
    'typed',
    '--dry-run=server',
  ]);
  t.truthy(dry.metadata.uid);
  t.is((await kubectl.try(['get', 'configmap', 'x', '-n', 'typed'])).code, 1);
});

test('drain lists pods as protobuf, sends delete options as protobuf, and waits until the pods are deleted', async (t) => {
  const { kubectl } = t.context;
  const namespace = await namespaceFor(kubectl, 'typed drain');
  await kubectl.post('/api/v1/nodes', { metadata: { name: 'typed-drain' } });
  const spec = { nodeName: 'typed-drain', containers: [{ name: 'c', image: 'i' }] };
  for (const name of ['one', 'two']) {
    await kubectl.post(`/api/v1/namespaces/${namespace}/pods`, { metadata: { name }, spec });
  }
  const drained = await kubectl.run([
    'drain',
    'typed-drain',
    '--force',
    '--disable-eviction',
    '--grace-period=0',
    '--timeout=20s',
  ]);
  t.regex(drained, /node\/typed-drain drained/);
  t.is((await kubectl.run(['get', 'pods', '-n', namespace, '-o', 'name'])).trim(), '');
  const node = await kubectl.json<{ spec: { unschedulable?: boolean } }>(['get', 'node', 'typed-drain']);
  t.true(node.spec.unschedulable);
});

test('describe reads lists of events as protobuf', async (t) => {
  const { kubectl } = t.context;
  const namespace = await namespaceFor(kubectl, 'typed describe');
  const inNamespace = ['-n', namespace];
  await kubectl.run(['create', 'deployment', 'thing', '--image=nginx:1.27', ...inNamespace]);
  const { metadata } = await kubectl.json<{ metadata: { uid: string } }>([
    'get',
    'deployment',
    'thing',
    ...inNamespace,
  ]);
  const event = {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: 'thing.1' },
    involvedObject: { kind: 'Deployment', apiVersion: 'apps/v1', namespace, name: 'thing', uid: metadata.uid },
    type: 'Normal',
    reason: 'Tested',
    message: 'seen by describe',
    firstTimestamp: '2026-01-02T03:04:05Z',
    lastTimestamp: '2026-01-02T03:04:05Z',
    count: 1,
  };
  await kubectl.run(['create', ...inNamespace, '-f', '-'], { input: JSON.stringify(event) });
  const text = await kubectl.run(['describe', 'deployment', 'thing', ...inNamespace]);
  t.regex(text, /Replicas: +1 desired/);
  t.regex(text, /Normal +Tested .*seen by describe/);
});

test('auth can-i and auth can-i --list report the permissions of the user', async (t) => {
  const { kubectl } = t.context;
  t.is((await kubectl.run(['auth', 'can-i', 'create', 'pods'])).trim(), 'yes');
  t.regex(await kubectl.run(['auth', 'can-i', '--list']), /\*/);
});
