import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import type { ServerHttp2Session } from 'node:http2';
import { connect, type TLSSocket } from 'node:tls';
import { parseOptions, resolveConfig } from '@keelson/agent';
import { FakeClock, silentLogger, systemClock } from '@keelson/core/runtime';
import { listeningLogger, temporaryDirectory, until } from '@keelson/test-support';
import test, { type ExecutionContext } from 'ava';
import { endSupervisor, retireSupervisor } from '../../src/supervisor/end-supervisor.ts';
import { ensureSupervisor } from '../../src/supervisor/ensure-supervisor.ts';
import { identityOf, isAlive } from '../../src/supervisor/process-identity.ts';
import { findRunning, removeRecord, writeRecord } from '../../src/supervisor/running-record.ts';
import { SupervisorLink } from '../../src/supervisor/supervisor-link.ts';
import { endpointText, type Supervised, supervisorOptions } from '../../src/supervisor/supervisor-options.ts';
import { supervisorPlace } from '../../src/supervisor/supervisor-place.ts';
import { pairOf, tlsPort } from './listeners.ts';

function optionsOf(...words: string[]) {
  const all = ['--root-dir=/r', '--container-runtime=runtime-b', ...words];
  const { config } = resolveConfig(parseOptions(all), { hostname: () => 'n1', fileExists: () => false });
  return supervisorOptions(config, config.runtime as Supervised);
}

test('a supervisor is started with the options that it needs, and with no others', (t) => {
  const plain = optionsOf();
  t.like(plain, { rootDir: '/r', host: '127.0.0.1', port: 15_441 });
  t.is(plain.network, undefined);
  t.deepEqual(optionsOf('--max-pods=3', '--sync-frequency=5s', '--pod-cidr=10.0.0.0/8', '--node-labels=a=b'), plain);
  t.is(endpointText(optionsOf('--runtime-b-api-endpoint=[::1]:7')), '[::1]:7');
  t.is(optionsOf('--runtime-b-path=runc').binary, 'runc', 'a name is located in PATH');
  t.is(optionsOf('--runtime-b-path=bin/runc').binary, `${process.cwd()}/bin/runc`);
  t.is(optionsOf('--node-ip=192.0.2.7').nodeIp, '192.0.2.7');
  const bridged = optionsOf('--network-plugin=bridge', '--pod-cidr=10.0.0.0/24', '--cni-bin-dir=/a,b');
  t.like(bridged.network, { plugin: 'bridge', podCidr: '10.0.0.0/24', cniBinDir: `/a,${process.cwd()}/b` });
  t.is(optionsOf('--network-plugin=bridge', '--pod-cidr=10.0.0.0/24', '--clusterconfig=/c').network?.podCidr, '');
});

/** A process of this test; a stubborn one takes no notice of SIGTERM. */
async function someProcess(t: ExecutionContext, stubborn = false) {
  const script = `${stubborn ? "process.on('SIGTERM', () => {});" : ''}setInterval(() => {}, 1000); console.log('up')`;
  const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'ignore'] });
  t.teardown(() => child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  const identity = await identityOf(child.pid ?? 0);
  if (identity === undefined) throw new Error('the process has ended');
  return { child, identity };
}

test('the record identifies a running process, and not another one with a reused process ID', async (t) => {
  const rootDir = await temporaryDirectory(t);
  const place = supervisorPlace(rootDir);
  await mkdir(place.folder);
  t.is(await findRunning(place), undefined);
  const { identity, child } = await someProcess(t);
  const options = { ...optionsOf(), rootDir };
  await writeRecord(place, identity, options);
  t.deepEqual(await findRunning(place), { ...identity, options });
  t.is(await readFile(place.pid, 'utf8'), `${child.pid}\n`);
  await writeRecord(place, { ...identity, startTicks: '1' }, options);
  t.is(await findRunning(place), undefined, 'another process with that number');
  await writeRecord(place, { ...identity, bootId: 'before' }, options);
  t.is(await findRunning(place), undefined, 'before the boot');
  for (const broken of ['', '{"pid":', '[]', '{"pid":1,"startTicks":"1","bootId":"x"}']) {
    await writeFile(place.record, broken);
    t.is(await findRunning(place), undefined);
  }
  await removeRecord(place);
  await removeRecord(place);
});

