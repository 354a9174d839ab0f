import { access, chmod, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { systemClock } from '@keelson/core/runtime';
import { freePort, listeningLogger, temporaryDirectory } from '@keelson/test-support';
import test, { type ExecutionContext } from 'ava';
import { ensureSupervisor } from '../../src/supervisor/ensure-supervisor.ts';
import { type Listener, probePort } from '../../src/supervisor/probe-port.ts';
import { supervisorProgram } from '../../src/supervisor/supervisor-options.ts';
import { supervisorPlace } from '../../src/supervisor/supervisor-place.ts';
import { otherPair, pairOf, plainPort, silentPort, tlsPort } from './listeners.ts';

test('the key is created once, in a file and a folder that only their owner can access', async (t) => {
  const rootDir = await temporaryDirectory(t);
  const made = await pairOf(rootDir);
  const { folder, pair } = supervisorPlace(rootDir);
  t.is((await stat(folder)).mode & 0o777, 0o700);
  t.is((await stat(pair)).mode & 0o777, 0o600);
  t.deepEqual(await pairOf(rootDir), {
    key: `${made.key.trimEnd()}\n`,
    certificate: `${made.certificate.trimEnd()}\n`,
  });
  t.not((await pairOf(await temporaryDirectory(t))).key, made.key);
});

test('a key file that others can read is rejected, as is one without a key', async (t) => {
  const rootDir = await temporaryDirectory(t);
  await pairOf(rootDir);
  const { pair } = supervisorPlace(rootDir);
  await chmod(pair, 0o640);
  await t.throwsAsync(pairOf(rootDir), {
    name: 'MachineError',
    message: /pair\.pem must be readable by its owner only/,
  });
  await chmod(pair, 0o600);
  await writeFile(pair, 'what is this');
  await t.throwsAsync(pairOf(rootDir), {
    name: 'MachineError',
    message: /does not contain a matching key and certificate/,
  });
});

async function probe(t: ExecutionContext, port: number, timeoutMs = 10_000): Promise<Listener> {
  const listener = await probePort({
    host: '127.0.0.1',
    port,
    pair: await pairOf(await temporaryDirectory(t)),
    timeoutMs,
  });
  if (listener.kind === 'own') listener.socket.destroy();
  return listener;
}

test('the listening process is identified by its certificate only', async (t) => {
  const rootDir = await temporaryDirectory(t);
  const pair = await pairOf(rootDir);
  const own = await probePort({ host: '127.0.0.1', port: await tlsPort(t, pair), pair, timeoutMs: 10_000 });
  t.is(own.kind, 'own');
  if (own.kind === 'own') own.socket.destroy();
  t.is((await probe(t, await tlsPort(t, pair))).kind, 'foreign');
  t.deepEqual(await probe(t, await tlsPort(t, await otherPair())), {
    kind: 'other',
    reason: 'it presents another certificate',
  });
  t.like(await probe(t, await plainPort(t)), { kind: 'other' });
  t.is((await probe(t, await silentPort(t), 50)).kind, 'silent');
  t.is((await probe(t, await freePort())).kind, 'none');
});

async function ensureAt(t: ExecutionContext, port: number, program?: string) {
  const rootDir = await temporaryDirectory(t);
  const options = {
    version: '0',
    program: supervisorProgram,
    nodeName: 'n1',
    rootDir,
    host: '127.0.0.1',
    port,
    ...(program && { binary: program }),
  };
  const pair = await pairOf(rootDir);
  const ensure = () =>
    ensureSupervisor({ options, pair, clock: systemClock, logger: listeningLogger(), probeTimeoutMs: 1000 });
  return { rootDir, ensure, place: supervisorPlace(rootDir) };
}

const impostors = [
  [
    'another program with TLS',
    async (t: ExecutionContext) => tlsPort(t, await otherPair()),
    /it presents another certificate$/,
  ],
  ['a program without TLS', plainPort, /is used by a process other than the supervisor of .*: it does not use TLS/],
  ['a program that does not respond', silentPort, /is used by a process that does not answer/],
  [
    'the supervisor of another agent',
    async (t: ExecutionContext) => tlsPort(t, await pairOf(await temporaryDirectory(t))),
    /is used by the supervisor of another agent, which has another --root-dir; set a different endpoint for each agent/,
  ],
] as const;

for (const [who, listen, sentence] of impostors) {
  test(`${who} at the endpoint is rejected with one sentence, and no supervisor is started`, async (t) => {
    const port = await listen(t);
    const { ensure, place } = await ensureAt(t, port);
    const error = await t.throwsAsync(ensure(), { name: 'MachineError', message: sentence });
    t.true(error?.message.startsWith(`--runtime-b-api-endpoint: 127.0.0.1:${port} `), error?.message);
    await t.throwsAsync(access(place.log), { code: 'ENOENT' });
  });
}

test('a supervisor whose record is missing is not used', async (t) => {
  const rootDir = await temporaryDirectory(t);
  const pair = await pairOf(rootDir);
  const port = await tlsPort(t, pair);
  const options = { version: '0', program: supervisorProgram, nodeName: 'n1', rootDir, host: '127.0.0.1', port };
  await t.throwsAsync(ensureSupervisor({ options, pair, clock: systemClock, logger: listeningLogger() }), {
    message: /whose record is missing there; end that process manually/,
  });
});

test('a supervisor that cannot start reports the reason, leaves no record, and logs the reason', async (t) => {
  t.timeout(60_000);
  const { ensure, place, rootDir } = await ensureAt(t, await freePort(), '/no/such/runc');
  const error = await t.throwsAsync(ensure(), { name: 'MachineError' });
  const expected = process.getuid?.() === 0 ? /\/no\/such\/runc/ : /needs to be root/;
  t.regex(error?.message ?? '', /^the supervisor of runtime-b cannot be started: /);
  t.regex(error?.message ?? '', expected);
  await t.throwsAsync(access(place.record), { code: 'ENOENT' });
  await t.throwsAsync(access(place.pid), { code: 'ENOENT' });
  const log = await readFile(join(rootDir, 'supervisor', 'supervisor.log'), 'utf8');
  t.regex(log, /"msg":"supervisor failed"/);
  t.is((await stat(place.log)).mode & 0o777, 0o600);
});
