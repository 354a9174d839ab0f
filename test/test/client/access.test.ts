import { readFile } from 'node:fs/promises';
import {
  createHttpClient,
  type HttpClientOptions,
  isConnectionError,
  kubeconfigAccess,
  loadKubeconfig,
} from '@keelson/client';
import { isStatusError, type KubeObject } from '@keelson/core';
import { ConfigMap, Namespace } from '@keelson/kinds';
import test, { type ExecutionContext } from 'ava';
import { type KeelsonProcess, removeDirectory, startKeelson, temporaryDirectory } from '../../src/keelson-process.ts';

let server: KeelsonProcess;
let data: string;

test.before(async () => {
  data = await temporaryDirectory();
  server = await startKeelson(data);
});

test.after.always(async () => {
  await server.stop();
  await removeDirectory(data);
});

async function options(): Promise<HttpClientOptions> {
  return (await kubeconfigAccess(await loadKubeconfig({ path: server.kubeconfig }))).options;
}

function connected(t: ExecutionContext, given: HttpClientOptions) {
  const client = createHttpClient(given);
  t.teardown(() => client.close());
  return client;
}

async function failureOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => undefined,
    (error: unknown) => error,
  );
}

test('the client config that the server writes is sufficient, in both encodings', async (t) => {
  for (const encoding of ['json', 'protobuf'] as const) {
    const client = connected(t, { ...(await options()), encoding });
    const names = (await client.resource(Namespace).list()).items.map(({ metadata }: KubeObject) => metadata?.name);
    t.true(names.includes('default'));
    const maps = client.resource(ConfigMap).namespace('default');
    const watch = maps.watch({ fieldSelector: `metadata.name=${encoding}` })[Symbol.asyncIterator]();
    const event = watch.next();
    await maps.create({ metadata: { name: encoding }, data: { k: 'ü' } } as never);
    const { value } = await event;
    t.like(value, { type: 'ADDED', object: { kind: 'ConfigMap', apiVersion: 'v1', data: { k: 'ü' } } });
    await watch.return?.();
  }
});

test('a server with a certificate of another authority is rejected', async (t) => {
  const { ca: _ca, ...rest } = await options();
  const error = await failureOf(connected(t, rest).resource(Namespace).delete('default'));
  t.true(isConnectionError(error, 'Unreachable'), String(error));
  const named = await failureOf(connected(t, { ...(await options()), tlsServerName: 'other.example.com' }).discover());
  t.true(isConnectionError(named, 'Unreachable'), String(named));
});

test('a client without a certificate is not authorized; without verification of the server it connects', async (t) => {
  const { ca, server: url } = await options();
  const unauthenticated = await failureOf(
    connected(t, { server: url, ...(ca === undefined ? {} : { ca }) })
      .resource(Namespace)
      .list(),
  );
  t.true(
    isStatusError(unauthenticated) && (unauthenticated.code === 401 || unauthenticated.code === 403),
    String(unauthenticated),
  );
  const trusting = connected(t, { ...(await options()), ca: '', insecureSkipTlsVerify: true });
  t.true((await trusting.resource(Namespace).list()).items.length > 0);
  t.true((await readFile(server.kubeconfig, 'utf8')).includes('certificate-authority-data'));
});