test('an existing supervisor is ended when the options do not use one', async (t) => {
  const rootDir = await temporaryDirectory(t);
  const place = supervisorPlace(rootDir);
  await retireSupervisor(rootDir, systemClock, silentLogger);
  const { identity, child } = await someProcess(t);
  await writeRecord(place, identity, { ...optionsOf(), rootDir });
  await retireSupervisor(rootDir, systemClock, silentLogger);
  t.is(await until(() => child.signalCode ?? undefined), 'SIGTERM');
});

test('a supervisor with another key is ended, and another listener at its endpoint is rejected', async (t) => {
  const rootDir = await temporaryDirectory(t);
  const pair = await pairOf(rootDir);
  const { identity, child } = await someProcess(t);
  const port = await tlsPort(t, await pairOf(await temporaryDirectory(t)));
  const options = { ...optionsOf(), rootDir, port };
  await writeRecord(supervisorPlace(rootDir), identity, options);
  const ensuring = ensureSupervisor({ options, pair, clock: systemClock, logger: silentLogger });
  await t.throwsAsync(ensuring, { message: /is used by the supervisor of another agent/ });
  t.is(await until(() => child.signalCode ?? undefined), 'SIGTERM');
});

test('a supervisor that does not end is killed', async (t) => {
  const { identity, child } = await someProcess(t, true);
  // As the agent does: none of the clock's timers holds a process.
  const holding = setInterval(() => {}, 2 ** 30);
  t.teardown(() => clearInterval(holding));
  // The grace period has ended at the second check.
  let calls = 0;
  const monotonic = () => performance.now() + (calls++ === 0 ? 0 : 11_000);
  const hurried = { now: () => 0, after: systemClock.after.bind(systemClock), monotonic };
  const logger = listeningLogger();
  await endSupervisor(identity, hurried, logger);
  t.is(await until(() => child.signalCode ?? undefined), 'SIGKILL');
  t.false(await isAlive(identity));
  t.is(logger.lines[0]?.message, 'supervisor does not end after SIGTERM, it is killed');
});

test('a supervisor that ends is restarted immediately, with retries until it runs, and not after the agent has closed the link', async (t) => {
  const pair = await pairOf(await temporaryDirectory(t));
  const sessions = new Map<number | undefined, ServerHttp2Session>();
  const port = await tlsPort(t, pair, (session) => void sessions.set(session.socket.remotePort, session));
  let latest: TLSSocket | undefined;
  const isOpen = () => sessions.get(latest?.localPort)?.destroyed === false;
  /** Closes the latest connection, as an ending supervisor does. */
  const end = async () => {
    const session = await until(() => sessions.get(latest?.localPort));
    session.destroy();
  };
  const clock = new FakeClock();
  const logger = listeningLogger();
  let failures = 0;
  let ensured = 0;
  let restarted = 0;
  const ensure = async (): Promise<TLSSocket> => {
    ensured += 1;
    if (failures > 0) {
      failures -= 1;
      throw new Error('not now');
    }
    const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false, ALPNProtocols: ['h2'] });
    await once(socket, 'secureConnect');
    latest = socket;
    return socket;
  };
  const onRestart = async () => {
    restarted += 1;
    if (restarted === 1) throw new Error('not ready');
  };
  const link = new SupervisorLink({ ensure, restarted: onRestart, clock, logger });
  await link.open();
  failures = 1;
  await end();
  await until(() => logger.lines.length === 2);
  t.is(logger.lines[0]?.message, 'supervisor connection lost');
  t.like(logger.lines[1], { message: 'supervisor restart failed', fields: { nextTryMs: 500 } });
  t.is(restarted, 0);
  clock.advance(500);
  await until(() => logger.lines.length === 3);
  t.like(logger.lines[2], { fields: { nextTryMs: 1000 } }, 'it was not ready for its configuration');
  clock.advance(1000);
  await until(() => restarted === 2);
  await end();
  await until(() => restarted === 3 && isOpen());
  t.is(logger.lines.length, 4, 'one that goes again is seen to once');
  await link[Symbol.asyncDispose]();
  await until(() => !isOpen());
  t.is(ensured, 5);
  t.is(logger.lines.length, 4);
});
