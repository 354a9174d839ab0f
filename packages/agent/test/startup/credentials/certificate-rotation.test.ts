import { X509Certificate } from 'node:crypto';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isConnectionError } from '@keelson/client';
import { Node } from '@keelson/kinds';
import { until } from '@keelson/test-support';
import test, { type ExecutionContext } from 'ava';
import { createSelfSigned } from '../../../src/serve/serving-certificate.ts';
import { openAccess } from '../../../src/startup/api/api-access.ts';
import { renewalTime } from '../../../src/startup/credentials/certificate-rotation.ts';
import { wordsConfig } from '../../support/bench.ts';
import { type CertificateApi, certificateApi } from '../../support/certificate-api.ts';

const hourMs = 3_600_000;
const json = '--cluster-api-content-type=application/json';

/** An agent's access to the API with a certificate that is valid for one hour. */
async function open(t: ExecutionContext) {
  const api = await certificateApi(t);
  const { clock, logger, directory } = api;
  const validity = { notBefore: new Date(clock.now()), notAfter: new Date(clock.now() + hourMs) };
  const first = await createSelfSigned(['first'], 0, validity);
  await writeFile(join(directory, 'clusterconfig'), api.config(first));
  const start = () => {
    const words = [`--clusterconfig=${join(directory, 'clusterconfig')}`, `--cert-dir=${directory}`];
    const access = openAccess(wordsConfig(directory, [...words, '--rotate-certificates', json]), {
      clock,
      logger,
      random: () => 0.5,
    });
    if (access === undefined) throw new Error('there is no access');
    t.teardown(() => access.close());
    access.start();
    return access;
  };
  return { api, start, firstSerial: new X509Certificate(first.certificate).serialNumber };
}

const serialInUse = async ({ directory }: CertificateApi) =>
  new X509Certificate(await readFile(join(directory, 'keelson-agent-client-current.pem'))).serialNumber;

/** Advances the agent's clock until a condition is met. */
async function goOn(api: CertificateApi, probe: () => boolean, stepMs = 500): Promise<void> {
  await until(() => {
    if (probe()) return true;
    api.clock.advance(stepMs);
    return false;
  });
}

test('a certificate is renewed at a random time between 70 and 90 percent of its lifetime', (t) => {
  const certificate = { certificate: '', key: '', notBeforeMs: 1_000_000, notAfterMs: 2_000_000 };
  t.is(
    renewalTime(certificate, () => 0),
    1_700_000,
  );
  t.is(
    renewalTime(certificate, () => 0.5),
    1_800_000,
  );
  t.is(Math.round(renewalTime(certificate, () => 0.999_999_9)), 1_900_000);
});

test('--rotate-certificates: a new certificate replaces the old one before it expires', async (t) => {
  const { api, start, firstSerial } = await open(t);
  const { clients } = start();
  const nodes = clients.heartbeat.resource(Node);
  await nodes.get('n1');
  t.is(api.seen.at(-1)?.serial, firstSerial);
  let events = 0;
  const watched = (async () => {
    for await (const _ of nodes.watch()) events += 1;
  })();
  watched.catch(() => {});
  await until(() => events === 1);
  api.clock.advance(hourMs * 0.79);
  t.is(api.requests.size, 0, 'not yet');
  api.clock.advance(hourMs * 0.02);
  const error = await t.throwsAsync(
    Promise.race([watched, goOn(api, () => false)]),
    undefined,
    'a watch of old is ended, so that it comes again',
  );
  t.true(isConnectionError(error, 'Interrupted'), String(error));
  const serial = await serialInUse(api);
  await nodes.get('n1');
  t.is(api.seen.at(-1)?.serial, serial);
  t.not(serial, firstSerial);
  const [request] = [...api.requests.values()];
  t.is(request?.spec.signerName, 'kubernetes.io/kube-apiserver-client-kubelet');
  const asking = api.seen.filter(({ path }) => path.includes('certificatesigningrequests'));
  t.true(
    asking.every((one) => one.serial === firstSerial),
    'the node asks in its own name',
  );
});

test('after a restart the newest certificate is used, and it is renewed later', async (t) => {
  const { api, start } = await open(t);
  const first = start();
  await first.clients.main.resource(Node).get('n1');
  api.clock.advance(hourMs * 0.81);
  await goOn(api, () => api.logger.infos.includes('the client certificate was renewed'));
  const serial = await serialInUse(api);
  await first.close();
  const second = start();
  await second.clients.main.resource(Node).get('n1');
  t.is(api.seen.at(-1)?.serial, serial);
  api.clock.advance(hourMs * 0.81);
  await goOn(api, () => api.logger.infos.filter((text) => text === 'the client certificate was renewed').length === 2);
  t.not(await serialInUse(api), serial);
  const kept = (await readdir(api.directory)).filter((name) => /^keelson-agent-client-\d/.test(name));
  t.is(kept.length, 2, 'each in a file of its own');
});

test('the renewal is retried until an unavailable server is available again', async (t) => {
  const { api, start, firstSerial } = await open(t);
  const { clients } = start();
  await clients.main.resource(Node).get('n1');
  api.behaviour = 'away';
  api.clock.advance(hourMs * 0.81);
  await goOn(api, () => api.seen.length >= 4);
  api.behaviour = 'fail';
  await goOn(api, () => api.logger.lines.some(({ message }) => message.includes('could not be renewed, will retry')));
  api.behaviour = 'issue';
  await goOn(api, () => api.logger.infos.includes('the client certificate was renewed'));
  t.not(await serialInUse(api), firstSerial);
});

test('certificates with a lifetime of seconds are renewed at most once a minute', async (t) => {
  const { api, start } = await open(t);
  const { clients } = start();
  await clients.main.resource(Node).get('n1');
  api.lifetimeMs = 1_000;
  const startMs = api.clock.now();
  api.clock.advance(hourMs * 0.81);
  const renewals = () => api.logger.infos.filter((text) => text === 'the client certificate was renewed').length;
  await goOn(api, () => renewals() === 3);
  t.true(api.clock.now() - startMs > hourMs * 0.81 + 120_000);
});

test('the agent ends with an error when its certificate has expired and the server rejects it', async (t) => {
  const { api, start } = await open(t);
  const access = start();
  let failure: Error | undefined;
  access.failed.catch((error: Error) => {
    failure = error;
  });
  await access.clients.main.resource(Node).get('n1');
  api.behaviour = 'away';
  api.clock.advance(hourMs * 1.01);
  await goOn(api, () => api.seen.length >= 3);
  t.is(failure, undefined, 'it is unknown whether the server accepts the certificate');
  api.behaviour = 'unauthorized';
  await goOn(api, () => failure !== undefined);
  t.regex(failure?.message ?? '', /the client certificate expired at .*; start again with --bootstrap-clusterconfig$/);
});

test('a warning is logged for a client config without a certificate to renew', async (t) => {
  const { api, start } = await open(t);
  const config = JSON.parse(await readFile(api.bootstrap, 'utf8'));
  config.users[0].user = { token: 'secret' };
  await writeFile(join(api.directory, 'clusterconfig'), JSON.stringify(config));
  start();
  await until(() => api.logger.lines.some(({ message }) => message.includes('has no certificate to renew')));
  t.is(api.requests.size, 0);
});
