import { writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { MachineError, UsageError } from '@keelson/agent';
import { RuntimeError } from '@keelson/container-runtime';
import { silentLogger, systemClock } from '@keelson/core/runtime';
import { temporaryDirectory } from '@keelson/test-support';
import test from 'ava';
import { loadRuntimeAdapter, openAdapter } from '../../src/adapters/load-adapter.ts';
import { noNetwork, runtimeContext } from '../../src/adapters/runtime-context.ts';

const source = 'KEELSON_AGENT_RUNTIME';

function contextBelow(rootDir: string) {
  const config = { nodeName: 'n1', rootDir, api: undefined, network: noNetwork, node: { ip: undefined } };
  return (adapter: { readonly name: string }) =>
    runtimeContext({ config, clock: systemClock, logger: silentLogger }, adapter);
}

for (const name of ['process', 'oci', 'engine', 'cri']) {
  test(`the runtime ${name} is a package whose default export is a runtime adapter of that name`, async (t) => {
    const adapter = await loadRuntimeAdapter({ adapter: name, source });
    t.is(adapter.name, name);
    t.is((await loadRuntimeAdapter({ adapter: `@keelson/runtime-${name}`, source })).name, name);
  });
}

test('a package by its name: the fake runtime', async (t) => {
  const request = { adapter: '@keelson/runtime-fake', options: {}, source };
  const { runtime } = await openAdapter(request, contextBelow('/nonexistent'));
  t.is(runtime.name, 'fake');
  await runtime[Symbol.asyncDispose]();
});

for (const name of ['docker', '@team/no-such-runtime', './no-such-file.js', 'toString']) {
  test(`${name} is not installed: rejected with one sentence`, async (t) => {
    await t.throwsAsync(loadRuntimeAdapter({ adapter: name, source }), {
      instanceOf: UsageError,
      message:
        `KEELSON_AGENT_RUNTIME: the runtime adapter ${name} is not installed; ` +
        'install the package or choose one of process, oci, engine, cri',
    });
  });
}

test('a module that exports no runtime adapter is rejected, by absolute and by relative path', async (t) => {
  const path = join(await temporaryDirectory(t), 'module.mjs');
  await writeFile(path, 'export default { name: "lines", open() {} };\n');
  for (const adapter of [path, relative('.', path)]) {
    await t.throwsAsync(loadRuntimeAdapter({ adapter, source }), {
      instanceOf: UsageError,
      message: `KEELSON_AGENT_RUNTIME: ${adapter} does not export a runtime adapter by default`,
    });
  }
});

for (const [adapter, options, message] of [
  ['cri', {}, 'KEELSON_AGENT_RUNTIME_OPTIONS: the option endpoint of the runtime cri: Required value'],
  [
    'process',
    { shards: 1 },
    'KEELSON_AGENT_RUNTIME_OPTIONS: the runtime process has no option shards; ' +
      'its options are: imageSources, relistPeriodMs',
  ],
  [
    'oci',
    { binary: 7 },
    'KEELSON_AGENT_RUNTIME_OPTIONS: the option binary of the runtime oci must be of type string, not number 7',
  ],
] as const) {
  test(`options that ${adapter} does not accept (${JSON.stringify(options)}): rejected with one sentence`, async (t) => {
    const request = { adapter, options, source, optionsSource: 'KEELSON_AGENT_RUNTIME_OPTIONS' };
    await t.throwsAsync(openAdapter(request, contextBelow('/nonexistent')), { instanceOf: UsageError, message });
  });
}

test('a runtime that cannot be used on this machine is a MachineError; other errors are unchanged', async (t) => {
  const request = { adapter: 'oci', options: { binary: '/no/such/runc' }, source };
  const rootDir = await temporaryDirectory(t);
  await t.throwsAsync(openAdapter(request, contextBelow(rootDir)), {
    instanceOf: MachineError,
    message: /^the runtime oci cannot be used: /,
  });
  const engine = { adapter: 'engine', options: { endpoint: 'http://x', infraImage: 'pause' }, source };
  await t.throwsAsync(openAdapter(engine, contextBelow(rootDir)), {
    instanceOf: RuntimeError,
    code: 'InvalidArgument',
  });
});

test('the context contains the node, its directories and only configured values', async (t) => {
  t.deepEqual({ ...contextBelow('/r')({ name: 'lines' }), clock: 0, logger: 0 }, {
    nodeName: 'n1',
    stateDirectory: '/r/runtime-lines',
    imageDirectories: ['/r/images'],
    clock: 0,
    logger: 0,
  } as object);
  t.is(contextBelow('/r')({ name: 'process' }).stateDirectory, '/r/runtime');
  const config = { nodeName: 'n1', rootDir: 'r', api: undefined, network: noNetwork, node: { ip: '192.0.2.1' } };
  const options = { config, cgroupMountpoint: '/cg', clock: systemClock, logger: silentLogger };
  t.like(runtimeContext(options, { name: 'oci' }), {
    nodeIp: '192.0.2.1',
    stateDirectory: join(process.cwd(), 'r/runtime-oci'),
    cgroupMountpoint: '/cg',
  });
});
