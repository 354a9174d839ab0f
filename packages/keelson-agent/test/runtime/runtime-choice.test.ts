import { chmod, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createSocketServer } from 'node:net';
import { join } from 'node:path';
import { parseOptions, resolveConfig, UsageError } from '@keelson/agent';
import { temporaryDirectory } from '@keelson/test-support';
import test, { type ExecutionContext } from 'ava';
import { detectRuntime, type RuntimeProbes, rememberRuntime } from '../../src/runtime/detect-runtime.ts';
import { findBinary, probeEngine, probeOci } from '../../src/runtime/probe-runtimes.ts';
import { type RuntimeConfig, type RuntimeVariables, runtimeRequest } from '../../src/runtime/runtime-request.ts';

function probes(engine: boolean, oci: boolean): RuntimeProbes & { readonly asked: string[] } {
  const asked: string[] = [];
  const probe = (name: string, usable: boolean) => async () => {
    asked.push(name);
    return { usable, reason: `${name} ${usable}` };
  };
  return { asked, engine: probe('engine', engine), oci: probe('oci', oci) };
}

for (const [engine, oci, name, reason] of [
  [true, true, 'engine', 'engine true'],
  [false, true, 'oci', 'engine false; oci true'],
  [false, false, 'process', 'engine false; oci false'],
] as const) {
  test(`by default ${name} runs containers when an engine ${engine ? 'answers' : 'is not there'} and an OCI binary ${oci ? 'works' : 'does not'}`, async (t) => {
    const root = await temporaryDirectory(t);
    t.deepEqual(await detectRuntime(root, probes(engine, oci)), { name, reason, remembered: false });
  });
}

test('a detected runtime is recorded and used again, whatever is available later, until the record is removed', async (t) => {
  const root = await temporaryDirectory(t);
  await rememberRuntime(root, (await detectRuntime(root, probes(false, false))).name);
  const later = probes(true, true);
  const again = await detectRuntime(root, later);
  t.like(again, { name: 'process', remembered: true });
  t.deepEqual(later.asked, [], 'nothing is asked, so the start takes no longer');
  const note = join(root, 'runtime-in-use');
  t.true(again.reason.includes(note));
  t.is(await readFile(note, 'utf8'), 'process\n');
  await rm(note);
  t.is((await detectRuntime(root, later)).name, 'engine');
});

async function listening(t: ExecutionContext, answer: RequestListener): Promise<string> {
  const socket = join(await temporaryDirectory(t), 'engine.sock');
  const server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(socket, resolve));
  t.teardown(() => server.close());
  return `unix://${socket}`;
}

test('a socket is an engine when it answers /_ping with an API version', async (t) => {
  const engine = await listening(t, (request, answer) => {
    answer.writeHead(request.url === '/_ping' ? 200 : 404, { 'api-version': '1.41' }).end('OK');
  });
  t.deepEqual(await probeEngine(engine), { usable: true, reason: `an engine answers (API 1.41) at ${engine}` });
  const other = await listening(t, (_, answer) => void answer.end('hello'));
  t.like(await probeEngine(other), {
    usable: false,
    reason: `the response is not that of an engine (status 200) at ${other}`,
  });
});

test('an engine that does not listen, or does not respond in time, is not usable', async (t) => {
  const folder = await temporaryDirectory(t);
  t.like(await probeEngine(`unix://${folder}/none.sock`), {
    usable: false,
    reason: `no engine listens at unix://${folder}/none.sock`,
  });
  const silent = createSocketServer();
  await new Promise<void>((resolve) => silent.listen(join(folder, 'silent.sock'), resolve));
  t.teardown(() => silent.close());
  const probe = await probeEngine(`unix://${folder}/silent.sock`, 20);
  t.deepEqual(probe, { usable: false, reason: `no answer within 20 ms at unix://${folder}/silent.sock` });
});

