import { X509Certificate } from 'node:crypto';
import { access, lstat, mkdir, readdir, readFile, readlink, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { readCertificateRequest } from '@keelson/certificates';
import { kubeconfigAccess, loadKubeconfig } from '@keelson/client';
import { UsageError } from '@keelson/core/internal';
import { until } from '@keelson/test-support';
import test, { type ExecutionContext } from 'ava';
import { createSelfSigned } from '../../../src/serve/serving-certificate.ts';
import { joinCluster } from '../../../src/startup/credentials/join-cluster.ts';
import { CertificateRefusedError } from '../../../src/startup/credentials/request-certificate.ts';
import { wordsConfig } from '../../support/bench.ts';
import { type CertificateApi, certificateApi } from '../../support/certificate-api.ts';

const paths = ({ directory }: CertificateApi) => ({
  clusterconfig: join(directory, 'clusterconfig'),
  certDir: join(directory, 'pki'),
});

/** Advances the agent's clock until the promise is settled. */
async function joined(
  api: CertificateApi,
  words: readonly string[] = [],
  signal = new AbortController().signal,
): Promise<void> {
  const { clusterconfig, certDir } = paths(api);
  const common = [
    `--clusterconfig=${clusterconfig}`,
    `--cert-dir=${certDir}`,
    `--bootstrap-clusterconfig=${api.bootstrap}`,
  ];
  const config = wordsConfig(api.directory, [...common, ...words]);
  let settled = false;
  const running = joinCluster({ config, clock: api.clock, logger: api.logger, signal }).finally(() => {
    settled = true;
  });
  running.catch(() => {});
  await until(() => {
    if (!settled) api.clock.advance(50);
    return settled;
  });
  return running;
}

const exists = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  );

async function usable(t: ExecutionContext, api: CertificateApi): Promise<void> {
  const { clusterconfig, certDir } = paths(api);
  const { options } = await kubeconfigAccess(await loadKubeconfig({ path: clusterconfig }));
  const certificate = new X509Certificate(options.clientCertificate ?? '');
  t.deepEqual(certificate.subject.split('\n'), ['O=system:nodes', 'CN=system:node:node-1']);
  t.is(String(options.clientKey), await readFile(join(certDir, 'keelson-agent-client-current.pem'), 'utf8'));
}

test('--bootstrap-clusterconfig: a certificate is requested and a missing client config is written', async (t) => {
  const api = await certificateApi(t);
  await joined(api);
  await usable(t, api);
  const { clusterconfig, certDir } = paths(api);
  const [request] = [...api.requests.values()];
  t.is(request?.spec.signerName, 'kubernetes.io/kube-apiserver-client-kubelet');
  t.deepEqual(request?.spec.usages, ['digital signature', 'key encipherment', 'client auth']);
  const asked = readCertificateRequest(Buffer.from(request?.spec.request ?? '', 'base64').toString());
  t.deepEqual(asked.subject, { commonName: 'system:node:node-1', organizations: ['system:nodes'], others: [] });
  t.is((await stat(clusterconfig)).mode & 0o777, 0o600);
  const current = join(certDir, 'keelson-agent-client-current.pem');
  t.true((await lstat(current)).isSymbolicLink());
  t.regex(await readlink(current), /^keelson-agent-client-\d{4}-\d\d-\d\d-\d\d-\d\d-\d\d\.pem$/);
  t.is((await stat(current)).mode & 0o777, 0o600);
});

test('a valid client config is not changed, and no certificate is requested', async (t) => {
  const api = await certificateApi(t);
  const text = api.config(await createSelfSigned(['node'], api.clock.now()));
  await writeFile(paths(api).clusterconfig, text);
  await joined(api);
  t.is(await readFile(paths(api).clusterconfig, 'utf8'), text);
  t.is(api.seen.length, 0);
});

for (const [title, content] of [
  ['is no config', async () => 'clusters: ['],
  [
    'has a certificate that has ended',
    async (api: CertificateApi) => {
      const validity = { notBefore: new Date(api.clock.now() - 2000), notAfter: new Date(api.clock.now() - 1000) };
      return api.config(await createSelfSigned(['node'], 0, validity));
    },
  ],
  [
    'has a key of another certificate',
    async (api: CertificateApi) => {
      const [one, other] = await Promise.all(['a', 'b'].map((name) => createSelfSigned([name], api.clock.now())));
      return api.config({ certificate: one?.certificate ?? '', key: other?.key ?? '' });
    },
  ],
] as const) {
  test(`a config file that ${title} is replaced`, async (t) => {
    const api = await certificateApi(t);
    await writeFile(paths(api).clusterconfig, await content(api));
    await joined(api);
    await usable(t, api);
  });
}

for (const [behaviour, message] of [
  ['deny', /was denied: not you$/],
  ['fail', /was not signed: not you$/],
  ['unauthorized', /^--bootstrap-clusterconfig: the API server does not issue a certificate: Unauthorized/],
] as const) {
  test(`${behaviour}: the agent ends with an error, changes no file, and joins at the next start`, async (t) => {
    const api = await certificateApi(t);
    const { clusterconfig, certDir } = paths(api);
    await writeFile(clusterconfig, 'broken');
    await mkdir(certDir);
    await writeFile(join(certDir, 'keelson-agent.crt'), 'of somebody else');
    api.behaviour = behaviour;
    await t.throwsAsync(joined(api), { instanceOf: CertificateRefusedError, message });
    t.is(await readFile(clusterconfig, 'utf8'), 'broken');
    t.deepEqual(await readdir(certDir), ['keelson-agent.crt']);
    api.behaviour = 'issue';
    await joined(api);
    await usable(t, api);
  });
}

test('the agent waits for an unavailable server and for a late approval', async (t) => {
  const api = await certificateApi(t);
  api.behaviour = 'away';
  const joining = joined(api);
  await until(() => api.seen.length >= 3);
  api.behaviour = 'wait';
  await until(() => api.requests.size === 1 && api.seen.filter(({ method }) => method === 'GET').length >= 3);
  api.behaviour = 'issue';
  await joining;
  await usable(t, api);
  t.is(api.requests.size, 1);
  t.regex(api.logger.lines[0]?.message ?? '', /the client certificate cannot be requested now/);
});

test('an agent that is stopped while it waits writes no files', async (t) => {
  const api = await certificateApi(t);
  api.behaviour = 'wait';
  const ending = new AbortController();
  const joining = joined(api, [], ending.signal);
  await until(() => api.requests.size === 1);
  ending.abort();
  await joining;
  t.false(await exists(paths(api).clusterconfig));
  t.false(await exists(paths(api).certDir));
});

test('a missing bootstrap file is a usage error', async (t) => {
  const api = await certificateApi(t);
  const error = await t.throwsAsync(joined(api, ['--bootstrap-clusterconfig=/nowhere']), { instanceOf: UsageError });
  t.is(error?.message, '--bootstrap-clusterconfig: cannot read the client config /nowhere');
});
