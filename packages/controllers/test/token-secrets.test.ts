import { ControllerManager } from '@keelson/controller-kit';
import { type ApiClient, isStatusError, StatusReason } from '@keelson/core';
import { noMetrics, silentLogger, systemClock } from '@keelson/core/runtime';
import { ConfigMap, Secret, ServiceAccount } from '@keelson/kinds';
import { until } from '@keelson/test-support';
import test, { type ExecutionContext } from 'ava';
import { type TokenAccount, tokenSecrets } from '../src/index.ts';
import { interceptedClient } from './support/intercepted-client.ts';
import { startTestPlane } from './support/test-plane.ts';

const type = 'kubernetes.io/service-account-token';
const nameAnnotation = 'kubernetes.io/service-account.name';
const uidAnnotation = 'kubernetes.io/service-account.uid';
const text = (encoded = '') => Buffer.from(encoded, 'base64').toString();

async function start(t: ExecutionContext, authority?: () => string, wrap = (client: ApiClient) => client) {
  const plane = await startTestPlane({ controllers: false });
  const signed: string[] = [];
  const sign = async ({ namespace, name, uid }: TokenAccount, secretName: string) => {
    signed.push(secretName);
    return `token of ${namespace}/${name} ${uid} in ${secretName}`;
  };
  const manager = new ControllerManager({
    client: wrap(plane.api),
    ...{ clock: systemClock, logger: silentLogger, metrics: noMetrics },
    controllers: [tokenSecrets({ sign, authority })],
  });
  await manager.start();
  t.teardown(async () => {
    await manager.stop();
    await plane.close();
  });
  const secrets = plane.client(Secret).namespace('default');
  return {
    plane,
    signed,
    secrets,
    accounts: plane.client(ServiceAccount).namespace('default'),
    create: (name: string, account: string, annotations: Record<string, string> = {}, data: Secret['data'] = {}) =>
      secrets.create({ metadata: { name, annotations: { [nameAnnotation]: account, ...annotations } }, type, data }),
    filled: (name: string) =>
      until(async () => {
        const secret = await secrets.get(name);
        return secret.metadata?.annotations?.[uidAnnotation] !== undefined && secret.data?.['token']
          ? secret
          : undefined;
      }, `${name} has a token`),
    gone: (name: string) =>
      until(async () => {
        const error = await secrets.get(name).then(
          () => undefined,
          (reason: unknown) => reason,
        );
        return isStatusError(error, StatusReason.NotFound);
      }, `${name} is deleted`),
  };
}

test('a secret for a service account is filled with a token, the namespace and the certificate authority', async (t) => {
  let pem = 'PEM 1';
  const { plane, accounts, signed, secrets, create, filled } = await start(t, () => pem);
  const account = await accounts.create({ metadata: { name: 'robot' } });
  await create('own', 'robot', {}, { more: Buffer.from('kept').toString('base64') });
  const { metadata, data } = await filled('own');
  t.is(metadata?.annotations?.[uidAnnotation], account.metadata?.uid);
  t.is(metadata?.annotations?.[nameAnnotation], 'robot');
  t.deepEqual(Object.fromEntries(Object.entries(data ?? {}).map(([key, value]) => [key, text(value)])), {
    token: `token of default/robot ${account.metadata?.uid} in own`,
    namespace: 'default',
    'ca.crt': 'PEM 1',
    more: 'kept',
  });
  // The config map of the authority is updated with each change of it.
  pem = 'PEM 2';
  const maps = plane.client(ConfigMap).namespace('default');
  await maps.create({ metadata: { name: 'kube-root-ca.crt' }, data: { 'ca.crt': pem } });
  await until(async () => text((await secrets.get('own')).data?.['ca.crt']) === 'PEM 2');
  // A removed value is restored; what is present is not replaced.
  const token = (await secrets.get('own')).data?.['token'];
  await secrets.patch('own', 'merge', { data: { namespace: null } });
  await until(async () => text((await secrets.get('own')).data?.['namespace']) === 'default');
  t.is((await secrets.get('own')).data?.['token'], token);
  await secrets.patch('own', 'merge', { data: { token: null } });
  await filled('own');
  t.deepEqual(signed, ['own', 'own']);
});

test('without a certificate authority no ca.crt is written, and a present one remains', async (t) => {
  const { accounts, create, filled } = await start(t);
  await accounts.create({ metadata: { name: 'robot' } });
  await create('a', 'robot');
  t.deepEqual(Object.keys((await filled('a')).data ?? {}).sort(), ['namespace', 'token']);
  await create('b', 'robot', {}, { 'ca.crt': 'b3RoZXI=' });
  t.is(text((await filled('b')).data?.['ca.crt']), 'other');
});

test('a secret is deleted with its account, and when another account has the name; others are not touched', async (t) => {
  const { accounts, secrets, create, filled, gone } = await start(t);
  await secrets.create({ metadata: { name: 'opaque', annotations: { [nameAnnotation]: 'robot' } } });
  const account = await accounts.create({ metadata: { name: 'robot' } });
  await accounts.create({ metadata: { name: 'other' } });
  await create('named', 'robot');
  await create('identified', 'robot', { [uidAnnotation]: account.metadata?.uid ?? '' });
  await create('outdated', 'robot', { [uidAnnotation]: 'former' });
  await create('neighbour', 'other');
  await create('unknown', 'nobody');
  await filled('named');
  await filled('identified');
  await filled('neighbour');
  await gone('outdated');
  await gone('unknown');
  await accounts.delete('robot');
  await gone('named');
  await gone('identified');
  t.deepEqual((await secrets.list()).items.map(({ metadata }) => metadata?.name).sort(), ['neighbour', 'opaque']);
  t.deepEqual((await secrets.get('opaque')).data ?? {}, {});
});

test('a write that meets a conflict is repeated with the changed secret', async (t) => {
  let changes = 1;
  const change: { make?: () => Promise<unknown> } = {};
  const { accounts, secrets, create, filled } = await start(t, undefined, (client) =>
    interceptedClient(client, {
      before: async ({ verb, resource }) => {
        if (verb !== 'update' || resource !== 'secrets' || changes === 0) return;
        changes -= 1;
        await change.make?.();
      },
    }),
  );
  change.make = () => secrets.patch('a', 'merge', { metadata: { labels: { changed: 'yes' } } });
  await accounts.create({ metadata: { name: 'robot' } });
  await create('a', 'robot');
  t.is((await filled('a')).metadata?.labels?.['changed'], 'yes');
});
