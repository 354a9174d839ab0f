import { readFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { until } from '@keelson/test-support';
import { startKeelson } from '../../src/keelson-process.ts';
import { kubectlTest, namespaceFor } from '../../src/kubectl-cluster.ts';

const test = kubectlTest();
const kinds = fileURLToPath(new URL('../../../../examples/own-kind/dist/src/backup.js', import.meta.url));

interface Review {
  readonly request: { readonly uid: string; readonly name: string; readonly object: { readonly data?: object } };
}

test('webhooks change, warn about and deny what kubectl applies', async (t) => {
  const { kubectl, folder } = t.context;
  const namespace = await namespaceFor(kubectl, 'admission webhooks');
  const [cert, key, authority] = await Promise.all(
    ['server.crt', 'server.key', 'ca.crt'].map((file) => readFile(`${folder}/data/${file}`)),
  );
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    let text = '';
    for await (const chunk of request) text += String(chunk);
    const { request: review } = JSON.parse(text) as Review;
    const patch = [{ op: 'add', path: '/metadata/annotations', value: { 'example.com/owner': 'team-a' } }];
    const decision = request.url?.startsWith('/change')
      ? { allowed: true, patchType: 'JSONPatch', patch: Buffer.from(JSON.stringify(patch)).toString('base64') }
      : {
          allowed: review.name !== 'secret-plans',
          status: { message: 'names must not be secret' },
          warnings: [`${review.name} was examined`],
        };
    response.end(
      JSON.stringify({
        ...{ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview' },
        response: { uid: review.uid, ...decision },
      }),
    );
  };
  const hooks = createServer({ cert, key }, (request, response) => void answer(request, response));
  await new Promise<void>((resolve) => hooks.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    hooks.closeAllConnections();
    hooks.close();
  });
  const { port } = hooks.address() as AddressInfo;
  const configuration = (kind: string, path: string) => ({
    ...{ apiVersion: 'admissionregistration.k8s.io/v1', kind },
    metadata: { name: 'examples' },
    webhooks: [
      {
        name: 'examples.example.com',
        clientConfig: { url: `https://127.0.0.1:${port}${path}`, caBundle: authority?.toString('base64') },
        rules: [{ operations: ['CREATE'], apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'] }],
        namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
        sideEffects: 'None',
        admissionReviewVersions: ['v1'],
      },
    ],
  });
  for (const [kind, path] of [
    ['MutatingWebhookConfiguration', '/change'],
    ['ValidatingWebhookConfiguration', '/check'],
  ] as const)
    await kubectl.run(['apply', '-f', '-'], { input: JSON.stringify(configuration(kind, path)) });
  t.regex(
    await kubectl.run(['get', 'mutatingwebhookconfigurations,validatingwebhookconfigurations']),
    /validatingwebhookconfiguration\.admissionregistration\.k8s\.io\/examples\s+1\s/,
  );
  const create = (name: string, ...more: string[]) => kubectl.try(['-n', namespace, 'create', 'cm', name, ...more]);
  await until(async () => (await create('probe', '--dry-run=server')).stderr.includes('Warning: probe was examined'));
  t.regex((await create('plans')).stderr, /^Warning: plans was examined$/m);
  const owner = '-o=jsonpath={.metadata.annotations.example\\.com/owner}';
  t.is(await kubectl.run(['-n', namespace, 'get', 'cm', 'plans', owner]), 'team-a');
  t.regex(
    (await create('secret-plans')).stderr,
    /admission webhook "examples\.example\.com" denied the request: names must not be secret/,
  );
});

test('kubectl uses an API that another server serves as if it were one of the cluster', async (t) => {
  const { kubectl, folder, server } = t.context;
  const namespace = await namespaceFor(kubectl, 'aggregated api');
  t.regex(await kubectl.run(['get', 'apiservices']), /^v1\.apps\s+Local\s+True\s/m);
  const extension = await startKeelson(`${folder}/extension`, [
    ...['--storage', 'memory:', '--kinds', kinds, '--tls-extra-names', `backups.${namespace}.svc`],
    // Namespaces are those of the cluster.
    ...['--authentication-kubeconfig', server.kubeconfig, '--disable-admission-plugins', 'NamespaceLifecycle'],
    ...['--authorization-mode', 'Webhook', '--authorization-kubeconfig', server.kubeconfig],
  ]);
  t.teardown(() => extension.stop());
  const service = { namespace, name: 'backups', port: Number(new URL(extension.url).port) };
  const caBundle = (await readFile(`${folder}/extension/ca.crt`)).toString('base64');
  const group = { group: 'ops.example.com', version: 'v1' };
  for (const object of [
    {
      ...{ apiVersion: 'v1', kind: 'Service', metadata: { name: 'backups', namespace } },
      spec: { type: 'ExternalName', externalName: 'localhost' },
    },
    {
      ...{ apiVersion: 'apiregistration.k8s.io/v1', kind: 'APIService', metadata: { name: 'v1.ops.example.com' } },
      spec: { ...group, groupPriorityMinimum: 2000, versionPriority: 10, caBundle, service },
    },
  ])
    await kubectl.run(['apply', '-f', '-'], { input: JSON.stringify(object) });
  // Commands of other files would find an API without a server.
  t.teardown(() => kubectl.run(['delete', 'apiservice', 'v1.ops.example.com']));
  await kubectl.run(['wait', '--for=condition=Available', 'apiservice/v1.ops.example.com', '--timeout=60s']);
  t.regex(
    await kubectl.run(['get', 'apiservices']),
    new RegExp(`^v1\\.ops\\.example\\.com\\s+${namespace}/backups\\s+True`, 'm'),
  );
  await until(async () => (await kubectl.run(['api-resources', '--api-group=ops.example.com'])).includes('backups'));
  t.regex(await kubectl.run(['explain', 'backups.spec']), /How many copies are kept/);
  const watch = kubectl.follow(['-n', namespace, 'get', 'backups', '-w', '--output-watch-events']);
  t.teardown(() => watch.stop());
  const backup = { apiVersion: 'ops.example.com/v1', kind: 'Backup', metadata: { name: 'nightly', namespace } };
  await kubectl.run(['apply', '-f', '-'], { input: JSON.stringify({ ...backup, spec: { database: 'orders' } }) });
  await watch.waitFor(/^ADDED\s+nightly\s+orders\s+7/);
  const denied = await kubectl.try(['-n', namespace, 'get', 'backups', '--as', 'ann']);
  t.regex(denied.stderr, /Forbidden/);
  await extension.stop();
  // The first call that fails has the server examined.
  t.regex(
    (await kubectl.try(['-n', namespace, 'get', 'backups'])).stderr,
    /unable to handle the request|ServiceUnavailable/,
  );
  await until(async () =>
    /^v1\.ops\S+\s+\S+\s+False \(FailedDiscoveryCheck\)/m.test(await kubectl.run(['get', 'apiservices'])),
  );
});
