import { until } from '@keelson/test-support';
import { kubectlTest, namespaceFor } from '../../src/kubectl-cluster.ts';

const test = kubectlTest();

const labels = { app: 'web' };
const deployment = (replicas: number | undefined, container: object = {}) => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'web' },
  spec: {
    ...(replicas === undefined ? {} : { replicas }),
    selector: { matchLabels: labels },
    template: { metadata: { labels }, spec: { containers: [{ name: 'main', image: 'nginx:1.27', ...container }] } },
  },
});

interface Owned {
  readonly manager: string;
  readonly operation: string;
  readonly subresource?: string;
  readonly fieldsV1: { readonly 'f:spec'?: Record<string, unknown> };
}

test('apply --server-side: conflicts, force, diff and owners of fields', async (t) => {
  const { kubectl } = t.context;
  const namespace = await namespaceFor(kubectl, 'server-side apply');
  const apply = (object: object, ...more: string[]) =>
    kubectl.try(['apply', '--server-side', '-n', namespace, '-f', '-', ...more], { input: JSON.stringify(object) });
  const owners = async () => {
    const shown = await kubectl.json<{ metadata: { managedFields?: Owned[] } }>([
      ...['get', 'deployment', 'web', '-n', namespace, '--show-managed-fields'],
    ]);
    return shown.metadata.managedFields ?? [];
  };
  t.is((await apply(deployment(0))).stdout, 'deployment.apps/web serverside-applied\n');
  t.is((await apply(deployment(0))).code, 0);

  const conflict = await apply(deployment(0, { image: 'nginx:1.28' }), '--field-manager=other');
  t.is(conflict.code, 1);
  t.regex(
    conflict.stderr,
    /Apply failed with 1 conflict: conflict with "kubectl": \.spec\.template\.spec\.containers\[name="main"\]\.image/,
  );
  const input = { input: JSON.stringify(deployment(0, { image: 'nginx:1.28' })) };
  const diff = await kubectl.try(['diff', '--server-side', '--force-conflicts', '-n', namespace, '-f', '-'], input);
  t.is(diff.code, 1);
  t.regex(diff.stdout, /^-.*image: nginx:1\.27\n\+.*image: nginx:1\.28$/m);
  const forced = await apply(
    deployment(undefined, { image: 'nginx:1.28' }),
    '--field-manager=other',
    '--force-conflicts',
  );
  t.is(forced.code, 0, forced.stderr);

  await kubectl.run(['scale', 'deployment', 'web', '-n', namespace, '--replicas=1']);
  const scaled = (await owners()).find(({ subresource }) => subresource === 'scale');
  t.like(scaled, { operation: 'Update', fieldsV1: { 'f:spec': { 'f:replicas': {} } } });
  t.regex(
    (await apply(deployment(0))).stderr,
    /conflicts with .* with subresource "scale" using apps\/v1:\n- \.spec\.replicas/,
  );

  // The port is removed when its only owner leaves it out.
  await apply(deployment(undefined, { image: 'nginx:1.28', ports: [{ containerPort: 80 }] }), '--field-manager=other');
  await apply(deployment(undefined, { image: 'nginx:1.28' }), '--field-manager=other');
  const path = '{.spec.template.spec.containers[0].ports}';
  t.is(await kubectl.run(['get', 'deployment', 'web', '-n', namespace, '-o', `jsonpath=${path}`]), '');
});

test('an object of client-side apply is taken over by apply --server-side', async (t) => {
  const { kubectl } = t.context;
  const namespace = await namespaceFor(kubectl, 'taken over');
  const run = (args: readonly string[], object: object) =>
    kubectl.run([...args, '-n', namespace, '-f', '-'], { input: JSON.stringify(object) });
  const map = (data: object) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'map' }, data });
  await run(['apply'], map({ a: '1', b: '1' }));
  const other = await kubectl.try(['apply', '--server-side', '--field-manager=ci', '-n', namespace, '-f', '-'], {
    input: JSON.stringify(map({ a: '2' })),
  });
  t.regex(other.stderr, /conflict with "kubectl-client-side-apply" using v1: \.data\.a/);
  await run(['apply', '--server-side'], map({ a: '3' }));
  const shown = await kubectl.json<{ data: object; metadata: { managedFields: Owned[] } }>([
    ...['get', 'configmap', 'map', '-n', namespace, '--show-managed-fields'],
  ]);
  t.deepEqual(shown.data, { a: '3' });
  t.deepEqual(shown.metadata.managedFields.map(({ manager, operation }) => `${manager} ${operation}`).sort(), [
    'kubectl Apply',
    'kubectl-last-applied Apply',
  ]);
  const last = await kubectl.run(['apply', 'view-last-applied', 'configmap', 'map', '-n', namespace]);
  t.regex(last, /a: "3"/);
});

