import { cp, mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Random } from '@keelson/conformance';
import { freePort } from '@keelson/test-support';
import { eventually } from '@keelson/testing';
import test from 'ava';
import { AbusedServer } from '../../src/abuse/abused-server.ts';
import { abuseHttp2, abuseSockets } from '../../src/abuse/connection-classes.ts';
import { HostileClient, type HostileReply, type HostileTarget, targetOf } from '../../src/abuse/hostile-client.ts';
import { mutateBytes } from '../../src/abuse/mutations.ts';
import { agentClass, type HostileRequest, requestClasses } from '../../src/abuse/request-classes.ts';
import { AgentMachine } from '../../src/agent-process.ts';
import { directoryFor, faults, progress, seed } from '../../src/faults/fault-run.ts';
import { startKeelson } from '../../src/keelson-process.ts';

/** Share of a full run that runs in every test run. */
const share = 0.01;
const connections = 8;
/** In files that no request may read. */
const secret = 'content of a file outside the log directory';
const counted = (full: number): number => faults(Math.ceil(full * share), full);

/** Text of the failure, if a reply is one that no request may cause. */
function failureOf(request: HostileRequest, { outcome, status, body }: HostileReply): string | undefined {
  const text = body.toString('latin1');
  if (outcome === 'hung') return request.incomplete ? undefined : 'no reply';
  if (status >= 500 && status !== 505 && !isTimeout(status, text)) return `status ${status}`;
  if (text.includes(secret)) return 'content of a file outside the log directory';
  if (/\n {4}at .*:\d+:\d+/.test(text)) return 'a stack trace in the reply';
  if (status >= 400 && body.length > 64 * 1024 + 4 * request.bytes.length) return `an error of ${body.length} bytes`;
  if (
    status >= 400 &&
    text.startsWith('{') &&
    !text.includes(`"code":${status}`) &&
    !text.includes(`"code": ${status}`)
  )
    return `the Status has another code than ${status}`;
  return undefined;
}

/** A read at a revision that does not exist yet waits for a while and ends with 504. */
function isTimeout(status: number, body: string): boolean {
  return status === 504 && (body === '' || /"reason": ?"Timeout"/.test(body));
}

/** Sends generated requests on several connections; returns the failures, with the requests that cause them. */
async function sendAll(
  target: HostileTarget,
  count: number,
  generate: (random: Random) => HostileRequest,
  random: Random,
  further: (request: HostileRequest, reply: HostileReply) => string | undefined = () => undefined,
): Promise<readonly string[]> {
  const failures: string[] = [];
  let left = count;
  const worker = async () => {
    const client = new HostileClient(target);
    while (left > 0 && failures.length < 3) {
      left -= 1;
      const request = generate(random);
      const reply = await client.send(request);
      const failure = failureOf(request, reply) ?? further(request, reply);
      if (failure === undefined) continue;
      const sent = JSON.stringify(request.bytes.toString('latin1').slice(0, 4000));
      failures.push(
        `${failure}\nrequest: ${sent}\nreply: ${reply.head}\n${reply.body.toString('latin1').slice(0, 1000)}`,
      );
    }
    client.close();
  };
  await Promise.all(Array.from({ length: connections }, worker));
  return failures;
}

const randomOf = (name: string): Random => new Random(seed ^ Buffer.from(name).readUInt16BE());

test('hostile requests and connections: every response is a precise error, and the server loses nothing', async (t) => {
  t.timeout(3_600_000);
  t.log(`KEELSON_SEED=${seed}`);
  const server = await AbusedServer.start(await directoryFor(t));
  t.teardown(() => server.stop());
  const { target } = server;
  const classes: Record<string, { count: number; run: (count: number, random: Random) => Promise<readonly string[]> }> =
    {};
  for (const [name, { count, generate }] of Object.entries(requestClasses))
    classes[name] = { count: counted(count), run: (all, random) => sendAll(target, all, generate, random) };
  classes['HTTP/2 frames'] = {
    count: counted(3500),
    run: async (all, random) => {
      for (let sent = 0; sent < all; ) sent += await abuseHttp2(random, target);
      return [];
    },
  };
  classes['slow and half-open sockets'] = {
    count: counted(500),
    run: async (all, random) => {
      for (let sent = 0; sent < all; ) sent += await abuseSockets(random, target, Math.min(50, all - sent));
      return [];
    },
  };

  // The first requests of every class load code and fill caches; the comparison begins after them.
  for (const [name, { run }] of Object.entries(classes)) await run(connections * 2, randomOf(`${name} warm-up`));
  await server.clear();
  let before = await server.inspect();
  const violations: Record<string, readonly string[]> = {};
  for (const [index, [name, { count, run }]] of Object.entries(classes).entries()) {
    progress(t, index, Object.keys(classes).length, () => `${count} of ${name}`);
    const began = performance.now();
    const failures = await run(count, randomOf(name));
    await server.clear();
    const { after, found } = await server.violations(before);
    t.log(
      `${name}: ${count} in ${((performance.now() - began) / 1000).toFixed(1)} s,`,
      `longest delay ${after.report.longestDelayMs.toFixed(0)} ms, heap ${(after.report.heapBytes / 2 ** 20).toFixed(0)} MiB,`,
      `${after.descriptors} descriptors`,
    );
    if (failures.length + found.length > 0) violations[name] = [...failures, ...found];
    before = { ...before, stored: after.stored, logged: after.logged };
  }
  t.deepEqual(violations, {});
  t.is(await server.stop(), 0);
});

