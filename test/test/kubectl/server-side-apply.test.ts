import { kubectlTest, namespaceFor } from '../../src/kubectl-cluster.ts';

const test = await kubectlTest();

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