const definition = (kind: string, group: string) => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `${kind.toLowerCase()}s.${group}` },
  spec: {
    ...{ group, scope: 'Namespaced', names: { plural: `${kind.toLowerCase()}s`, singular: kind.toLowerCase(), kind } },
    versions: [
      {
        ...{ name: 'v1', served: true, storage: true },
        schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
      },
    ],
  },
});

test('apply --prune and diff --prune delete and show omitted objects: of listed kinds, and of an ApplySet', async (t) => {
  const { kubectl } = t.context;
  const namespace = await namespaceFor(kubectl, 'prune');
  const metadata = (name: string) => ({ name, labels: { app: 'web', set: 'one' } });
  const rope = (length: number) => ({
    ...{ apiVersion: 'ropes.example.com/v1', kind: 'Rope', metadata: metadata('rope'), spec: { length } },
  });
  const map = (name: string, data = { a: '1' }) => ({
    ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: metadata(name), data },
  });
  const service = { apiVersion: 'v1', kind: 'Service', metadata: metadata('web'), spec: { ports: [{ port: 80 }] } };
  const deployed = { ...deployment(0), metadata: metadata('web') };
  const run = (items: readonly object[], words: readonly string[], env = {}) => {
    const input = JSON.stringify({ apiVersion: 'v1', kind: 'List', items });
    return kubectl.try([...words, '-n', namespace, '-f', '-'], { input, env });
  };
  const listed = ['core/v1/ConfigMap', 'apps/v1/Deployment', 'ropes.example.com/v1/Rope'];
  const prune = ['--prune', '-l', 'set=one', ...listed.map((kind) => `--prune-allowlist=${kind}`)];
  t.is((await run([definition('Rope', 'ropes.example.com')], ['apply'])).code, 0);
  await kubectl.run(['wait', '--for=condition=Established', 'crd/ropes.ropes.example.com', '--timeout=60s']);
  t.is((await run([map('created')], ['create'])).code, 0);
  const first = [map('kept'), map('old'), service, deployed, rope(1)];
  await until(async () => (await run(first, ['apply', ...prune])).code === 0, 'kubectl knows the kind');
  t.regex((await run(first, ['apply', ...prune])).stdout, /^(\S+ unchanged\n){5}$/);

  const changed = [map('kept', { a: '2' }), rope(2)];
  const diff = await run(changed, ['diff', ...prune]);
  t.is(diff.code, 1, diff.stderr);
  for (const line of ['-  a: "1"', '+  a: "2"', '-  length: 1', '+  length: 2', '-  name: old', '-kind: Deployment']) {
    t.true(diff.stdout.includes(`\n${line}\n`), `${line}\n${diff.stdout}`);
  }
  t.false(diff.stdout.includes('kind: Service'), 'a kind that is not listed');
  t.deepEqual((await run(changed, ['apply', ...prune])).stdout.trim().split('\n').sort(), [
    'configmap/kept configured',
    'configmap/old pruned',
    'deployment.apps/web pruned',
    'rope.ropes.example.com/rope configured',
  ]);

  const env = { KUBECTL_APPLYSET: 'true' };
  for (const words of [['--applyset=team'], ['--applyset=configmap/team', '--server-side', '--force-conflicts']]) {
    const set = ['apply', '--prune', ...words];
    t.is((await run([map('kept'), map(`${words.length}`), deployed, rope(3)], set, env)).code, 0);
    const { stdout } = await run([map('kept')], set, env);
    t.deepEqual(stdout.trim().split('\n').slice(1).sort(), [
      `configmap/${words.length} pruned`,
      'deployment.apps/web pruned',
      'rope.ropes.example.com/rope pruned',
    ]);
    if (words.length === 1) await kubectl.run(['delete', 'configmap', 'kept', '-n', namespace]);
  }
  const parent = await kubectl.json<{ metadata: { labels: object; annotations: object } }>([
    ...['get', 'configmap', 'team', '-n', namespace],
  ]);
  t.regex(JSON.stringify(parent.metadata.labels), /"applyset.kubernetes.io\/id":"applyset-\S+-v1"/);
  t.like(parent.metadata.annotations, { 'applyset.kubernetes.io/contains-group-kinds': 'ConfigMap' });
  const names = await kubectl.run(['get', 'configmap,service,deployment,rope', '-n', namespace, '-o', 'name']);
  t.deepEqual(names.trim().split('\n'), [
    ...['configmap/created', 'configmap/kept', 'configmap/kube-root-ca.crt', 'configmap/team', 'service/web'],
  ]);
});