test('hostile requests to the ports of an agent: nothing outside its log directory is returned, and it keeps running', async (t) => {
  t.timeout(600_000);
  t.log(`KEELSON_SEED=${seed}`);
  const dir = await directoryFor(t);
  const [healthPort, agentDirectory] = [await freePort(), join(dir, 'agent')];
  await mkdir(agentDirectory);
  await writeFile(join(dir, 'secret.txt'), secret);
  await writeFile(join(agentDirectory, 'secret.txt'), secret);
  const ports = [
    '--enable-server=true',
    '--port=0',
    `--healthz-port=${healthPort}`,
    '--enable-debugging-handlers=true',
  ];
  const machine = await AgentMachine.create(agentDirectory, 'hostile');
  const agent = machine.start(ports);
  t.teardown(() => machine.clear());
  for (const port of [healthPort, machine.readOnlyPort]) {
    const target = { host: '127.0.0.1', port };
    const probe = new HostileClient(target);
    const healthy = async () =>
      (await probe.send({ bytes: Buffer.from('GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n') })).status === 200;
    await eventually(healthy, 60_000);
    t.deepEqual(await sendAll(target, counted(agentClass.count / 2), agentClass.generate, randomOf('agent')), []);
    t.true(await healthy());
    probe.close();
  }
  t.notRegex(agent.stderr(), /\n {4}at /, 'no stack trace is logged');
  t.deepEqual(await agent.pods(), []);
  t.is(await agent.stop(), 0);
});

test('tokens and revisions from before a restore are rejected, also modified ones', async (t) => {
  t.timeout(600_000);
  t.log(`KEELSON_SEED=${seed}`);
  const random = randomOf('restores');
  const data = await directoryFor(t);
  const copy = join(await directoryFor(t), 'store');
  const path = '/api/v1/namespaces/default/configmaps';
  const start = async () => {
    const server = await startKeelson(data, ['--insecure', '--log-level', 'error']);
    t.teardown(() => server.kill());
    return server;
  };
  const create = async (url: string, name: string): Promise<number> => {
    const headers = { 'content-type': 'application/json' };
    const reply = await fetch(url + path, { method: 'POST', headers, body: JSON.stringify({ metadata: { name } }) });
    const { metadata } = (await reply.json()) as { metadata: { resourceVersion: string } };
    return Number(metadata.resourceVersion);
  };
  const restores = faults(1, 10);
  for (let restored = 0; restored < restores; restored += 1) {
    const first = await start();
    for (let i = 0; i < 5; i += 1) await create(first.url, `kept-${restored}-${i}`);
    t.is(await first.stop(), 0);
    await rm(copy, { recursive: true, force: true });
    await cp(join(data, 'store'), copy, { recursive: true });

    const second = await start();
    const revisions: number[] = [];
    for (let i = 0; i < 20; i += 1) revisions.push(await create(second.url, `lost-${i}`));
    const tokens = await Promise.all(
      [1, 2, 3].map(async (limit) => {
        const list = (await (await fetch(`${second.url}${path}?limit=${limit}`)).json()) as {
          metadata: { continue: string };
        };
        return list.metadata.continue;
      }),
    );
    await second.kill();
    await rm(join(data, 'store'), { recursive: true });
    await cp(copy, join(data, 'store'), { recursive: true });

    const third = await start();
    const generate = (): HostileRequest => {
      const token = Buffer.from(random.pick(tokens));
      const edited = encodeURIComponent((random.chance(0.5) ? token : mutateBytes(random, token)).toString('latin1'));
      const revision = random.pick(revisions);
      const query = random.pick([
        `continue=${edited}&limit=${1 + random.below(5)}`,
        `resourceVersion=${revision}&resourceVersionMatch=Exact`,
        `watch=1&timeoutSeconds=1&resourceVersion=${revision}`,
      ]);
      return { bytes: Buffer.from(`GET ${path}?${query} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`), noReplyBody: false };
    };
    // An empty token is none.
    const accepted = ({ bytes }: HostileRequest, { status, body }: HostileReply) =>
      status === 200 && !/"code":410/.test(body.toString('latin1')) && !bytes.includes('continue=&')
        ? `accepted ${bytes.toString('latin1')}`
        : undefined;
    const failures = await sendAll(targetOf(third.url), counted(2000 / restores), generate, random, accepted);
    t.deepEqual(failures, []);
    t.is(await third.stop(), 0);
  }
});
