import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createHttpClient, kubeconfigAccess, loadKubeconfig } from '@keelson/client';
import { isStatusError, type KubeObject } from '@keelson/core';
import { APIService, ClusterRole, ClusterRoleBinding, ConfigMap, Service } from '@keelson/kinds';
import { until } from '@keelson/test-support';
import test, { type ExecutionContext } from 'ava';
import { type RunningServer, startServer } from '../../src/cli/serve.ts';
import { loadOptions } from '../../src/config/load-options.ts';

const kinds = fileURLToPath(new URL('../../../../../examples/own-kind/dist/src/backup.js', import.meta.url));
const backups = { group: 'ops.example.com', version: 'v1', resource: 'backups' };

async function serve(t: ExecutionContext, folder: string, ...words: string[]): Promise<RunningServer> {
  const common = ['--data', folder, '--storage=memory:', '--listen=127.0.0.1:0', '--log-level=silent'];
  const server = await startServer(await loadOptions([...common, ...words], {}), false);
  t.teardown(() => server.stop());
  return server;
}

async function clientOf(t: ExecutionContext, server: RunningServer, as?: string) {
  const { options } = await kubeconfigAccess(await loadKubeconfig({ path: server.kubeconfig }));
  const client = createHttpClient({ ...options, ...(as === undefined ? {} : { impersonate: { user: as } }) });
  t.teardown(() => client.close());
  return client;
}

test('a server that extends a cluster takes users and permissions from it', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'keelson-extended-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const cluster = await serve(t, join(folder, 'cluster'));
  const admin = await clientOf(t, cluster);
  await until(async () => {
    const map = await cluster.api
      .resource(ConfigMap)
      .namespace('kube-system')
      .get('extension-apiserver-authentication');
    return map.data?.['requestheader-client-ca-file'] !== undefined;
  });
  const delegation = [
    '--authentication-kubeconfig',
    cluster.kubeconfig,
    '--authorization-kubeconfig',
    cluster.kubeconfig,
  ];
  const extension = await serve(
    t,
    join(folder, 'extension'),
    ...['--kinds', kinds, '--tls-extra-names=backups.default.svc', '--authorization-mode=Webhook', ...delegation],
  );
  const { port } = new URL(extension.url);
  await admin
    .resource(Service)
    .namespace('default')
    .create({
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'backups' },
      spec: { type: 'ExternalName', externalName: 'localhost' },
    });
  await admin.resource(APIService).create({
    apiVersion: 'apiregistration.k8s.io/v1',
    kind: 'APIService',
    metadata: { name: 'v1.ops.example.com' },
    spec: {
      ...{ group: 'ops.example.com', version: 'v1', groupPriorityMinimum: 2000, versionPriority: 10 },
      caBundle: (await readFile(extension.authorityFile)).toString('base64'),
      service: { namespace: 'default', name: 'backups', port: Number(port) },
    },
  });
  await until(async () => {
    const { status } = await admin.resource(APIService).get('v1.ops.example.com');
    return status?.conditions?.some(({ type, status: state }) => type === 'Available' && state === 'True') ?? false;
  });
  const objects = admin.dynamic(backups).namespace('default');
  const backup = { apiVersion: 'ops.example.com/v1', kind: 'Backup', metadata: { name: 'nightly' } };
  await objects.create({ ...backup, spec: { database: 'orders' } } as KubeObject);
  t.like(await extension.api.dynamic(backups).namespace('default').get('nightly'), { spec: { database: 'orders' } });

  // A permission in the cluster is one at the extension; without it both refuse.
  const ann = (await clientOf(t, cluster, 'ann')).dynamic(backups).namespace('default');
  const refused = await t.throwsAsync(ann.get('nightly'));
  t.true(isStatusError(refused) && refused.code === 403);
  const metadata = { name: 'backup-readers' };
  await admin.resource(ClusterRole).create({
    metadata,
    rules: [{ apiGroups: ['ops.example.com'], resources: ['backups'], verbs: ['get'] }],
  } as ClusterRole);
  await admin.resource(ClusterRoleBinding).create({
    metadata,
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'backup-readers' },
    subjects: [{ kind: 'User', name: 'ann', apiGroup: 'rbac.authorization.k8s.io' }],
  } as ClusterRoleBinding);
  await until(async () =>
    ann.get('nightly').then(
      () => true,
      () => false,
    ),
  );

  // Client certificates of the cluster are accepted without the front proxy, too.
  const { options } = await kubeconfigAccess(await loadKubeconfig({ path: cluster.kubeconfig }));
  const direct = createHttpClient({ ...options, server: extension.url, ca: await readFile(extension.authorityFile) });
  t.teardown(() => direct.close());
  t.is((await direct.dynamic(backups).namespace('default').list()).items.length, 1);
});

test('a cluster that cannot be asked is a usage error', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'keelson-extended-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const file = join(folder, 'config');
  await writeFile(file, 'apiVersion: v1\nkind: Config\n');
  await t.throwsAsync(serve(t, join(folder, 'data'), '--authentication-kubeconfig', file), {
    name: 'UsageError',
    message: /^--authentication-kubeconfig .*: no context is selected/,
  });
  const both = ['--authentication-token-webhook-config-file', file, '--authentication-kubeconfig', file];
  await t.throwsAsync(loadOptions(both, {}), { message: /exclude each other/ });
});