test('an OCI binary requires root and must be executable', async (t) => {
  const folder = await temporaryDirectory(t);
  const program = async (name: string, script: string) => {
    const path = join(folder, name);
    await writeFile(path, `#!/bin/sh\n${script}\n`);
    await chmod(path, 0o755);
    return path;
  };
  const good = await program('good', 'echo runc version 1.1.5; echo more');
  t.deepEqual(await probeOci(0, good, 5000), { usable: true, reason: 'runc version 1.1.5' });
  t.deepEqual(await probeOci(1000, good), { usable: false, reason: 'runc needs root' });
  t.deepEqual(await probeOci(0, undefined), { usable: false, reason: 'no runc in PATH' });
  const bad = await program('bad', 'exit 1');
  t.deepEqual(await probeOci(0, bad, 5000), { usable: false, reason: `${bad} does not run` });
  const slow = await program('slow', 'exec sleep 60');
  t.deepEqual(await probeOci(0, slow, 20), { usable: false, reason: `${slow} does not run` });
  t.is(findBinary(['good'], folder), good);
  t.is(findBinary(['no-such-binary'], folder), undefined);
});

const host = { hostname: () => 'n1', fileExists: () => false };
const configOf = (...args: string[]) => resolveConfig(parseOptions(args), host).config;
const none = { runtime: undefined, runtimeOptions: undefined };

function selected(config: RuntimeConfig, variables: Partial<RuntimeVariables> = {}) {
  const request = runtimeRequest(config, { ...none, ...variables });
  return request.kind === 'adapter' ? request.request : request;
}

test('options of the agent select a runtime adapter and its options', (t) => {
  t.deepEqual(selected(configOf()), { kind: 'detect' });
  t.deepEqual(selected(configOf(), { runtime: '', runtimeOptions: '' }), { kind: 'detect' });
  t.like(selected(configOf('--runtime-a-endpoint=unix:///e.sock', '--pod-infra-container-image=pause:1')), {
    adapter: 'engine',
    options: { endpoint: 'unix:///e.sock', infraImage: 'pause:1', sharedPid: false },
    source: '--runtime-a-endpoint',
  });
  t.like(selected(configOf('--container-runtime-endpoint=unix:///c.sock')), {
    adapter: 'cri',
    options: { endpoint: 'unix:///c.sock', imageEndpoint: 'unix:///c.sock' },
    source: '--container-runtime-endpoint',
  });
  t.like(selected(configOf('--container-runtime=runtime-b')), { kind: 'supervised' });
  const unsupervised = { kind: 'oci', path: '/runc', supervisorEndpoint: undefined } as const;
  t.like(selected({ ...configOf(), runtime: unsupervised }), { adapter: 'oci', options: { binary: '/runc' } });
  t.like(selected({ ...configOf(), runtime: { kind: 'process' } }), { adapter: 'process', options: {} });
});

test('KEELSON_AGENT_RUNTIME selects an adapter when the options do not', (t) => {
  t.like(selected(configOf(), { runtime: 'process' }), { adapter: 'process', options: {} });
  t.like(selected(configOf(), { runtime: 'oci', runtimeOptions: '{"binary":"/opt/crun"}' }), {
    adapter: 'oci',
    options: { binary: '/opt/crun' },
    source: 'KEELSON_AGENT_RUNTIME',
    optionsSource: 'KEELSON_AGENT_RUNTIME_OPTIONS',
  });
  const engine = { runtime: 'engine', runtimeOptions: '{"sharedPid":true}' };
  t.like(selected(configOf(), engine), {
    adapter: 'engine',
    options: { endpoint: 'unix:///var/run/docker.sock', sharedPid: true },
  });
  t.like(selected(configOf(), { runtime: '@team/runtime' }), { adapter: '@team/runtime', options: {} });
});

for (const [title, args, variables, message] of [
  [
    'a runtime in the options and in the environment',
    ['--container-runtime-endpoint=unix:///z.sock'],
    { runtime: 'process' },
    'KEELSON_AGENT_RUNTIME=process and the options both choose a runtime; leave one out',
  ],
  [
    'options without a runtime',
    [],
    { runtimeOptions: '{}' },
    'KEELSON_AGENT_RUNTIME_OPTIONS requires KEELSON_AGENT_RUNTIME, which selects the runtime',
  ],
  [
    'options that are no JSON',
    [],
    { runtime: 'oci', runtimeOptions: '{binary' },
    /^KEELSON_AGENT_RUNTIME_OPTIONS is not valid JSON: [^\n]+$/,
  ],
  [
    'options that are no object',
    [],
    { runtime: 'oci', runtimeOptions: '["a"]' },
    'KEELSON_AGENT_RUNTIME_OPTIONS must be a JSON object',
  ],
] as const) {
  test(`${title}: rejected with one sentence`, (t) => {
    t.throws(() => selected(configOf(...args), variables), { instanceOf: UsageError, message });
  });
}
